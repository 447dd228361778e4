"""Lab 07: when a task ends, the finished tasks before it become a summary, past a budget of characters.

The current task stays as it is, so the first task never compacts and the end of the second compacts the
first. The border comes from the recorded tasks: what another extension adds does not move it.
"""

from pathlib import Path

from harness.agent import Agent
from harness.compacting import carry_out
from harness.compaction import plan_boundary

WORDING = Path(__file__).with_name("wording.toml")


async def on_stop(agent: Agent) -> None:
    """Compact the finished tasks, or say why not. The conversation stays as it was unless all went well."""
    plan = plan_boundary(agent.state.context, task=agent.task.task, budget=agent.settings["budget"])
    agent.measured(plan)
    if plan.past:
        await carry_out(agent, plan, WORDING)
