"""A span: one piece of work in a session, with its begin, its end, and the events that tell of it.

Knows nothing of OpenTelemetry and of how it is shown: `attributes` says what a trace viewer is told of it.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from harness.events import Event
from harness.request import Request, Wire
from harness.session_events import ModelChosen

# OpenInference's kinds, as far as a session has them. AGENT: a task or a sub-agent. CHAIN: a turn, an approval, a
# compaction. LLM: a model call. TOOL: a tool call. EVALUATOR: a check of the task.
Kind = Literal["AGENT", "CHAIN", "LLM", "TOOL", "EVALUATOR"]


@dataclass(slots=True, kw_only=True)
class Span:
    """One piece of work. `seq`: the journal number of the event that it began with; `task`: its task, or 0.

    trace, id, parent: hexadecimal, 32, 16 and 16 digits; the parent of a trace's root is "". child: the sub-agent's
    number, 0 for the session's own agent. begin, end: seconds since 1970; end is None while the work goes on.
    fault: a code for what went wrong, "" where nothing did: of a task the reason of its end, of a tool call "error" or,
    where it never ran, "not_run"; of an approval "denied", "timeout" or "stopped"; of a model call the kind of its
    failure, of a check its outcome, of a compaction why it was refused; "stopped" or "interrupted" of whatever a person
    or a kill cut short.
    begun, ended: the events at its ends. asked, answer: of an AGENT, what it is to do and its final answer. request:
    what a model call sent, tool: the definition of a call's tool, where that was asked for. compacted: some of the
    request's context is a summary. happened: what took no time, each with its moment.
    """

    session: str
    kind: Kind
    name: str
    trace: str
    id: str
    parent: str
    seq: int
    task: int
    child: int
    begin: float
    begun: Event
    end: float | None = None
    ended: Event | None = None
    fault: str = ""
    model: ModelChosen | None = None
    request: Request | None = None
    compacted: bool = False
    tool: Wire | None = None
    asked: str = ""
    answer: str = ""
    happened: list[tuple[float, Event]] = field(default_factory=list)


def name_trace(session: str, seq: int) -> str:
    """Return the id of the trace whose first event has journal number `seq`: always the same, so none comes twice."""
    return _hexadecimal(f"trace {session} {seq}", 32)


def name_span(session: str, seq: int, kind: str) -> str:
    """Return the id of the span that begins at `seq`; two of different kinds may begin there."""
    return _hexadecimal(f"span {session} {seq} {kind}", 16)


def _hexadecimal(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
