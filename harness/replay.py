"""Folds events into the state of a session: history, context, calls, tasks. The live session and a reload
use this one fold, so what is rebuilt is what was sent. Knows nothing of storage, models or tools.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from harness import events as e
from harness.context import Context, Entry, make_entry
from harness.messages import AssistantMessage, Message, SummaryMessage, ToolCall, ToolResult, UserMessage
from harness.request import Request, Wire
from harness.sizes import Category, Size, Usage
from harness.tokens import size_of_message, size_of_tools


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One model call and its request by category; usage and seconds are None until a reply came."""

    seq: int
    call: int
    task: int
    purpose: str
    parts: dict[Category, Size]
    usage: Usage | None = None
    seconds: float | None = None

    @property
    def size(self) -> Size:
        """Return the size of the whole request."""
        return sum(self.parts.values(), Size())


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One user request; `seq` is where it starts. `ended` is the reason code, or empty while it runs."""

    task: int
    seq: int
    text: str
    sample: str
    language: str
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that took effect, with its journal number and the entries that it removed."""

    seq: int
    event: e.ContextCompacted
    removed: tuple[Entry, ...]


class State:
    """What the events so far add up to. `measure` gives the size of a message on the wire."""

    def __init__(self, measure: Callable[[Wire], Size] = size_of_message) -> None:
        self.started: e.SessionStarted | None = None
        self.model: e.ModelChosen | None = None
        self.instructions: e.InstructionsSet | None = None
        self.settings: dict[str, int] = {}
        self.history: list[Entry] = []
        self.context = Context()
        self.calls: list[CallRecord] = []
        self.tasks: list[TaskRecord] = []
        self.compactions: list[Compaction] = []
        self.unanswered: dict[str, ToolCall] = {}
        self.call_ids: set[str] = set()
        self._measure = measure

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
                self.started, self.settings = event, dict(event.settings)
            case e.ModelChosen():
                self.model = event
            case e.InstructionsSet():
                self._instruct(event)
            case e.SettingChanged(name=name, value=value):
                self.settings[name] = value
            case e.TaskStarted():
                self.tasks.append(TaskRecord(event.task, seq, event.text, event.sample, event.language))
                self._add(seq, event.task, UserMessage(event.text))
            case e.FollowUpAdded():
                self._add(seq, event.task, UserMessage(event.text, author="extension"))
            case e.ToolEnded():
                self.unanswered.pop(event.call_id, None)
                self._add(seq, event.task, ToolResult(event.call_id, event.name, event.text, event.ok))
            case e.TaskEnded(reason=reason):
                self.tasks[-1] = replace(self.tasks[-1], ended=reason)
            case e.ContextCompacted():
                self._compact(seq, event)
            case _:
                self._apply_call(seq, event)

    def _apply_call(self, seq: int, event: e.Event) -> None:
        match event:
            case e.ModelCallStarted():
                self.calls.append(CallRecord(seq, event.call, event.task, "turn", event.parts))
            case e.SummaryCallStarted():
                parts: dict[Category, Size] = {"summary": event.size}
                self.calls.append(CallRecord(seq, event.call, event.task, "summary", parts))
            case e.ModelCallEnded():
                self._end_call(event.usage, event.seconds)
                # A reply with nothing in it is no message: providers refuse an empty one.
                if event.text.strip() or event.calls:
                    reasoning = event.reasoning if event.calls else ""
                    self._add(seq, event.task, AssistantMessage(event.text, event.calls, reasoning))
                self.unanswered |= {call.id: call for call in event.calls}
                self.call_ids |= {call.id for call in event.calls}
            case e.SummaryCallEnded():
                self._end_call(event.usage, event.seconds)
            case _:
                pass

    def _end_call(self, usage: Usage, seconds: float) -> None:
        self.calls[-1] = replace(self.calls[-1], usage=usage, seconds=seconds)

    def _instruct(self, event: e.InstructionsSet) -> None:
        self.instructions = event
        system: Wire = {"role": "system", "content": event.system}
        self.context.instruct(system, self._measure(system), event.tools, size_of_tools(event.tools))

    def _add(self, seq: int, task: int, message: Message) -> None:
        entry = make_entry(seq, task, message, self._measure)
        self.history.append(entry)
        self.context.append(entry)

    def _compact(self, seq: int, event: e.ContextCompacted) -> None:
        message = SummaryMessage(event.preface, event.summary)
        summary = make_entry(seq, event.task, message, self._measure)
        removed = self.context.replace_before(event.cut, summary)
        self.compactions.append(Compaction(seq, event, tuple(removed)))


def fold(numbered: Iterable[tuple[int, e.Event]]) -> State:
    """Return the state after all of `numbered`, pairs of journal number and event."""
    state = State()
    for seq, event in numbered:
        state.apply(seq, event)
    return state


def rebuild(numbered: Iterable[tuple[int, e.Event]], call: int) -> Request:
    """Return the request of model call number `call` as it was sent. KeyError: there was no such call."""
    state = State()
    for seq, event in numbered:
        match event:
            case e.ModelCallStarted() if event.call == call:
                return state.request()
            case e.SummaryCallStarted() if event.call == call:
                assert state.model, "a session chooses its model before its first request"
                return Request(state.model.model, event.messages, (), event.max_tokens)
            case _:
                state.apply(seq, event)
    raise KeyError(call)
