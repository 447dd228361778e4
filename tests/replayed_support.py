"""Holds the journal of a real session to the invariants, event by event, its sub-agents' too."""

from collections.abc import Callable, Iterable
from copy import copy

from harness import events as e
from harness.demands import demands_of
from harness.recorded import Recorded
from harness.replay import State
from tests.strategies_support import Run, Step, Tally, extension

# What strategies emit, between the messages.
BETWEEN = (
    e.BoundaryMeasured, e.ContextMeasured, e.SummaryCallStarted, e.SummaryCallEnded, e.ContextCompacted,
    e.CompactionRefused, e.ResultsDecided, e.CheckpointSaved,
)  # fmt: skip


class Replayed(Run):
    """A session that is told again by its own events; `state` is folded by whoever has it."""

    def __init__(self, numbers: tuple[str, ...], state: State, check: Callable[[Run, Step], None]) -> None:
        self.numbers, self.state, self._check = numbers, state, check
        self.extensions = tuple(extension(number) for number in numbers)
        self.events: list[tuple[int, e.Event]] = []
        self.tally, self._step, self._refused = Tally(), None, False
        self.decided, self.saved, self.dropped = {}, {}, set()

    @property
    def language(self) -> str:  # type: ignore[override]
        """Return the language of the newest task."""
        return self.state.tasks[-1].language if self.state.tasks else "en"

    @property
    def system(self) -> str:  # type: ignore[override]
        """Return the system prompt in force."""
        return self.state.instructions.system if self.state.instructions else ""

    @property
    def demands(self) -> list[str]:  # type: ignore[override]
        """Return what the user has demanded so far."""
        return list(demands_of(self.state.history))

    def before(self, event: e.Event) -> None:
        """Take note of what there is before an event; the step before it is over where this begins another."""
        kind = self._kind(event)
        if self._step and (kind == "messages" or self._step.kind != kind):
            self.over()
        if self._step is None:
            context, body = self.state.context, b"" if kind == "messages" else self.state.request().body()
            digest = context.digest("offline")
            self._step = Step(kind, tuple(context.entries), digest, body, copy(self.tally), 0)
        if isinstance(event, e.ModelCallStarted) and not event.projected:
            assert self.state.model and self.state.context.digest(self.state.model.model) == event.digest

    def after(self, seq: int, event: e.Event) -> None:
        """Take an event that has been folded in."""
        self.events.append((seq, event))
        assert self._step
        self._step.events.append((seq, event))
        self.tally.take(event)
        if isinstance(event, e.CheckpointSaved):
            self.saved[event.number] = [entry.seq for entry in self.state.context.entries]
        self._refused = isinstance(event, e.ModelCallFailed) and event.kind == "overflow" or (
            self._refused and isinstance(event, BETWEEN)
        )  # fmt: skip

    def over(self) -> None:
        """Have the step checked that was being told."""
        step, self._step = self._step, None
        if step:
            self._check(self, step)

    def _kind(self, event: e.Event) -> str:
        if not isinstance(event, BETWEEN):
            return "messages"
        if isinstance(event, e.BoundaryMeasured):
            return "task end"
        if self._step and self._step.kind == "task end":
            return "task end"
        return "overflow" if self._refused else "before turn"


def hold(records: Iterable[Recorded], numbers: tuple[str, ...], check: Callable[[Run, Step], None]) -> State:
    """Fold a session's events, with `check` after each step of it and of its sub-agents; return the state."""
    state = State()
    own, children = Replayed(numbers, state, check), dict[int, Replayed]()
    for recorded in records:
        event, run, inner = recorded.event, own, recorded.event
        if isinstance(event, e.ChildEvent):
            run, inner = children[event.child], event.event
        run.before(inner)
        state.apply(recorded.seq, event)
        number = len(run.events) + 1 if run is not own else recorded.seq
        run.after(number, inner)
        if isinstance(event, e.ChildStarted):
            children[event.child] = Replayed(numbers, state.children[event.child].state, check)
    for run in (*children.values(), own):
        run.over()
    return state
