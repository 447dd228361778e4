"""Lets decisions about tool results hold: first the files that they name, then the event that names them."""

import asyncio
from collections.abc import Sequence

from harness import spills
from harness.agent import Agent
from harness.result_events import Decision


async def hold(agent: Agent, wanted: Sequence[Decision], *, anew: bool = False) -> None:
    """Write whole results that give way for their size, in a thread, and let all of `wanted` hold from here on.

    anew: as for `Agent.decide`.
    """
    if not wanted:
        return
    texts = {each.call_id: agent.state.results[each.call_id].message.text for each in wanted}
    root = agent.workspace.root if agent.workspace else None
    if any(spills.writes(each) for each in wanted):
        wanted = await asyncio.to_thread(spills.keep, root, wanted, texts)
    agent.decide(wanted, anew=anew)
