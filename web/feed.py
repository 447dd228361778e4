"""The feed: folds a session's events into rows and renders them. The same templates serve live and a reload.

It shows the newest rows; those before them are rendered only when they are asked for.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from harness import events as e
from harness.journal import Recorded
from web.child_view import ROWS, ChildShown, child_of_call
from web.decided import UndoneDetail, checkpoint_detail, decided_detail, end_detail, measured_detail, refused_detail
from web.details import PartialDetail, call_detail, compaction_detail
from web.instructions import instructed_at
from web.parts import (
    PAGE,
    cut_of_state,
    entry_at,
    in_context,
    in_model_view,
    model_start,
    part_before,
    pinned,
    place_of,
)
from web.rows import Cut, Detail, Row, at, earlier, is_invisible, row_id
from web.shown import Shown
from web.status import doing_of, state_of
from web.viewer import Viewer


def render_feed(session: Shown, viewer: Viewer, *, until: int | None = None) -> Markup:
    """Return the newest rows of the feed in the viewer's view, as the inside of the list.

    until: the last journal number that counts; None is all that may be shown.
    """
    last = session.committed if until is None else until
    head = _head(session, last) if viewer.view == "model" else []
    return Markup("\n").join([_rows(session, viewer, head), *_part(session, viewer, last)]).strip()


def render_earlier(session: Shown, viewer: Viewer, before: int) -> Markup:
    """Return the rows that lie directly before journal number `before`, and the link to those before them."""
    return Markup("\n").join(_part(session, viewer, min(before - 1, session.committed)))


def past_of(session: Shown, viewer: Viewer, before: int) -> str:
    """Return the classes of a list that ends before journal number `before`: what lies behind its end dims it too."""
    made = session.state.in_force[-1:] if viewer.view == "full" else []
    marks = {"past-cut": any(each.event.cut >= before for each in made), "replaced": any(x.seq >= before for x in made)}
    marks["past-task"] = any(task.seq >= before for task in session.state.tasks[-1:])
    return " ".join(name for name, true in marks.items() if true)


def render_row(session: Shown, row: Row, viewer: Viewer) -> Markup:
    """Return one row as HTML; the row of a call that was handed on holds what its sub-agent does while it works."""
    child = child_of_call(session, row.event, row.until)
    inside = child and (child.status != "idle" or viewer.whole) and viewer.view == "full"
    rows = render_inside(child, viewer) if child and inside else ""
    told = {"row": row, "event": row.event, "session_id": session.id, "child": child, "rows": rows}
    told["doing"] = doing_of(child, viewer) if child else ""
    return Markup(viewer.page(f"events/{row.name}.html", **told))


def render_inside(child: ChildShown, viewer: Viewer) -> Markup:
    """Return the newest rows of a sub-agent, as the inside of the list in its call's row."""
    inner = replace(viewer, child=child.number, nested=True)
    return Markup("\n").join(_part(child, inner, child.committed)).strip()


def render_cut(cut: Cut, viewer: Viewer) -> Markup:
    """Return the line of the cut point. What stands above it is no longer in the context, unless its row says so."""
    return Markup(viewer.page("events/_cut_line.html", cut=cut))


def make_row(session: Shown, recorded: Recorded, model: e.ModelChosen | None = None) -> Row:
    """Build the row of one event as it stands; `model` answered at that time, without one the present model did."""
    event, state, model = recorded.event, session.state, model or session.state.model
    entry = entry_at(state.history, recorded.seq)
    decision = state.decisions.get(event.call_id) if isinstance(event, e.ToolEnded) else None
    return Row(
        id=row_id(recorded),
        seq=recorded.seq,
        time=recorded.time,
        event=event,
        entry=entry,
        live=_is_live(session, event),
        offline=model is not None and model.offline,
        detail=_detail(session, recorded),
        place=place_of(entry, in_context(state), cut_of_state(state)) if entry else "",
        read=in_context(state).get(recorded.seq) if entry else None,
        sent=decision.text if decision else "",
    )


def cut_of(session: Shown, last: int) -> Cut | None:
    """Return the cut point in force at journal number `last`, or None before the first compaction."""
    there = (each for each in reversed(session.state.compactions) if each.seq <= last)
    made = next((each for each in there if not 0 < each.undone <= last), None)
    if made is None:
        return None
    numbers = range(made.event.cut - 1, len(session.records))
    kept = (session.records[n] for n in numbers if not is_invisible(session.records[n].event))
    return Cut(made.seq, row_id(next(kept)), made.event)


