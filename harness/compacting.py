"""Carries out a plan: asks for the summary, lets a person confirm it where that is switched on, then compacts.

Whatever goes wrong on the way leaves the context as it was, and says why.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.agent import Agent
from harness.breaker import TOLD
from harness.compaction import Plan, Summary, has_news, parts_of, size_removed
from harness.context import Entry
from harness.demands import demands_block, demands_of
from harness.replay import State
from harness.summary import Asked, SummaryRefused, write
from harness.wording import Wording, read_wording

# What a lab puts beside its summaries: from the state, the removed entries and the words for it.
Beside = Callable[[State, Sequence[Entry], Wording], str]


@dataclass(frozen=True, slots=True)
class Job:
    """How a strategy gets its summaries.

    wording: its TOML file of words for the summariser. demands: whether the user's own limits stand beside the
    summary word for word. beside: what else does. least: tokens that must be removed for a call to be worth it.
    """

    wording: Path
    asked: Asked
    demands: bool = False
    beside: Beside | None = None
    least: int = 0


async def act(agent: Agent, plan: Plan, job: Job, *, wanted: bool = False) -> None:
    """Compact where the plan's limit is passed or the provider refused the request.

    wanted: there is another reason to, such as the end of a stage. Nothing is asked for while the breaker is open,
    where nothing is new since the last summary, or for too little.
    """
    if not (plan.past or agent.overflowed or wanted):
        return
    breaker = agent.state.breaker
    open_for = breaker.stops(plan.strategy)
    # A request that was refused cannot be sent as it is, so a pass that may not get below the limit is worth trying.
    stopped = bool(open_for) and (
        open_for == "failures"
        or breaker.hopeless(plan.strategy)
        or not (agent.overflowed or _would_help(agent.state, plan, job))
    )
    reason = TOLD[open_for] if stopped else _not_worth(agent.state, plan, job)
    if not reason:
        await carry_out(agent, plan, job)
    elif wanted or breaker.told != (agent.task.task, reason):
        # Said once in a task and not before every turn; who asked for it gets an answer each time.
        agent.refuse(plan, reason)


def _would_help(state: State, plan: Plan, job: Job) -> bool:
    """Whether a pass would get below the limit, if its summary is as long as the last one."""
    summary = state.in_force[-1].summary.size.tokens if state.in_force else job.asked.reply_tokens
    return plan.measured - size_removed(state.context, plan).tokens + summary <= plan.budget


def _not_worth(state: State, plan: Plan, job: Job) -> str:
    """Return why a call for a summary would be wasted, as a code, or ""."""
    if not has_news(parts_of(state.context, plan)[0]):
        return "nothing_to_cut"
    return "little_gain" if size_removed(state.context, plan).tokens < job.least else ""


async def carry_out(agent: Agent, plan: Plan, job: Job, *, focus: str = "", language: str = "") -> None:
    """Compact as `plan` says, or refuse.

    focus: what a person asked to keep above all. language: of the summary; without one the current task's.
    """
    words = read_wording(job.wording, language or agent.task.language)
    try:
        summary = await _summary(agent, plan, job, words, focus)
    except SummaryRefused as refused:
        agent.refuse(plan, refused.reason, refused.detail)
    except asyncio.CancelledError:
        agent.refuse(plan, "stopped")
        raise
    else:
        agent.compact(plan, summary)


async def _summary(agent: Agent, plan: Plan, job: Job, words: Wording, focus: str) -> Summary:
    # What is pinned is read too: without the request a summariser cannot tell what of it is done.
    entries = agent.state.context.entries[: len(plan.removed) + len(plan.pinned)]
    removed, _ = parts_of(agent.state.context, plan)
    written = await write(agent, entries, words, job.asked, focus)
    summary = await _with_beside(agent, removed, job, words, written)
    if not agent.settings.get("confirm_summary"):
        return summary
    text = await agent.confirm(plan, summary)
    if text is None:
        raise SummaryRefused("declined")
    if text == summary.text:
        return summary
    changed = replace(written, text=text, written=written.text, preface=words.changed)
    # A demand that a person struck out of the text stands beside it now.
    return await _with_beside(agent, removed, job, words, changed)


async def _with_beside(agent: Agent, removed: Sequence[Entry], job: Job, words: Wording, summary: Summary) -> Summary:
    """Return the summary with what is put beside it: the user's limits, the restored workplace, an extension's own."""
    state = agent.state
    in_force = reversed(state.in_force)
    earlier = next((made.event.demands for made in in_force if any(each.seq == made.seq for each in removed)), ())
    # In a thread, since a very long message has not been searched yet.
    demands = await asyncio.to_thread(demands_of, removed, earlier) if job.demands else ()
    blocks = [demands_block(words.demands, demands, summary.text)]
    if job.beside:
        blocks.append(job.beside(state, removed, words))
    own = agent.beside(removed)
    made = replace(summary, demands=demands, beside=_joined([*blocks, own]))
    # What an extension adds must not be the reason why a summary is refused as no shorter.
    return made if not own or agent.frees(removed, made) else replace(made, beside=_joined(blocks))


def _joined(blocks: Sequence[str]) -> str:
    return "\n\n".join(filter(None, blocks))
