"""Folds a session that came from elsewhere, and counts again whatever can be counted.

What comes through could have been recorded here: each event stands where it can, each request that is said to have
been sent is the one that the fold gives, and each size is the size of what it is said of. What only a provider, a
person, a clock or a lab can know is taken as told.
"""

from collections.abc import Iterable, Mapping

from harness import events as e
from harness.discovery import BASE_LAB, Lab
from harness.exchange.figures import Before, counted
from harness.exchange.in_place import in_place, in_range
from harness.problems import Problem
from harness.recorded import Recorded
from harness.replay import State
from harness.sizes import Size

# What is joined and hashed anew, in characters: a file must not keep the server busy for hours.
MOST_WORK = 500_000_000
# A sub-agent has a state of its own: a file must not make them by the hundred thousand.
CHILD_WORK = 50_000
# Read without a default wherever a task runs.
NEEDED = ("step_limit", "approval_seconds")


def recount(lines: Iterable[tuple[int, Recorded]], labs: Mapping[str, Lab]) -> list[Recorded]:
    """Return the events of `lines`, pairs of (line of the file, event), once all of them are sure. Else Problem."""
    state, work, records = State(), 0, []
    for line, recorded in lines:
        event, kind = recorded.event, type(recorded.event).__name__
        try:
            own, inner = state.whose(event)
            if (work := work + _work(own, inner)) > MOST_WORK:
                raise Problem("import_work", line=line)
            _check_labs(state, event, labs, line)
            if not in_place(state, recorded):
                raise Problem("import_order", line=line, kind=kind)
            before = Before.of(own, inner)
            state.apply(recorded.seq, event)
            if not counted(own, inner, before):
                raise Problem("import_figures", line=line, kind=kind)
        except Problem:
            raise
        except Exception as error:  # it was written by anybody: whatever it does to the fold becomes one line
            raise Problem("import_order", line=line, kind=kind) from error
        records.append(recorded)
    return records


def _check_labs(state: State, event: e.Event, labs: Mapping[str, Lab], line: int) -> None:
    if not isinstance(event, e.SessionStarted | e.ExtensionsChanged):
        return
    lab = event.lab if isinstance(event, e.SessionStarted) else state.started.lab if state.started else ""
    used = (BASE_LAB, lab, *event.extensions)
    if missing := [name for name in used if name not in labs]:
        known = ", ".join(f"{each.number} ({each.name})" for each in labs.values())
        raise Problem("import_lab", line=line, name=missing[0][:40], known=known)
    needed = {*NEEDED, *(name for number in used for name in labs[number].settings)}
    if not needed <= event.settings.keys() or not all(map(in_range, event.settings.values())):
        raise Problem("import_settings", line=line)


def _work(state: State, event: e.Event) -> int:
    """Return about how many characters are joined and hashed anew for this event."""
    match event:
        case (
            e.InstructionsSet() | e.ContextCompacted() | e.CompactionUndone() | e.BoundaryMeasured()
            | e.ResultsDecided() | e.ModelCallStarted(projected=(_, *_))
        ):  # fmt: skip
            return state.context.total.chars + 100 * (len(state.context.entries) + len(state.compactions))
        case e.TaskResumed():
            return state.context.total.chars + len(state.context.entries) * (100 + state.changes)
        case e.ModelCallStarted():
            return state.context.totals.get("tools", Size()).chars
        case e.ChildStarted():
            return CHILD_WORK
        case _:
            return 0
