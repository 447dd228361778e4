"""Lab 05: a command decides whether a task is done; where it fails, the agent reads what it printed and works on.

The workspace names the command. The harness runs it when the agent answers, and emits what the page shows.
"""

from pathlib import Path

from harness.agent import Agent
from harness.checks import check_source
from harness.sources import Source
from harness.verifying import verify
from harness.workspace import Workspace

WORDING = Path(__file__).with_name("wording.toml")


def system_prompt(workspace: Workspace) -> list[Source]:
    """Return what the agent is told of the check, or why nothing is checked."""
    return [check_source(workspace)]


async def on_stop(agent: Agent) -> str | None:
    """Run the check. Return what the agent is told where it failed, at most three times a task; None lets it end."""
    return await verify(agent, WORDING)
