"""What changes in the feed of an open page after one event: rows, their dimming, the line of the cut point."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from harness import events as e
from harness.journal import Recorded
from web.child_view import ChildShown
from web.feed import cut_of, make_row, render_cut, render_feed, render_row
from web.parts import in_model_view, moved_by, trouble_before
from web.rows import Row, at, earlier, is_invisible, newest_of_call, row_id
from web.shown import Shown
from web.status import doing_of
from web.viewer import Viewer

Mode = Literal["replace", "append", "before", "remove", "morph", "inner"]
STARTED = (
    e.ModelCallStarted,
    e.SummaryCallStarted,
    e.SummaryProposed,
    e.ToolStarted,
    e.CheckStarted,
    e.ApprovalRequested,
    e.ApprovalAnswered,
)


@dataclass(frozen=True, slots=True)
class Update:
    """One change. `html` has one root element with the target's id, or is text; "append" puts it at the end inside,
    "before" in front of the target. A target that the page does not have is passed over.
    """

    target_id: str
    html: str
    mode: Mode


def feed_updates(session: Shown, recorded: Recorded, viewer: Viewer) -> list[Update]:
    """Return the changes of the feed after one event."""
    event = recorded.event
    if isinstance(event, e.ChildStarted):
        return _call_again(session, event, recorded.seq, viewer)
    if isinstance(event, e.ChildEvent):
        return _inside(session, recorded, viewer)
    if is_invisible(event):
        return []
    above = isinstance(event, e.ContextCompacted | e.CompactionUndone | e.InstructionsSet) and viewer.view == "model"
    if above or isinstance(event, e.TaskResumed):
        # These come in above what is there, and what they replace goes, or dims: the whole list is another.
        rows = render_feed(session, viewer, until=recorded.seq)
        return [Update("feed", viewer.block("session.html", "feed_list", feed=rows, past=""), "replace")]
    # The state may be ahead of what is shown: what starts is shown as going on until its end is shown.
    row = replace(make_row(session, recorded), live=isinstance(event, STARTED), until=recorded.seq)
    updates = _row(session, recorded, row, viewer)
    if isinstance(event, e.ContextCompacted | e.CompactionUndone):
        updates += _cut_updates(session, recorded, viewer)
    if isinstance(event, e.TaskStarted) and viewer.view == "model":
        # What went wrong in an earlier task is not shown with this one.
        updates += [Update(name, "", "remove") for name in trouble_before(session, event.task)]
    if isinstance(event, e.ResultsDecided):
        results = (session.state.results[each.call_id].seq for each in event.decisions)
        updates += _again(session, results, viewer)
    stopped = isinstance(event, e.CompactionRefused) and event.reason == "stopped"
    unchecked = any(each.result is None for each in session.state.checks[-1:])
    if stopped or (isinstance(event, e.TaskEnded) and (unchecked or event.reason != "answered")):
        updates += left_open(session, recorded.seq - 1, viewer)
    return updates


def _inside(session: Shown, recorded: Recorded, viewer: Viewer) -> list[Update]:
    """Return what changes in the row of a sub-agent's call after one of its own events: its figures and its rows."""
    child = ChildShown(session, session.state.children[recorded.event.child])
    if isinstance(recorded.event.event, e.TaskStarted | e.TaskEnded | e.ApprovalRequested | e.ApprovalAnswered):
        # With these the row has its text, and is folded or unfolded.
        return _call_again(session, child.child.event, recorded.seq, viewer)
    doing = doing_of(child, viewer)
    head = viewer.page("events/_child_head.html", child=child, doing=doing, session_id=session.id)
    updates = [Update(f"child-{child.number}-head", head, "replace")]
    if viewer.view == "full":
        own = child.records[bisect_left(child.child.seqs, recorded.seq)]
        inner = replace(viewer, child=child.number, nested=True)
        updates += [replace(u, target_id=inner.prefix + u.target_id) for u in feed_updates(child, own, inner)]
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

    Of the other rows two change, for only the newest compaction in force can be undone, and those that stand
    otherwise than the line says.
    """
    before, cut = cut_of(session, changed.seq - 1), cut_of(session, changed.seq)
    updates = [Update("cut-line", "", "remove")]
    if cut:
        updates.append(Update(cut.above, render_cut(cut, viewer), "before"))
    for each in filter(None, (before, cut)):
        if each.seq != changed.seq:
            updates += _again(session, [each.seq], viewer)
    cuts = (each.event.cut if each else 0 for each in (before, cut))
    return updates + _again(session, moved_by(session.state, changed.seq, *cuts), viewer)


def _again(session: Shown, seqs: Iterable[int], viewer: Viewer) -> list[Update]:
    """Show the rows of these journal numbers as they are now."""
    rows = [make_row(session, at(session.records, seq)) for seq in seqs]
    if viewer.view == "model":
        rows = [row for row in rows if in_model_view(session.state, at(session.records, row.seq), 0, live=False)]
    return [Update(row.id, render_row(session, row, viewer), "replace") for row in rows]


def _call_again(session: Shown, started: e.ChildStarted, seq: int, viewer: Viewer) -> list[Update]:
    """Show the row of a sub-agent's call as it is at journal number `seq`."""
    recorded = newest_of_call(session.records, started.call_id, seq)
    row = replace(make_row(session, recorded), live=True, until=seq)
    return [Update(row.id, render_row(session, row, viewer), "replace")]


def left_open(session: Shown, last: int, viewer: Viewer) -> list[Update]:
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
