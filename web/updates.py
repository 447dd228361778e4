"""What changes on an open page when something happens: which element, and its new HTML.

Knows no connections. It renders with the templates of a whole page, so a reload looks the same.
"""

from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import escape

from harness import events as e
from harness.journal import Recorded
from web.drawer import render_parts
from web.feed import cut_of, in_model_view, make_row, render_cut, render_feed, render_row
from web.guide import samples_of, ticks_of
from web.hand_view import render_by_hand
from web.moment import steps_of
from web.panel import dry_run_of, panel_of
from web.rows import INVISIBLE, Row, at, earlier, model_call_id, row_id
from web.shown import Shown
from web.status import failure_line, state_of, status_line
from web.viewer import Viewer

Mode = Literal["replace", "append", "before", "remove", "morph", "inner"]
STARTED = (
    e.ModelCallStarted,
    e.SummaryCallStarted,
    e.SummaryProposed,
    e.ToolStarted,
    e.ApprovalRequested,
    e.ApprovalAnswered,
)
# After these the box for a task may have another button.
TURNING = (
    e.TaskStarted,
    e.TaskEnded,
    e.ApprovalRequested,
    e.ApprovalAnswered,
    e.CompactionAsked,
    e.SummaryProposed,
    e.SummaryAnswered,
    e.ContextCompacted,
    e.CompactionRefused,
)

# What the settings drawer shows is changed by these.
SETTING = (e.SettingChanged, e.ExtensionsChanged, e.FaultChosen, e.ModelChosen)


@dataclass(frozen=True, slots=True)
class Update:
    """One change. `html` has one root element with the target's id, or is text; "append" puts it at the end inside,
    "before" in front of the target. A target that the page does not have is passed over.
    """

    target_id: str
    html: str
    mode: Mode


def render_updates(session: Shown, recorded: Recorded | e.TextDelta, viewer: Viewer) -> list[Update]:
    """Return the changes of the feed, the status line and the send button after one event."""
    if isinstance(recorded, e.TextDelta):
        target = "text" if recorded.kind == "text" else "reasoning"
        return [Update(f"{model_call_id(recorded.call)}-{target}", str(escape(recorded.text)), "append")]
    updates = _feed_updates(session, recorded, viewer)
    if isinstance(recorded.event, TURNING):
        updates.append(_block(session, viewer, "composer_actions", "composer-actions"))
    if isinstance(recorded.event, SETTING):
        updates += [Update(target, html, "morph") for target, html in render_parts(session, viewer).items()]
    # With these the form of a compaction by hand comes or goes.
    first = isinstance(recorded.event, e.TaskEnded) and recorded.event.task == 1
    if first or isinstance(recorded.event, e.ExtensionsChanged):
        updates.append(Update("by-hand-place", render_by_hand(session, viewer), "replace"))
    return [*updates, _status(session, viewer)]


def render_partial(session: Shown, viewer: Viewer) -> list[Update]:
    """Return the row of the reply that streams now, with all of it that has come; deltas go on from there."""
    if session.partial is None:
        return []
    row = model_call_id(session.partial[0])
    started = next((r for r in reversed(session.records) if row_id(r) == row), None)
    if started is None or not isinstance(started.event, e.ModelCallStarted):
        return []
    return [Update(row, render_row(session, make_row(session, started), viewer), "replace")]


def render_panel_updates(session: Shown, viewer: Viewer) -> list[Update]:
    """Return meter, panel, budget, samples and ticks as they are now."""
    panel = panel_of(session, viewer)
    context = {
        "session_id": session.id,
        "panel": panel,
        "dry": dry_run_of(session, panel.boundary),
        "groups": samples_of(session.lab, session.state, viewer.language),
        "steps": steps_of(session, session),
        "ticks": ticks_of(session, viewer.language),
    }
    places = {"meter": "meter", "panel": "panel", "budget": "budget", "stepper": "stepper"}
    places |= {"samples": "guide-samples", "ticks": "guide-ticks"}
    return [Update(target, viewer.block("session.html", block, **context), "morph") for block, target in places.items()]


