"""A strategy that goes by the whole request, as figures: estimate, threshold and window, and what it would cut now.

All sizes that count against the threshold are tokens. Knows no HTML and no words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.accounting import Anchor, Estimate, NoUsage, Window, anchor, estimate, simple_tokens, window_of
from harness.compacting import Job
from harness.compaction import Plan, has_news, parts_of
from harness.context import Entry
from harness.replay import State
from harness.sizes import Size, size_of
from harness.thresholds import WARNINGS, share, warning

# Where a window is looked for, the first that knows it counts (harness/accounting.py, model/windows.py).
STEPS = ("setting", "listed", "table", "default")


@dataclass(frozen=True, slots=True)
class Way:
    """One way of counting: the newest call that was reported, as it was sent, and the whole next request.

    name: report_exact and report_simple are the last report and an estimate of what came since. sent: None where no
    report holds, and for those two. off: by how many percent `sent` missed what a real provider reported, or where the
    offline model did, which counts by a rule of its own, what the tokenizer says; None for that itself. used: the
    strategy goes by it.
    """

    name: Literal["exact", "simple", "report_exact", "report_simple"]
    sent: int | None
    off: int | None
    next: int
    used: bool


@dataclass(frozen=True, slots=True)
class Threshold:
    """What the strategy would do before the next model call.

    warned: the highest warning that is reached, in percent of the window, or 0. held: the anchor, or why there is none.
    removed, pinned, kept: the context's entries as it would part them now. room: the most tokens of a summary's reply.
    least: tokens that must be freed for a summary to be asked for.
    """

    plan: Plan
    window: Window
    warned: int
    held: Anchor | NoUsage
    ways: tuple[Way, ...]
    removed: Sequence[Entry]
    pinned: Sequence[Entry]
    kept: Sequence[Entry]
    room: int
    least: int

    @property
    def frees(self) -> Size:
        """Return the size of what would be removed; the summary takes some of it again."""
        return size_of(self.removed)

    @property
    def cuts(self) -> bool:
        """Whether more than an earlier summary would be removed."""
        return has_news(self.removed)

    @property
    def little(self) -> bool:
        """Whether so little would be freed that no summary is asked for."""
        return self.frees.tokens < self.least

    @property
    def share(self) -> float | None:
        """Return how full the window would be, in percent; None where nobody knows the window."""
        return share(self.plan.measured, self.window.tokens)

    @property
    def over(self) -> bool:
        """Whether the request would be larger than the window."""
        return self.window.tokens is not None and self.plan.measured > self.window.tokens

    @property
    def hardly_over(self) -> bool:
        """Whether it would be larger by so little that its share, rounded, does not show it."""
        return self.over and round(self.share or 0) == 100

    @property
    def step(self) -> int:
        """Return which of `STEPS` told the window, from 1; 0 where none did."""
        return STEPS.index(self.window.source) + 1 if self.window.source in STEPS else 0

    @property
    def levels(self) -> tuple[int, ...]:
        """Return the shares of the window at which there is a warning, in percent."""
        return WARNINGS


def threshold_of(state: State, plan: Plan, job: Job) -> Threshold:
    """Return the figures of a plan of the whole request, as of now."""
    removed, stays = parts_of(state.context, plan)
    pinned, window, held = set(plan.pinned), window_of(state), anchor(state)
    return Threshold(
        plan=plan,
        window=window,
        warned=warning(plan.measured, window.tokens),
        held=held,
        ways=_ways(state, plan, held),
        removed=removed,
        pinned=[entry for entry in stays if entry.seq in pinned],
        kept=[entry for entry in stays if entry.seq not in pinned],
        room=job.asked.reply_tokens,
        least=job.least,
    )


def _ways(state: State, plan: Plan, held: Anchor | NoUsage) -> tuple[Way, ...]:
    found: Estimate = estimate(state)
    total, simply = state.context.total, plan.measured == found.simple != found.exact
    simple_next = simple_tokens(total.chars)
    if not isinstance(held, Anchor):
        return Way("exact", None, None, total.tokens, not simply), Way("simple", None, None, simple_next, simply)
    size = next(call.size for call in reversed(state.calls) if call.call == held.call)
    exact, simple = size.tokens, simple_tokens(size.chars)
    told = exact if state.offline else held.usage.prompt or 0
    return (
        Way("exact", exact, None if state.offline else _off(exact, told), total.tokens, used=False),
        Way("simple", simple, _off(simple, told), simple_next, used=False),
        Way("report_simple" if simply else "report_exact", None, None, plan.measured, used=True),
    )


def _off(value: int, told: int) -> int | None:
    return round(100 * (value - told) / told) if told else None
