"""The feed: folds a session's events into rows and renders them. The same templates serve live and a reload."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from markupsafe import Markup

from harness import events as e
from harness.context import Entry
from harness.journal import Recorded
from harness.replay import State
from web.details import CompactionDetail, Detail, PartialDetail, call_detail
from web.rows import INVISIBLE, TROUBLE, Cut, Row, at, earlier, row_id
from web.shown import Shown
from web.viewer import Viewer


def render_feed(session: Shown, viewer: Viewer, *, until: int | None = None) -> Markup:
    """Return the rows of the feed in the viewer's view, as the inside of the list.

    until: the last journal number that counts; None is all that may be shown.
    """
    rows = all_rows(session, session.committed if until is None else until)
    if viewer.view == "model":
        rows = model_rows(session.state, rows)
    return Markup("\n").join(render_row(session, row, viewer) for row in rows)


def render_row(session: Shown, row: Row, viewer: Viewer) -> Markup:
    """Return one row as HTML."""
    return Markup(viewer.page(f"events/{row.name}.html", row=row, event=row.event, session_id=session.id))


def all_rows(session: Shown, until: int) -> list[Row]:
    """Return the rows up to a journal number in the order in which they began."""
    newest: dict[str, Recorded] = {}
    models: list[tuple[int, bool]] = []
    for recorded in session.records[:until]:
        newest[row_id(recorded)] = recorded
        if isinstance(recorded.event, e.ModelChosen):
            models.append((recorded.seq, recorded.event.provider == "offline"))
    entries = entries_by_seq(session.state.history)
    gone, cut = gone_seqs(session.state), cut_of(session)
    rows = []
    for name, recorded in newest.items():
        if isinstance(recorded.event, INVISIBLE):
            continue
        row = make_row(session, recorded, entries.get(recorded.seq))
        before = bisect_right(models, recorded.seq, key=lambda model: model[0])
        offline = models[before - 1][1] if before else False
        above = cut if cut and name == cut_row(session) else None
        rows.append(replace(row, gone=recorded.seq in gone, offline=offline, cut=above))
    return rows


def make_row(
    session: Shown, recorded: Recorded, entry: Entry | None, *, gone: bool = False, cut: Cut | None = None
) -> Row:
    """Build the row of one event as it stands; `entry` is its message in the history."""
    event = recorded.event
    offline = session.state.model is not None and session.state.model.provider == "offline"
    return Row(
        id=row_id(recorded),
        seq=recorded.seq,
        time=recorded.time,
        event=event,
        entry=entry,
        gone=gone,
        cut=cut,
        live=_is_live(session, event),
        offline=offline,
        detail=_detail(session, recorded),
    )


def model_rows(state: State, rows: Iterable[Row]) -> list[Row]:
    """Return what the model reads now, in its order, and what is going on now or went wrong in this task."""
    sent = {entry.seq for entry in state.context.entries}
    last = state.tasks[-1].task if state.tasks else 0
    shown = [row for row in rows if row.seq in sent or in_model_view(row, last)]
    instructions = [row for row in shown if isinstance(row.event, e.InstructionsSet)][-1:]
    summary = [row for row in shown if isinstance(row.event, e.ContextCompacted)]
    others = [row for row in shown if not isinstance(row.event, e.InstructionsSet | e.ContextCompacted)]
    return instructions + summary + others


def in_model_view(row: Row, task: int) -> bool:
    """Whether a row that is no message of the context stands in the Model view all the same."""
    match row.event:
        case e.InstructionsSet():
            return True
        case e.TaskEnded(reason=reason):
            return reason != "answered" and row.event.task == task
        case _ if isinstance(row.event, TROUBLE):
            return row.event.task == task
        case _:
            return row.live


def entries_by_seq(history: Iterable[Entry]) -> dict[int, Entry]:
    """Return the messages of the history by the journal number of their event."""
    return {entry.seq: entry for entry in history}


def gone_seqs(state: State) -> set[int]:
    """Return the journal numbers of every message that a compaction has removed."""
    return {entry.seq for compaction in state.compactions for entry in compaction.removed}


def cut_of(session: Shown) -> Cut | None:
    """Return the cut point in force, or None before the first compaction."""
    if not session.state.compactions:
        return None
    last = session.state.compactions[-1]
    return Cut(f"row-{last.seq}", last.event)


def cut_row(session: Shown) -> str:
    """Return the id of the first row that is kept word for word, or "" before the first compaction."""
    if not session.state.compactions:
        return ""
    return row_id(at(session.records, session.state.compactions[-1].event.cut))


def _is_live(session: Shown, event: e.Event) -> bool:
    match event:
        case e.ModelCallStarted() | e.SummaryCallStarted():
            return session.status != "idle" and event.call == session.state.calls[-1].call
        case e.ToolStarted():
            return session.status != "idle" and event.call_id in session.state.unanswered
        case e.ApprovalRequested():
            return session.waiting is not None and session.waiting.call_id == event.call_id
        case e.ApprovalAnswered():
            return session.status != "idle"
        case _:
            return False


def _detail(session: Shown, recorded: Recorded) -> Detail | None:
    match recorded.event:
        case e.ApprovalRequested() | e.ApprovalAnswered() | e.ToolStarted() | e.ToolEnded():
            return call_detail(recorded.event, [each.event for each in earlier(session.records, recorded)])
        case e.ModelCallStarted(call=call) if session.partial and session.partial[0] == call:
            return PartialDetail(session.partial[1], session.partial[2])
        case e.ContextCompacted():
            removed = [each.removed for each in session.state.compactions if each.seq == recorded.seq]
            return CompactionDetail(removed[0] if removed else ())
        case _:
            return None
