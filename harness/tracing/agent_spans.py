"""The spans of one agent, the session's own or a sub-agent: what is open, and what each event begins and ends."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness import events as e
from harness.loop import STOPPED_RESULT
from harness.reopening import INTERRUPTED
from harness.request import Request
from harness.session_events import ModelChosen
from harness.tracing.span import Kind, Span, name_span
from harness.tracing.taken import Taken

# Why a summary call's reply ended, where nothing went wrong with the call itself.
_ENDS = ("stop", "length", "tool_calls", "content_filter", "")
_DENIED = {"person": "denied", "timeout": "timeout", "stop": "stopped"}
# The results that the harness itself gives to calls that were cut short.
_CUT_SHORT = {STOPPED_RESULT: "stopped", INTERRUPTED: "interrupted"}


@dataclass(slots=True)
class At:
    """Where the fold stands: session, trace, task and model in force; journal number and time of the event.

    alive: the time of the last event before a kill that this event tells of, else the event's own. taken: what was
    kept of the state, None where nothing is asked for.
    """

    session: str
    trace: str = ""
    task: int = 0
    model: ModelChosen | None = None
    seq: int = 0
    time: float = 0
    alive: float = 0
    taken: Taken | None = None
    requests: bool = False


@dataclass(slots=True)
class AgentSpans:
    """The open spans of one agent, in order of begin. made: the number of its newest compaction.

    waiting: the calls of its newest reply without a result yet. answer: the text of its newest reply without calls.
    """

    child: int = 0
    made: int = 0
    open: list[Span] = field(default_factory=list)
    root: Span | None = None
    turn: Span | None = None
    call: Span | None = None
    check: Span | None = None
    compaction: Span | None = None
    summary: Span | None = None
    calls: dict[str, Span] = field(default_factory=dict)
    asks: dict[str, Span] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    answer: str = ""
    worked: float = 0  # until when any call of the turn was worked on; calls side by side end in any order

    def begin(self, at: At, kind: Kind, name: str, event: e.Event, parent: Span | None) -> Span:
        """Open a span that begins with `event`."""
        above = parent.id if parent else ""
        span = Span(
            session=at.session, kind=kind, name=name, trace=at.trace, id=name_span(at.session, at.seq, kind),
            parent=above, seq=at.seq, task=at.task, child=self.child, begin=at.time, begun=event, model=at.model,
        )  # fmt: skip
        self.open.append(span)
        return span

    def end(self, span: Span | None, end: float, event: e.Event | None = None, fault: str = "") -> Iterator[Span]:
        """Close a span, if it is open. fault: "" for the one that it has."""
        if span is None or span.end is not None:
            return
        self.open = [each for each in self.open if each is not span]
        # A clock may have been set back meanwhile.
        span.end, span.ended, span.fault = max(span.begin, end), event, fault or span.fault
        for name in ("root", "turn", "call", "check", "compaction", "summary"):
            if getattr(self, name) is span:
                setattr(self, name, None)
        yield span

    def leave(self, end: float, event: e.Event | None, fault: str) -> Iterator[Span]:
        """Close whatever is open, the innermost first."""
        for span in reversed(self.open):
            if span is self.root:
                span.answer = "" if fault else self.answer
            yield from self.end(span, end, event if span is self.root else None, span.fault or fault)
        self.calls, self.asks, self.waiting, self.answer = {}, {}, set(), ""

    def follow(self, at: At, event: e.Event) -> Iterator[Span]:
        """Fold in an event of this agent, but for the begin and the end of its work; yield what ended with it."""
        match event:
            case e.ModelCallStarted() | e.ModelCallEnded() | e.ModelCallFailed():
                yield from self._turn(at, event)
            case e.ApprovalRequested(call_id=call_id, name=name):
                self.asks[call_id] = self.begin(at, "CHAIN", f"approval {name}", event, self.turn or self.root)
            case e.ApprovalAnswered(call_id=call_id, allowed=allowed, by=by):
                yield from self.end(self.asks.pop(call_id, None), at.time, event, "" if allowed else _DENIED[by])
            case e.ToolStarted(call_id=call_id, name=name):
                self.calls[call_id] = self.begin(at, "TOOL", name, event, self.turn or self.root)
                self.calls[call_id].tool = at.taken.tool if at.taken else None
            case e.CheckStarted():
                yield from self.end(self.turn, at.time)
                self.check = self.begin(at, "EVALUATOR", "check", event, self.root)
            case e.Verified(outcome=outcome):
                yield from self.end(self.check, at.time, event, "" if outcome == "passed" else outcome)
            case e.SummaryCallStarted() | e.SummaryCallEnded() | e.SummaryProposed() | e.SummaryAnswered():
                yield from self._summary(at, event)
            case e.ContextCompacted(number=number):
                self.made = number
                span = self.compaction or self.begin(at, "CHAIN", "", event, self.root)
                span.name = f"compaction {number}"
                yield from self.end(span, at.time, event)
            case e.CompactionRefused(reason=reason) if self.compaction:
                yield from self.end(self.compaction, at.time, event, reason)
            case _:
                if self.open:
                    self.open[-1].happened.append((at.time, event))

    def tool_ended(self, at: At, event: e.ToolEnded, end: float) -> Iterator[Span]:
        """Fold in the result of a call, which was worked on until `end`."""
        cut_short = _CUT_SHORT.get(event.text, "")
        yield from self.end(self.asks.pop(event.call_id, None), end, event, "interrupted")
        if started := self.calls.pop(event.call_id, None):
            yield from self.end(started, end, event, "" if event.ok else cut_short or "error")
        elif self.root:
            span = self.begin(at, "TOOL", event.name, event, self.turn or self.root)
            span.begin, span.tool = end, at.taken.tool if at.taken else None
            yield from self.end(span, end, event, "" if event.ok else cut_short or "not_run")
        self.waiting.discard(event.call_id)
        self.worked = max(self.worked, end)
        if not self.waiting and self.turn and not self.call:
            yield from self.end(self.turn, self.worked, None, cut_short)

    def _turn(self, at: At, event: e.Event) -> Iterator[Span]:
        match event:
            case e.ModelCallStarted(turn=turn, call=call):
                begun = self.turn.begun if self.turn else None
                if not (isinstance(begun, e.ModelCallStarted) and begun.turn == turn):
                    yield from self.end(self.turn, at.time)
                    self.turn, self.worked = self.begin(at, "CHAIN", f"turn {turn}", event, self.root), 0
                self.turn.fault = ""
                self.call = self.begin(at, "LLM", f"model call {call}", event, self.turn)
                if at.taken:
                    self.call.request, self.call.compacted = at.taken.request, at.taken.compacted
            case e.ModelCallEnded():
                stopped = "stopped" if event.finish == "stopped" else ""
                yield from self.end(self.call, at.time, event, stopped)
                self.waiting |= {call.id for call in event.calls}
                self.answer = "" if event.calls else event.text
                if not self.waiting:
                    yield from self.end(self.turn, at.time, None, stopped)
            case e.ModelCallFailed(kind=kind):
                yield from self.end(self.call, at.time, event, kind)
                if self.turn:
                    # It may be tried once more in the same turn.
                    self.turn.fault = kind

    def _summary(self, at: At, event: e.Event) -> Iterator[Span]:
        match event:
            case e.SummaryCallStarted(call=call):
                if not self.compaction:
                    self.compaction = self.begin(at, "CHAIN", f"compaction {self.made + 1}", event, self.root)
                self.summary = self.begin(at, "LLM", f"summary call {call}", event, self.compaction)
                if at.requests and at.model:
                    sent = (at.model.model, event.messages, (), event.max_tokens, event.extra)
                    self.summary.request = Request(*sent)
            case e.SummaryCallEnded(finish=finish):
                yield from self.end(self.summary, at.time, event, "" if finish in _ENDS else finish)
            case e.SummaryProposed():
                self.asks["summary"] = self.begin(at, "CHAIN", "approval summary", event, self.compaction)
            case e.SummaryAnswered(used=used, by=by):
                fault = "" if used else _DENIED[by]
                yield from self.end(self.asks.pop("summary", None), at.time, event, fault)