def render_failure(session: Shown, viewer: Viewer) -> list[Update]:
    """Return what a page is told last when nothing more can be recorded: why, and what to do."""
    alert = viewer.block("session.html", "failure", failure=failure_line(session, viewer.words))
    return [
        *_left_open(session, session.committed, viewer),
        _block(session, viewer, "composer_actions", "composer-actions"),
        _status(session, viewer),
        Update("failure", alert, "replace"),
    ]


def _feed_updates(session: Shown, recorded: Recorded, viewer: Viewer) -> list[Update]:
    event = recorded.event
    if isinstance(event, INVISIBLE):
        return []
    if isinstance(event, e.ContextCompacted | e.CompactionUndone | e.InstructionsSet) and viewer.view == "model":
        # These come in above what is there, and what they replace goes: the whole list is another.
        rows = render_feed(session, viewer, until=recorded.seq)
        return [Update("feed", viewer.block("session.html", "feed_list", feed=rows, past=""), "replace")]
    # The state may be ahead of what is shown: what starts is shown as going on until its end is shown.
    row = replace(make_row(session, recorded), live=isinstance(event, STARTED))
    updates = _row(session, recorded, row, viewer)
    if isinstance(event, e.ContextCompacted | e.CompactionUndone):
        updates += _cut_updates(session, recorded, viewer)
    stopped = isinstance(event, e.CompactionRefused) and event.reason == "stopped"
    if stopped or (isinstance(event, e.TaskEnded) and event.reason != "answered"):
        updates += _left_open(session, recorded.seq - 1, viewer)
    return updates


def _row(session: Shown, recorded: Recorded, row: Row, viewer: Viewer) -> list[Update]:
    """Add the row, put it in the place of its earlier look, or take it away where the view does not have it."""
    known = bool(earlier(session.records, recorded))
    task = getattr(recorded.event, "task", 0)
    if viewer.view == "model" and not in_model_view(session.state, recorded, task, live=row.live):
        return [Update(row.id, "", "remove")] if known else []
    html = render_row(session, row, viewer)
    return [Update(row.id, html, "replace") if known else Update("feed", html, "append")]


def _cut_updates(session: Shown, changed: Recorded, viewer: Viewer) -> list[Update]:
    """Move the line of the cut point: messages above it are dimmed by where they stand.

    Of the other rows only two change: only the newest compaction in force can be undone.
    """
    before, cut = cut_of(session, changed.seq - 1), cut_of(session, changed.seq)
    updates = [Update("cut-line", "", "remove")]
    if cut:
        updates.append(Update(cut.above, render_cut(cut, viewer), "before"))
    for each in filter(None, (before, cut)):
        if each.seq != changed.seq:
            row = make_row(session, at(session.records, each.seq))
            updates.append(Update(row.id, render_row(session, row, viewer), "replace"))
    return updates


def _left_open(session: Shown, last: int, viewer: Viewer) -> list[Update]:
    """Show anew what was going on at journal number `last`, when the task was cut short; it goes on no more."""
    seen: set[str] = set()
    updates = []
    for each in reversed(session.records[:last]):
        if isinstance(each.event, e.TaskStarted):
            break
        name = row_id(each)
        if name not in seen and isinstance(each.event, STARTED):
            row = replace(make_row(session, each), live=False)
            model = viewer.view == "model"
            html = "" if model else render_row(session, row, viewer)
            updates.append(Update(name, html, "remove" if model else "replace"))
        seen.add(name)
    return updates


def _status(session: Shown, viewer: Viewer) -> Update:
    line = status_line(session, viewer)
    html = viewer.block("session.html", "status", state_code=state_of(session), status=line)
    return Update("status", html, "replace")


def _block(session: Shown, viewer: Viewer, block: str, target: str) -> Update:
    html = viewer.block("session.html", block, session_id=session.id, state_code=state_of(session))
    return Update(target, html, "replace")
