"""Folds events into the state of a session: history, context, calls, tasks. The live session and a reload
use this one fold, so what is rebuilt is what was sent. Knows nothing of storage, models or tools.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from harness import events as e
from harness.breaker import Breaker
from harness.choices import Choices
from harness.context import Entry
from harness.messages import ToolResult, UserMessage
from harness.projection import project
from harness.records import CheckRecord, Instructed, TaskRecord
from harness.replies import Replies
from harness.request import Request, Wire
from harness.sizes import Size
from harness.tokens import size_of_message, size_of_text, size_of_tools

Known = Mapping[int, Entry]


class State(Replies, Choices):
    """What the events so far add up to. `measure` gives the size of a message on the wire.

    known: messages that were measured before, by journal number, so that none is counted twice. inside: those of each
    sub-agent, by the numbers of its own. number: the sub-agent whose state this is, 0 for the session's own agent.
    """

    def __init__(
        self,
        measure: Callable[[Wire], Size] = size_of_message,
        known: Known | None = None,
        inside: Mapping[int, Known] | None = None,
        number: int = 0,
    ) -> None:
        Replies.__init__(self, measure, known or {})
        Choices.__init__(self)
        self.number, self._inside = number, inside or {}
        self.children: dict[int, Child] = {}
        self.child_of: dict[str, Child] = {}  # of each call that was handed on
        self.instructed: list[Instructed] = []
        self.tasks: list[TaskRecord] = []
        self.checks: list[CheckRecord] = []
        self.denials: list[int] = []  # where a person denied a call, also a sub-agent's
        self.imported = 0  # up to this journal number everything came from a file
        self.stage_ended = 0  # the journal number of the newest end of a stage that was not compacted yet, or 0
        self.stage_marked = 0  # the journal number of the newest end of a stage
        self._then: dict[int, tuple[int, int, int]] = {}  # of each checkpoint `stage_ended`, `cut_at` and `ended`
        self.breaker = Breaker()

    @property
    def instructions(self) -> e.InstructionsSet | None:
        """Return what stands before every message now, or None before the first."""
        return self.instructed[-1].event if self.instructed else None

    def request(self) -> Request:
        """Return the exact request that the next turn would send. Needs a chosen model."""
        assert self.model, "a session chooses its model before its first request"
        return self.context.request(self.model.model)

    def running_task(self) -> TaskRecord | None:
        """Return the task that has not ended, or None."""
        return self.tasks[-1] if self.tasks and not self.tasks[-1].ended else None

    def whose(self, event: e.Event) -> "tuple[State, e.Event]":
        """Return the state that an event belongs to, and the event itself: of a sub-agent's its own."""
        return (self.children[event.child].state, event.event) if isinstance(event, e.ChildEvent) else (self, event)

    def apply(self, seq: int, event: e.Event) -> None:
        """Fold in one event, which has journal number `seq`."""
        match event:
            case e.InstructionsSet():
                self._instruct(seq, event)
            case e.TaskStarted():
                self.turn = 0
                self.tasks.append(TaskRecord(event.task, seq, event.text, event.sample, event.language))
                self.add(seq, event.task, UserMessage(event.text))
            case e.FollowUpAdded():
                self.add(seq, event.task, UserMessage(event.text, author="extension"))
            case e.ToolEnded():
                self.unanswered.pop(event.call_id, None)
                self.add(seq, event.task, ToolResult(event.call_id, event.name, event.text, event.ok))
            case e.TaskEnded(reason=reason):
                self.tasks[-1] = replace(self.tasks[-1], ended=reason)
            case e.CheckStarted():
                self.checks.append(CheckRecord(seq, event))
            case e.Verified():
                self.checks[-1] = replace(self.checks[-1], result=event)
            case e.ChildStarted(child=number):
                state = State(self._measure, self._inside.get(number), number=number)
                state.inherit(self)
                self.children[number] = self.child_of[event.call_id] = Child(seq, event, state)
            case e.ChildEvent(child=number):
                self.nested += 1
                self.children[number].apply(seq, event.event)
                self._deny(seq, event.event)
            case _:
                self.imported = seq if isinstance(event, e.SessionImported) else self.imported
                self._deny(seq, event)
                self.reply(seq, event)
                self.choose(event)
                self._apply_change(seq, event)
        self.breaker.apply(event)
        if isinstance(event, e.ContextCompacted | e.CompactionRefused) and event.trigger == "stage":
            self.stage_ended = 0

    def _apply_change(self, seq: int, event: e.Event) -> None:
        match event:
            case e.ContextCompacted():
                self.compact(seq, event)
            case e.CompactionUndone(number=number):
                self.undo(seq, number)
            case e.ResultsDecided():
                self.decide(seq, event)
            case e.StageEnded():
                self.stage_ended = self.stage_marked = seq
            case e.CheckpointSaved():
                self.save(seq, event)
                self._then[event.number] = (self.stage_ended, self.cut_at, self.ended)
                self.resumed = replace(self.resumed, tries=0)
            case e.TaskResumed(number=number):
                self.resume(seq, number, by_itself=event.by == "restart")
                # The context is what it was, so what was reported then holds again.
                self.stage_ended, self.cut_at, self.ended = self._then[number]
                self.turn = self.checkpoints[number - 1][1].turn
                self.unanswered.clear()
                self.tasks[-1] = replace(self.tasks[-1], ended="")
            case _:
                pass

    def _deny(self, seq: int, event: e.Event) -> None:
        if isinstance(event, e.ApprovalAnswered) and not event.allowed and event.by == "person":
            self.denials.append(seq)

    def _instruct(self, seq: int, event: e.InstructionsSet) -> None:
        system = system_message(event)
        parts = tuple([size_of_text(event.system[told.start : told.end]) for told in event.sources])
        made = Instructed(seq, event, self._measure(system), size_of_tools(event.tools), parts)
        self.instructed.append(made)
        self.context.instruct(system, made.system, event.tools, made.tools)


