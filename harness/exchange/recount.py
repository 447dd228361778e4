"""Folds a session that came from elsewhere, and counts again whatever can be counted.

What comes through could have been recorded here: each event stands where it can, each request that is said to have
been sent is the one that the fold gives, and each size is the size of what it is said of. What only a provider, a
person or a clock can know is taken as told. An extension that changed requests on their way (`before_send`) leaves
some that cannot be rebuilt, so its sessions do not come through.
"""

from collections.abc import Iterable, Mapping

from harness import events as e
from harness.compaction import plan_boundary
from harness.discovery import BASE_LAB, Lab
from harness.exchange.in_place import in_place, in_range
from harness.problems import Problem
from harness.recorded import Recorded
from harness.replay import State
from harness.request import Request, digest
from harness.sizes import Size, size_of
from harness.tokens import size_of_message

# What is joined and hashed anew, in characters: a file must not keep the server busy for hours.
MOST_WORK = 500_000_000
# Read without a default wherever a task runs.
NEEDED = ("step_limit", "approval_seconds")


def recount(lines: Iterable[tuple[int, Recorded]], labs: Mapping[str, Lab]) -> list[Recorded]:
    """Return the events of `lines`, pairs of (line of the file, event), once all of them are sure. Else Problem."""
    state, work, records = State(), 0, []
    for line, recorded in lines:
        event, kind = recorded.event, type(recorded.event).__name__
        try:
            if (work := work + _work(state, event)) > MOST_WORK:
                raise Problem("import_work", line=line)
            _check_labs(state, event, labs, line)
            if not in_place(state, recorded):
                raise Problem("import_order", line=line, kind=kind)
            before = state.context.total
            state.apply(recorded.seq, event)
            if not _counted(state, event, before):
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


def _counted(state: State, event: e.Event, before: Size) -> bool:
    """Whether what `event` counts is what is counted here, once it is folded in. before: the request until then."""
    context, model = state.context, state.model.model if state.model else ""
    unit = "tokens" if getattr(event, "unit", "") == "tokens" else "chars"
    match event:
        case e.ModelCallStarted():
            counted = context.totals, len(context.entries) + 1, context.digest(model)
            return (event.parts, event.messages, event.digest) == counted
        case e.SummaryCallStarted():
            size = sum(map(size_of_message, event.messages), Size())
            return (event.size, event.digest) == (size, digest(Request(model, event.messages, (), event.max_tokens)))
        case e.BoundaryMeasured(strategy="task boundary"):
            plan = plan_boundary(context, task=event.task, budget=event.budget)
            outcome = "past" if plan.past else "within" if plan.removed else "none"
            return (event.measured, event.unit, event.outcome) == (plan.measured, plan.unit, outcome)
        case e.ContextCompacted():
            made = state.compactions[-1]
            rest = size_of(entry for entry in made.removed if entry.category != "summary")
            after, measured = (getattr(size, unit) for size in (made.summary.size, rest))
            own = event.strategy != "task boundary" or event.measured == measured
            return (event.before, event.after, event.measured_after) == (before, context.total, after) and own
        case e.CompactionUndone():
            return (event.before, event.after) == (before, context.total)
        case _:
            return True


def _work(state: State, event: e.Event) -> int:
    """Return about how many characters are joined and hashed anew for this event."""
    match event:
        case e.InstructionsSet() | e.ContextCompacted() | e.CompactionUndone() | e.BoundaryMeasured():
            return state.context.total.chars + 100 * (len(state.context.entries) + len(state.compactions))
        case e.ModelCallStarted():
            return state.context.totals.get("tools", Size()).chars
        case _:
            return 0
