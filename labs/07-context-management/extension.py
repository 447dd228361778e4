"""Lab 07: when a task ends, the finished tasks before it become a summary, past a budget of characters.

The current task stays as it is, so the first task never compacts and the end of the second compacts the
first. The border comes from the recorded tasks: what another extension adds does not move it.
"""

from pathlib import Path

from harness.agent import Agent
from harness.compaction import plan_boundary
from harness.summary import SummaryRefused, read_wording, write

WORDING = Path(__file__).with_name("wording.toml")


async def on_stop(agent: Agent) -> None:
    """Compact the finished tasks, or say why not. The conversation stays as it was unless all went well."""
    task, context, settings = agent.task, agent.state.context, agent.settings
    plan = plan_boundary(context, task=task.task, budget=settings["budget"])
    agent.measured(plan)
    if not plan.past:
        return
    wording = read_wording(WORDING, task.language)
    try:
        summary = await write(agent, context.entries[: len(plan.removed)], wording, settings["summary_limit"])
    except SummaryRefused as refused:
        agent.refuse(plan.strategy, refused.reason, refused.detail)
    else:
        agent.compact(plan, summary)
