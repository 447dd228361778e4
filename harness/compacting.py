"""Carries out a plan: asks for the summary, lets a person confirm it where that is switched on, then compacts.

Whatever goes wrong on the way leaves the context as it was, and says why.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

from harness.agent import Agent
from harness.compaction import Plan, Summary
from harness.summary import SummaryRefused, Wording, read_wording, write


async def carry_out(agent: Agent, plan: Plan, wording: Path, *, focus: str = "", language: str = "") -> None:
    """Compact as `plan` says, or refuse.

    wording: the strategy's TOML file of words for the summariser. focus: what a person asked to keep above all.
    language: of the summary; without one the current task's.
    """
    words = read_wording(wording, language or agent.task.language)
    try:
        summary = await _summary(agent, plan, words, focus)
    except SummaryRefused as refused:
        agent.refuse(plan, refused.reason, refused.detail)
    except asyncio.CancelledError:
        agent.refuse(plan, "stopped")
        raise
    else:
        agent.compact(plan, summary)


async def _summary(agent: Agent, plan: Plan, words: Wording, focus: str) -> Summary:
    entries = agent.state.context.entries[: len(plan.removed)]
    summary = await write(agent, entries, words, agent.settings["summary_limit"], focus)
    if not agent.settings.get("confirm_summary"):
        return summary
    text = await agent.confirm(plan, summary)
    if text is None:
        raise SummaryRefused("declined")
    if text == summary.text:
        return summary
    return replace(summary, text=text, written=summary.text, preface=words.changed)
