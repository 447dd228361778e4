"""Folds a session's events into spans: one trace a task. The page, the sending and the export all use this one fold."""

from collections.abc import Iterator, Sequence

from harness import events as e
from harness.recorded import Recorded
from harness.reopening import INTERRUPTED
from harness.replay import State
from harness.request import Wire
from harness.session_events import ModelChosen
from harness.sizes import Size
from harness.tracing.agent_spans import AgentSpans, At
from harness.tracing.span import Span, name_trace
from harness.tracing.taken import Taken, take


class Tracer:
    """The spans of one session, event by event. requests: whether LLM spans get what they sent.

    model, compactions: what was chosen, and how many there were, before the first event that this one follows.
    """

    def __init__(
        self, session: str, requests: bool = False, *, model: ModelChosen | None = None, compactions: int = 0
    ) -> None:
        self._at = At(session, model=model, requests=requests)
        self._own = AgentSpans(made=compactions)
        self._children: dict[int, AgentSpans] = {}
        self._of_call: dict[str, list[Span]] = {}  # of each call that was handed on, the roots of its sub-agents
        self._asked, self._trace = "", ""  # of the newest task

    @property
    def open(self) -> list[Span]:
        """Return the spans that have not ended, in order of begin."""
        every = [*self._own.open, *(span for child in self._children.values() for span in child.open)]
        return sorted(every, key=lambda span: span.seq)

    def follow(self, recorded: Recorded, state: State | None = None) -> list[Span]:
        """Fold in the next event; return the spans that ended with it. state: the session's, after it."""
        return self.fold(recorded, take(recorded.event, state) if self._at.requests and state else None)

    def fold(self, recorded: Recorded, taken: Taken | None = None) -> list[Span]:
        """Fold in the next event with what was taken of the state after it."""
        at, event = self._at, recorded.event
        at.seq, at.time, at.taken = recorded.seq, recorded.time, taken
        child = event.child if isinstance(event, e.ChildEvent) else 0
        inner = event.event if isinstance(event, e.ChildEvent) else event
        late = self._settles(inner)
        if not late and not isinstance(inner, e.TaskStarted | e.TaskResumed):
            at.alive = at.time
        spans = self._children.get(child)
        ended = list(self._follow_own(at, inner) if not child else _follow_child(at, spans, inner) if spans else ())
        at.alive = at.alive if late else at.time
        return ended

    def _follow_own(self, at: At, event: e.Event) -> Iterator[Span]:
        match event:
            case e.ModelChosen():
                at.model = event
            case e.TaskStarted(task=task, text=text):
                yield from self._leave(None, "interrupted")
                self._trace, self._asked = name_trace(at.session, at.seq), text
                self._begin(at, task, event)
            case e.TaskResumed(task=task):
                yield from self._leave(None, "interrupted")
                self._begin(at, task, event)
            case e.ChildStarted(child=number, call_id=call_id):
                spans = self._children[number] = AgentSpans(number)
                above = self._own.calls.get(call_id) or self._own.turn or self._own.root
                spans.root = spans.begin(at, "AGENT", f"sub-agent {number}", event, above)
                self._of_call[call_id] = [*self._of_call.get(call_id, []), spans.root]
            case e.ToolEnded(call_id=call_id):
                end = at.alive
                for root in self._of_call.pop(call_id, []):
                    yield from self._children.pop(root.child).leave(at.alive, None, "interrupted")
                    # Of calls side by side each result is told once all have one; its own work ended earlier.
                    end = root.end or end
                yield from self._own.tool_ended(at, event, end)
            case e.TaskEnded(reason=reason):
                yield from self._leave(event, "" if reason == "answered" else reason)
            case e.SummaryCallStarted() if not self._own.open:
                # By hand, between two tasks.
                at.trace, at.task = name_trace(at.session, at.seq), 0
                yield from self._own.follow(at, event)
            case _:
                yield from self._own.follow(at, event)

    def _begin(self, at: At, task: int, event: e.Event) -> None:
        at.trace, at.task = self._trace, task
        self._own.root = self._own.begin(at, "AGENT", f"task {task}", event, None)
        self._own.root.asked = self._asked

    def _leave(self, event: e.Event | None, fault: str) -> Iterator[Span]:
        for child in self._children.values():
            yield from child.leave(self._at.alive, None, fault or "interrupted")
        self._children, self._of_call = {}, {}
        yield from self._own.leave(self._at.alive, event, fault)

    def _settles(self, event: e.Event) -> bool:
        """Whether an event only gives what was cut short its end, perhaps long after a kill."""
        match event:
            case e.ToolEnded(text=text, seconds=seconds, call_id=call_id):
                return text == INTERRUPTED or (seconds == 0 and call_id in self._of_call)
            case e.TaskEnded(seconds=seconds):
                return seconds == 0
            case _:
                return False


def _follow_child(at: At, spans: AgentSpans, event: e.Event) -> Iterator[Span]:
    match event:
        case e.TaskStarted(text=text) if spans.root:
            spans.root.asked = text
        case e.InstructionsSet():
            pass
        case e.ToolEnded():
            yield from spans.tool_ended(at, event, at.alive)
        case e.TaskEnded(reason=reason):
            yield from spans.leave(at.alive, event, "" if reason == "answered" else reason)
        case _:
            yield from spans.follow(at, event)


def spans_of(session: str, records: Sequence[Recorded]) -> list[Span]:
    """Return every span of a session in order of begin, with what each model call sent. end: None while it goes on."""
    tracer, state, spans = Tracer(session, requests=True), State(unmeasured), []
    for recorded in records:
        state.apply(recorded.seq, recorded.event)
        spans += tracer.follow(recorded, state)
    return sorted([*spans, *tracer.open], key=lambda span: span.seq)


def task_spans(session: str, records: Sequence[Recorded], task: int) -> list[Span]:
    """Return the spans of one task in order of begin, without what was sent. end: None while it goes on.

    records: all of the session. A compaction by hand between two tasks belongs to none.
    """
    begun = [place for place, each in enumerate(records) if isinstance(each.event, e.TaskStarted)]
    if not 0 < task <= len(begun):
        return []
    first = begun[task - 1]
    last = begun[task] if task < len(begun) else len(records)
    tracer, spans = _as_of(session, records[:first]), []
    for recorded in records[first:last]:
        spans += tracer.fold(recorded)
    return [span for span in sorted([*spans, *tracer.open], key=lambda span: span.seq) if span.task == task]


def _as_of(session: str, records: Sequence[Recorded]) -> Tracer:
    chosen = (each.event for each in reversed(records) if isinstance(each.event, e.ModelChosen))
    compactions = sum(isinstance(each.event, e.ContextCompacted) for each in records)
    return Tracer(session, model=next(chosen, None), compactions=compactions)


def unmeasured(wire: Wire) -> Size:
    # No span tells an estimate, and to count would take most of the time.
    return Size()
