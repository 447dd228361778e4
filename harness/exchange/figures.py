"""Counts again what an event of a file counts: what `recount` asks once the event is folded in."""

from dataclasses import dataclass

from harness import events as e
from harness.accounting import Estimate, estimate, window_of
from harness.compaction import plan_boundary
from harness.demands import demands_of
from harness.projection import project, project_sizes
from harness.replay import State
from harness.request import Request, digest
from harness.sizes import Size, size_of
from harness.tokens import size_of_message


@dataclass(frozen=True, slots=True)
class Before:
    """What was counted just before an event: the request, our estimate of it, and failures in a row with one more.

    estimate: only for an event that goes by it.
    """

    total: Size
    failures: int
    estimate: Estimate | None

    @classmethod
    def of(cls, state: State, event: e.Event) -> "Before":
        """Count what `event` is compared with."""
        failures = state.breaker.after(event.reason) if isinstance(event, e.CompactionRefused) else 0
        return cls(state.context.total, failures, estimate(state) if isinstance(event, e.ContextCompacted) else None)


def counted(state: State, event: e.Event, before: Before) -> bool:
    """Whether what `event` counts is what is counted here, once it is folded in."""
    match event:
        case e.ModelCallStarted():
            return _request(state, event)
        case e.SummaryCallStarted():
            size = sum(map(size_of_message, event.messages), Size())
            model = state.model.model if state.model else ""
            request = Request(model, event.messages, (), event.max_tokens, event.extra)
            return (event.size, event.digest) == (size, digest(request))
        case e.BoundaryMeasured(strategy="task boundary"):
            plan = plan_boundary(state.context, task=event.task, budget=event.budget)
            outcome = "past" if plan.past else "within" if plan.removed else "none"
            return (event.measured, event.unit, event.outcome) == (plan.measured, plan.unit, outcome)
        case e.ContextMeasured():
            found = estimate(state)
            figures = (event.exact, event.simple, event.reported, event.call, event.window)
            own = (found.exact, found.simple, found.reported, found.call, window_of(state).tokens)
            return figures == own and event.estimate in (event.exact, event.simple) and event.threshold > 0
        case e.ResultsDecided():
            freed = before.total - state.context.total
            return (event.freed_chars, event.freed_tokens) == (max(0, freed.chars), max(0, freed.tokens))
        case e.ContextCompacted():
            return _compaction(state, event, before)
        case e.CompactionRefused(failures=failures):
            # A journal from before failures were counted says 0.
            return failures in (0, before.failures)
        case e.CompactionUndone():
            return (event.before, event.after) == (before.total, state.context.total)
        case _:
            return True


def _request(state: State, event: e.ModelCallStarted) -> bool:
    context, model = state.context, state.model.model if state.model else ""
    if not event.projected:
        counted = context.totals, len(context.entries) + 1, context.digest(model)
    else:
        base = context.request(model)
        messages = project(base.messages, event.projected)
        sizes = project_sizes(context.totals, context.places, event.projected)
        counted = sizes, len(messages), digest(Request(model, messages, base.tools))
    return (event.parts, event.messages, event.digest) == counted


def _compaction(state: State, event: e.ContextCompacted, before: Before) -> bool:
    made = state.compactions[-1]
    if (event.before, event.after) != (before.total, state.context.total):
        return False
    # None, or what the users demanded in what was cut, and what an earlier summary had of it.
    gone = {entry.seq for entry in made.removed}
    earlier = next((x.event.demands for x in reversed(state.compactions[:-1]) if not x.undone and x.seq in gone), ())
    if event.demands not in ((), demands_of(made.removed, earlier)):
        return False
    text = event.written or event.summary
    if any(demand not in text and f"- {demand}" not in event.beside for demand in event.demands):
        return False
    if event.scope == "request":
        assert before.estimate, "it was counted for this event"
        figures = (before.estimate.exact, before.estimate.simple)
        return event.measured in figures and event.measured_after == state.context.total.tokens
    rest = size_of(entry for entry in made.removed if entry.category != "summary")
    return (event.measured, event.measured_after) == (rest.chars, made.summary.size.chars)
