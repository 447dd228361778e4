"""Lab 07: when a task ends, the finished tasks before it become a summary, past a budget of characters.

The current task stays as it is, so the first task never compacts and the end of the second compacts the
first. The border comes from the recorded tasks: what another extension adds does not move it.
"""

from collections.abc import Mapping
from pathlib import Path

from harness.agent import Agent
from harness.compacting import Job, act
from harness.compaction import Plan, plan_boundary
from harness.rendering import Reading
from harness.replay import State
from harness.summary import Asked

WORDING = Path(__file__).with_name("wording.toml")
# What the summariser reads, in characters (lab 07 of the course): a message, a call's arguments, the whole.
READING = Reading(4_000, 1_000, 24_000)
REPLY_TOKENS = 4_000


def compaction(state: State, settings: Mapping[str, int], trigger: str = "", keep: int = 1) -> tuple[Plan, Job]:
    """Return the cut before the current task, or by hand before the `keep` newest ones, and how to summarise."""
    newest = len(state.tasks)
    # Between two tasks the next border is the end of a task that has not begun.
    task = newest + 1 - keep if trigger == "by hand" else newest if state.running_task() else newest + 1
    asked = Asked(settings["summary_limit"], REPLY_TOKENS, READING)
    plan = plan_boundary(state.context, task=task, budget=settings["budget"], trigger=trigger or "task ended")
    return plan, Job(WORDING, asked, demands=bool(settings["keep_demands"]))


async def on_stop(agent: Agent) -> None:
    """Compact the finished tasks, or say why not. The conversation stays as it was unless all went well."""
    plan, job = compaction(agent.state, agent.settings)
    agent.measured(plan)
    await act(agent, plan, job)
