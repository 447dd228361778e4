"""Folds events into the state of a session: history, context, calls, tasks. The live session and a reload
use this one fold, so what is rebuilt is what was sent. Knows nothing of storage, models or tools.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness import events as e
from harness.breaker import Breaker
from harness.changes import Changes
from harness.context import Entry
from harness.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from harness.projection import project
from harness.records import CallRecord, Instructed, TaskRecord
from harness.request import Request, Wire
from harness.sizes import Category, Size, Usage
from harness.tokens import size_of_message, size_of_tools


class State(Changes):
    """What the events so far add up to. `measure` gives the size of a message on the wire.

    known: messages that were measured before, by journal number, so that none is counted twice.
    """

    def __init__(
        self, measure: Callable[[Wire], Size] = size_of_message, known: Mapping[int, Entry] | None = None
    ) -> None:
        super().__init__(measure, known or {})
        self.started: e.SessionStarted | None = None
        self.model: e.ModelChosen | None = None
        self.instructed: list[Instructed] = []
        self.settings: dict[str, int] = {}
        self.extensions: tuple[str, ...] = ()
        self.fault = ""
        self.name = ""
        self.ticked: set[str] = set()
        self.calls: list[CallRecord] = []
        self.tasks: list[TaskRecord] = []
        self.turn = 0  # of the newest task
        self.stage_ended = 0  # the journal number of the newest end of a stage that was not compacted yet, or 0
        self.stage_marked = 0  # the journal number of the newest end of a stage
        self.ended = 0  # the number of the newest turn's call that got a reply and whose request is still the context's
        self._then: dict[int, tuple[int, int, int]] = {}  # of each checkpoint `stage_ended`, `cut_at` and `ended`
        self.breaker = Breaker()
        self.unanswered: dict[str, ToolCall] = {}
        self.call_ids: set[str] = set()

    @property
    def instructions(self) -> e.InstructionsSet | None:
        """Return what stands before every message now, or None before the first."""
        return self.instructed[-1].event if self.instructed else None

    @property
    def offline(self) -> bool:
        """Whether the offline model answers."""
        return self.model is not None and self.model.offline

    def request(self) -> Request:
        """Return the exact request that the next turn would send. Needs a chosen model."""
        assert self.model, "a session chooses its model before its first request"
        return self.context.request(self.model.model)

    def running_task(self) -> TaskRecord | None:
        """Return the task that has not ended, or None."""
        return self.tasks[-1] if self.tasks and not self.tasks[-1].ended else None

    def apply(self, seq: int, event: e.Event) -> None:
        """Fold in one event, which has journal number `seq`."""
        match event:
            case e.SessionStarted():
                self.started, self.settings, self.extensions = event, dict(event.settings), event.extensions
            case e.ModelChosen():
                self.model = event
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
            case _:
                self._apply_call(seq, event)
                self._apply_choice(event)
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

    def _apply_choice(self, event: e.Event) -> None:
        match event:
            case e.SettingChanged(name=name, value=value):
                self.settings[name] = value
            case e.ExtensionsChanged():
                self.extensions, self.settings = event.extensions, dict(event.settings)
            case e.FaultChosen(fault=fault):
                self.fault = fault
            case e.SessionNamed(name=name):
                self.name = name
            case e.Ticked(tick=tick, on=on):
                (self.ticked.add if on else self.ticked.discard)(tick)
            case _:
                pass

    def _apply_call(self, seq: int, event: e.Event) -> None:
        match event:
            case e.ModelCallStarted():
                self.turn = event.turn
                known = (seq, event.call, event.task, "turn", event.parts, self.context.total)
                self.calls.append(CallRecord(*known, projected=event.projected))
            case e.SummaryCallStarted():
                parts: dict[Category, Size] = {"summary": event.size}
                self.calls.append(CallRecord(seq, event.call, event.task, "summary", parts, event.size))
            case e.ModelCallEnded():
                self._end_call(event.usage, event.seconds)
                self.ended = event.call
                # A reply with nothing in it is no message: providers refuse an empty one.
                if event.text.strip() or event.calls:
                    reasoning = event.reasoning if event.calls else ""
                    self.add(seq, event.task, AssistantMessage(event.text, event.calls, reasoning))
                self.unanswered |= {call.id: call for call in event.calls}
                self.call_ids |= {call.id for call in event.calls}
            case e.SummaryCallEnded():
                self._end_call(event.usage, event.seconds)
            case _:
                pass

    def _end_call(self, usage: Usage, seconds: float) -> None:
        self.calls[-1] = replace(self.calls[-1], usage=usage, seconds=seconds)

    def _instruct(self, seq: int, event: e.InstructionsSet) -> None:
        system = system_message(event)
        made = Instructed(seq, event, self._measure(system), size_of_tools(event.tools))
        self.instructed.append(made)
        self.context.instruct(system, made.system, event.tools, made.tools)


def system_message(event: e.InstructionsSet) -> Wire:
    """Return the system prompt as it stands on the wire."""
    return {"role": "system", "content": event.system}


def fold(numbered: Iterable[tuple[int, e.Event]], known: Mapping[int, Entry] | None = None) -> State:
    """Return the state after all of `numbered`, pairs of journal number and event. known: as for `State`."""
    state = State(known=known)
    for seq, event in numbered:
        state.apply(seq, event)
    return state


def rebuild(numbered: Iterable[tuple[int, e.Event]], call: int) -> Request:
    """Return the request of model call number `call` as it was sent. KeyError: there was no such call."""
    state = State()
    for seq, event in numbered:
        match event:
            case e.ModelCallStarted() if event.call == call:
                request = state.request()
                return replace(request, messages=project(request.messages, event.projected))
            case e.SummaryCallStarted() if event.call == call:
                assert state.model, "a session chooses its model before its first request"
                return Request(state.model.model, event.messages, (), event.max_tokens, event.extra)
            case _:
                state.apply(seq, event)
    raise KeyError(call)
