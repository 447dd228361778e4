"""The model calls of a session, their replies, and which tool calls wait for a result. `replay` folds into this."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness import events as e
from harness.changes import Changes
from harness.context import Entry
from harness.messages import AssistantMessage, ToolCall
from harness.records import CallRecord
from harness.request import Wire
from harness.sizes import Category, Size, Usage
from harness.spent import Spent


class Replies(Changes):
    """The calls and replies of a session. measure, known: as for `State`."""

    def __init__(self, measure: Callable[[Wire], Size], known: Mapping[int, Entry]) -> None:
        super().__init__(measure, known)
        self.calls: list[CallRecord] = []
        self.turn = 0  # of the newest task
        self.ended = 0  # the number of the newest turn's call that got a reply and whose request is still the context's
        self.unanswered: dict[str, ToolCall] = {}
        self.call_ids: set[str] = set()
        self.spent = Spent()
        self.nested = 0  # events of sub-agents since the newest turn's request

    def reply(self, seq: int, event: e.Event) -> None:
        """Fold in one event of a model call; others change nothing."""
        match event:
            case e.ModelCallStarted():
                self.turn, self.nested = event.turn, 0
                known = (seq, event.call, event.task, "turn", event.parts, self.context.total)
                self._begin_call(CallRecord(*known, projected=event.projected))
            case e.SummaryCallStarted():
                parts: dict[Category, Size] = {"summary": event.size}
                self._begin_call(CallRecord(seq, event.call, event.task, "summary", parts, event.size))
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

    def _begin_call(self, call: CallRecord) -> None:
        self.calls.append(call)
        self.spent = self.spent.asked(call.size)

    def _end_call(self, usage: Usage, seconds: float) -> None:
        self.spent = self.spent.answered(usage)
        self.calls[-1] = replace(self.calls[-1], usage=usage, seconds=seconds)
