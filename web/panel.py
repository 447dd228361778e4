"""The context panel, the meter and the budget's dry run: figures and geometry, put together for the templates."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.accounting import Anchor, NoUsage, anchor, window_of
from harness.by_hand import SETTING_MAX
from harness.compaction import Plan
from harness.records import CallRecord
from harness.sizes import Size
from web import chart, turns_chart
from web.child_view import ChildrenView, ChildShown, children_view
from web.figures import Boundary, Part, borders, boundary, limits, others, parts_of, planned
from web.instructions import InstructionsDetail, instructions_detail
from web.links import Links
from web.lost import LostView, lost_view
from web.message_lines import MessageLines, message_lines
from web.presets import PresetView, presets_of
from web.request_view import RequestView, request_view
from web.sending import SendingView, sending_view
from web.shown import Shown
from web.threshold import Threshold, threshold_of
from web.trace import TraceView, trace_view
from web.trust import trust_of
from web.units import Unit, call_value
from web.viewer import Viewer

# A slider has about so many places; their distance is a round number of characters.
SLIDER_PLACES = 100
# So many pinned messages are named; there is one, or a few more where calls wait for their results.
PINNED = 5


@dataclass(frozen=True, slots=True)
class Panel:
    """Everything that the panel and the meter show. `window` is in tokens; None where nobody knows it.

    boundary, threshold: what a strategy for finished tasks, or one for the whole request, would do next; at most one
    is there. others: what those would do that act too. stopped: why nothing is compacted by itself now, as a code,
    or "". presets: the lab's, to choose from. ended: of a sub-agent that makes no request any more. asks: the page has
    the question about the folder's files.
    """

    parts: list[Part]
    sources: InstructionsDetail | None
    total: Size
    segments: list[chart.Segment]
    anchor: Anchor | NoUsage
    window: int | None
    window_source: str
    compactions: int
    made: int
    offline: bool
    undone: int
    calls: int
    largest: CallRecord | None
    boundary: Boundary | None
    threshold: Threshold | None
    others: list[Plan]
    pinned: MessageLines | None
    stopped: str
    presets: tuple[PresetView, ...]
    gauge: chart.Gauge | None
    turns: turns_chart.Turns | None
    borders: list[chart.BorderBar]
    borders_top: int
    request: RequestView | None
    lost: LostView | None
    children: ChildrenView | None
    trace: TraceView | None
    sending: SendingView | None
    ended: bool = False
    asks: bool = False

    @property
    def preset(self) -> PresetView | None:
        """Return the preset that is on, or None where the numbers are a person's own."""
        return next((each for each in self.presets if each.on), None)


@dataclass(frozen=True, slots=True)
class DryRun:
    """What another budget would do, and the range of the slider, all in characters."""

    boundary: Boundary | None
    low: int
    high: int
    step: int

    @property
    def most(self) -> int:
        """Return the highest budget that the session takes."""
        return SETTING_MAX


def panel_of(session: Shown, viewer: Viewer) -> Panel:
    """Take the figures from the session's state; the charts over turns only where their tab is open."""
    state, over_turns = session.state, viewer.tab == "turns"
    parts, ahead, limit = parts_of(state.context.totals), boundary(session), _threshold(session)
    found = borders(session.records, chart.MOST_BARS) if over_turns else []
    bars, top = chart.border_bars(found)
    window = window_of(state)
    return Panel(
        parts=parts,
        sources=_sources(session) if viewer.tab == "now" else None,
        total=state.context.total,
        segments=chart.stack(parts, viewer.scale, viewer.unit),
        anchor=anchor(state),
        window=window.tokens,
        window_source=window.source,
        compactions=len(state.in_force),
        made=len(state.compactions),
        offline=state.offline,
        undone=len(state.compactions) - len(state.in_force),
        calls=len(state.calls),
        largest=_largest(state.calls, viewer.unit) if over_turns else None,
        boundary=ahead,
        threshold=limit,
        # A sub-agent has one task, so nothing acts between its tasks.
        others=[plan for plan in others(session) if plan.scope == "request" or not isinstance(session, ChildShown)],
        pinned=message_lines(limit.pinned, Links(session, viewer), PINNED) if limit else None,
        stopped=state.breaker.open if session.strategy else "",
        presets=presets_of(session.lab, state.settings, viewer.language),
        gauge=_gauge(ahead, limit),
        turns=_turns(session, viewer) if over_turns else None,
        borders=bars,
        borders_top=top,
        request=request_view(session, viewer) if viewer.tab == "diff" else None,
        lost=lost_view(session, viewer) if viewer.tab == "lost" else None,
        children=children_view(session.state) if viewer.tab == "now" else None,
        trace=trace_view(session, viewer) if viewer.tab == "trace" else None,
        sending=sending_view(session, viewer),
        ended=isinstance(session, ChildShown) and session.ended,
        asks=not viewer.at and (trust := trust_of(session)) is not None and trust.asks,
    )


def _sources(session: Shown) -> InstructionsDetail | None:
    made = session.state.instructed[-1:]
    return instructions_detail(made[0]) if made and made[0].event.sources else None


def _threshold(session: Shown) -> Threshold | None:
    found = planned(session)
    return threshold_of(session.state, *found) if found and found[0].scope == "request" else None


def _gauge(ahead: Boundary | None, limit: Threshold | None) -> chart.Gauge | None:
    if limit:
        return chart.gauge(limit.plan.measured, limit.plan.budget, limit.window.tokens, limit.levels)
    return chart.gauge(ahead.measured, ahead.budget) if ahead else None


def _turns(session: Shown, viewer: Viewer) -> turns_chart.Turns:
    measured = limits(session.records, session.state.calls[-chart.MOST_BARS :])
    return turns_chart.turns(session.state, viewer.unit, measured)


def _largest(calls: Sequence[CallRecord], unit: Unit) -> CallRecord | None:
    known = [call for call in calls if call_value(call, unit) is not None]
    return max(known, key=lambda call: call_value(call, unit) or 0, default=None)


def dry_run_of(session: Shown, ahead: Boundary | None) -> DryRun:
    """Return what the form of the dry run shows of `ahead`, and the slider's range around it."""
    if ahead is None:
        return DryRun(None, 0, 1, 1)
    step = max(50, chart.round_up(max(ahead.measured, ahead.budget) * 2) // SLIDER_PLACES // 50 * 50)
    high = chart.round_up(max(ahead.measured, session.state.settings["budget"], ahead.budget) * 2)
    return DryRun(ahead, 0, -(-high // step) * step, step)


def render_dry_run(session: Shown, viewer: Viewer, budget: int) -> Markup:
    """Return the form that says what `budget` characters would do at the next task border, and applies it."""
    dry = dry_run_of(session, boundary(session, budget))
    return viewer.block("session.html", "dry_run", dry=dry, session_id=session.id)