@dataclass(frozen=True, slots=True)
class Child:
    """A sub-agent: where it began, what it was begun for, what its own events add up to.

    seqs: of each of its events the journal number. Its own numbers count from 1: `seqs[n - 1]` is that of event n.
    """

    seq: int
    event: e.ChildStarted
    state: State
    seqs: list[int] = field(default_factory=list)

    def apply(self, seq: int, event: e.Event) -> None:
        """Fold in the sub-agent's next event, which has journal number `seq`."""
        self.seqs.append(seq)
        self.state.apply(len(self.seqs), event)


def system_message(event: e.InstructionsSet) -> Wire:
    """Return the system prompt as it stands on the wire."""
    return {"role": "system", "content": event.system}


def fold(
    numbered: Iterable[tuple[int, e.Event]], known: Known | None = None, inside: Mapping[int, Known] | None = None
) -> State:
    """Return the state after all of `numbered`, pairs of journal number and event. known, inside: as for `State`."""
    state = State(known=known, inside=inside)
    for seq, event in numbered:
        state.apply(seq, event)
    return state


def rebuild(numbered: Iterable[tuple[int, e.Event]], call: int, child: int = 0) -> Request:
    """Return the request of model call number `call` as it was sent. KeyError: there was no such call.

    child: the number of the sub-agent that made it, 0 for the session's own agent.
    """
    state = State()
    for seq, event in numbered:
        own, inner = state.whose(event)
        if isinstance(inner, e.ModelCallStarted | e.SummaryCallStarted) and (inner.call, own.number) == (call, child):
            return sent_by(own, inner)
        state.apply(seq, event)
    raise KeyError(call)


def sent_by(state: State, event: e.ModelCallStarted | e.SummaryCallStarted) -> Request:
    """Return the request of a model call as it was sent. state: before this event, of the agent that made it."""
    if isinstance(event, e.ModelCallStarted):
        request = state.request()
        return replace(request, messages=project(request.messages, event.projected))
    assert state.model, "a session chooses its model before its first request"
    return Request(state.model.model, event.messages, (), event.max_tokens, event.extra)