def _part(session: Shown, viewer: Viewer, last: int) -> list[Markup]:
    """Return the link to what lies before, and the rows up to `last`."""
    model = viewer.view == "model"
    first, most = model_start(session.state) if model else 1, ROWS if viewer.nested and not viewer.whole else PAGE
    part = part_before(session, last, first, most)
    records = part.records
    if model:
        task = session.state.tasks[-1].task if session.state.tasks else 0
        records = [
            each for each in records
            if not isinstance(each.event, e.InstructionsSet | e.ContextCompacted)
            and in_model_view(session.state, each, task, live=_is_live(session, each.event))
        ]  # fmt: skip
    link = viewer.page("events/_earlier.html", before=part.before, session_id=session.id) if part.before else ""
    return [Markup(link), _rows(session, viewer, records)]


def _rows(session: Shown, viewer: Viewer, records: Sequence[Recorded]) -> Markup:
    cut, parts = cut_of(session, session.committed), []
    models = [each for each in session.records if isinstance(each.event, e.ModelChosen)]
    for recorded in records:
        place = bisect_right(models, recorded.seq, key=lambda model: model.seq)
        row = make_row(session, recorded, models[place - 1].event if place else None)
        if cut and cut.above == row.id:
            parts.append(render_cut(cut, viewer))
        parts.append(render_row(session, row, viewer))
    return Markup("\n").join(parts)


def _head(session: Shown, last: int) -> list[Recorded]:
    """Return what the model reads first: its instructions, the summary, and what stays from before the cut point."""
    told = [made.seq for made in session.state.instructed if made.seq <= last][-1:]
    cut = cut_of(session, last)
    stays = (entry.seq for entry in pinned(session.state) if entry.seq <= last) if cut else ()
    return [at(session.records, seq) for seq in (*told, *([cut.seq] if cut else []), *stays)]


def _is_live(session: Shown, event: e.Event) -> bool:
    match event:
        case e.ModelCallStarted() | e.SummaryCallStarted():
            newest, tasks = session.state.calls[-1], session.state.tasks
            # One that a kill cut short stands before the task, or the resume, that goes on now.
            own = newest.seq > max(tasks[-1].seq if tasks else 0, session.state.resumed.seq)
            return state_of(session) != "idle" and event.call == newest.call and own
        case e.ToolStarted():
            return state_of(session) != "idle" and event.call_id in session.state.unanswered
        case e.CheckStarted():
            newest = session.state.checks[-1]
            return state_of(session) != "idle" and newest.begun == event and newest.result is None
        case e.ApprovalRequested():
            return session.waiting is not None and (session.waiting.call_id, session.asking) == (event.call_id, 0)
        case e.SummaryProposed():
            return session.proposed is not None and session.proposed.call == event.call
        case e.ApprovalAnswered():
            return state_of(session) != "idle"
        case _:
            return False


def _detail(session: Shown, recorded: Recorded) -> Detail | None:
    match recorded.event:
        case e.SettingChanged(preset=preset) if preset:
            return next((each for each in session.lab.presets if each.id == preset), None)
        case e.InstructionsSet():
            return instructed_at(session.state.instructed, recorded.seq)
        case e.ApprovalRequested() | e.ApprovalAnswered() | e.ToolStarted() | e.ToolEnded():
            return call_detail(recorded.event, [each.event for each in earlier(session.records, recorded)])
        case e.ModelCallStarted(call=call) if session.partial and session.partial[0] == call:
            return PartialDetail(session.partial[1], session.partial[2])
        case e.ContextCompacted():
            made = next((each for each in session.state.compactions if each.seq == recorded.seq), None)
            return compaction_detail(made, session.state, session.records) if made else None
        case e.CompactionUndone(number=number):
            return UndoneDetail(session.state.compactions[number - 1].event.scope)
        case e.ResultsDecided():
            return decided_detail(recorded.event, session.state, session.records)
        case e.CheckpointSaved():
            return checkpoint_detail(recorded, session.state, session.records)
        case e.TaskEnded():
            return end_detail(recorded, recorded.event, session.state, session.records)
        case e.ContextMeasured():
            return measured_detail(recorded.event)
        case e.CompactionRefused():
            return refused_detail(recorded.event)
        case _:
            return None
