"""What changes on an open page when something happens: which element, and its new HTML.

Knows no connections. It renders with the templates of a whole page, so a reload looks the same.
"""

from markupsafe import escape

from harness import events as e
from harness.journal import Recorded
from web.drawer import render_parts
from web.feed import make_row, render_row
from web.feed_updates import Mode, Update, feed_updates, left_open
from web.guide import samples_of, ticks_of
from web.hand_view import render_by_hand
from web.moment import steps_of
from web.notes import changes_notes, render_card
from web.panel import dry_run_of, panel_of
from web.rows import model_call_id, row_id
from web.shown import Shown
from web.status import asking_row, failure_line, may_end_stage, state_of, status_line
from web.trust import trust_of
from web.viewer import Viewer

__all__ = ["Mode", "Update", "render_failure", "render_panel_updates", "render_partial", "render_updates"]
# After these the box for a task may have another button.
TURNING = (
    e.TaskStarted,
    e.TaskEnded,
    e.TaskResumed,
    e.InstructionsSet,
    e.ApprovalRequested,
    e.ApprovalAnswered,
    e.CompactionAsked,
    e.SummaryProposed,
    e.SummaryAnswered,
    e.ContextCompacted,
    e.CompactionRefused,
)

# What the settings drawer shows is changed by these.
SETTING = (
    e.SettingChanged,
    e.ExtensionsChanged,
    e.FaultChosen,
    e.ModelChosen,
    e.InstructionsSet,
    e.WorkspaceTrusted,
)
# With these the question about the folder comes or goes.
TRUSTING = (e.InstructionsSet, e.WorkspaceTrusted)


def render_updates(session: Shown, recorded: Recorded | e.TextDelta, viewer: Viewer) -> list[Update]:
    """Return the changes of the feed, the status line and the send button after one event."""
    if isinstance(recorded, e.TextDelta):
        target = "text" if recorded.kind == "text" else "reasoning"
        return [Update(f"{model_call_id(recorded.call)}-{target}", str(escape(recorded.text)), "append")]
    updates = feed_updates(session, recorded, viewer)
    if isinstance(recorded.event, TURNING):
        updates += _composer(session, viewer)
    if isinstance(recorded.event, SETTING):
        updates += [Update(target, html, "morph") for target, html in render_parts(session, viewer).items()]
    if isinstance(recorded.event, TRUSTING):
        trust = viewer.block("session.html", "trust", trust=trust_of(session), session_id=session.id)
        updates.append(Update("trust", trust, "replace"))
    if changes_notes(recorded.event):
        updates.append(Update("guide-notes", render_card(session, viewer), "replace"))
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
        "asking": asking_row(session),
        "steps": steps_of(session, session),
        "ticks": ticks_of(session, viewer.language),
    }
    places = {"meter": "meter", "panel": "panel", "budget": "budget", "stepper": "stepper"}
    places |= {"samples": "guide-samples", "ticks": "guide-ticks"}
    updates = [Update(name, viewer.block("session.html", block, **context), "morph") for block, name in places.items()]
    if panel.sending and panel.sending.live:
        # A new element looks again, in a while, how the sending stands.
        updates.append(Update("sending", viewer.block("session.html", "sending", **context), "replace"))
    return updates


def render_failure(session: Shown, viewer: Viewer) -> list[Update]:
    """Return what a page is told last when nothing more can be recorded: why, and what to do."""
    alert = viewer.block("session.html", "failure", failure=failure_line(session, viewer.words))
    return [
        *left_open(session, session.committed, viewer),
        *_composer(session, viewer),
        _status(session, viewer),
        Update("failure", alert, "replace"),
    ]


def _status(session: Shown, viewer: Viewer) -> Update:
    line, row = status_line(session, viewer), asking_row(session)
    html = viewer.block("session.html", "status", state_code=state_of(session), status=line, asking=row)
    return Update("status", html, "replace")


def _composer(session: Shown, viewer: Viewer) -> list[Update]:
    shown = {"session_id": session.id, "state_code": state_of(session), "stages": may_end_stage(session)}
    return [Update("composer-actions", viewer.block("session.html", "composer_actions", **shown), "replace")]
