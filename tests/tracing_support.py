"""Checks that hold for the spans of any session, and sessions to hold them against."""

from collections.abc import Sequence
from typing import Any

from harness import events as e
from harness.recorded import Recorded
from harness.replay import rebuild
from harness.tracing.span import Span
from harness.tracing.tracer import Tracer, spans_of


def inner(recorded: Recorded) -> tuple[int, Any]:
    event = recorded.event
    return (event.child, event.event) if isinstance(event, e.ChildEvent) else (0, event)


def named(spans: Sequence[Span], word: str) -> list[Span]:
    return [span for span in spans if span.name.split(" ")[0] == word]


def assert_holds(session: str, records: Sequence[Recorded]) -> list[Span]:
    """What must be true of every session's spans; return them."""
    spans = spans_of(session, records)
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans), "an id names one span"
    for span in spans:
        assert span.session == session
        assert span.end is None or span.begin <= span.end, span.name
        if span.parent:
            above = by_id[span.parent]
            assert above.trace == span.trace and above.begin <= span.begin, span.name
            assert above.end is None or (span.end is not None and span.end <= above.end), f"{span.name} in {above.name}"
    assert_calls(spans, records)
    assert [(s.id, s.end, s.fault) for s in followed(session, records)] == [(s.id, s.end, s.fault) for s in spans]
    return spans


def followed(session: str, records: Sequence[Recorded]) -> list[Span]:
    """The spans of a fold that sees no state and keeps nothing that was sent."""
    tracer, spans = Tracer(session), []
    for recorded in records:
        spans += tracer.fold(recorded)
    return sorted([*spans, *tracer.open], key=lambda span: span.seq)


def assert_calls(spans: Sequence[Span], records: Sequence[Recorded]) -> None:
    """Each model call and each summary call has its LLM span, with the request as the journal rebuilds it."""
    numbered = [(each.seq, each.event) for each in records]
    begun = {(span.child, span.begun.call): span for span in spans if span.kind == "LLM"}
    asked = [(child, event) for child, event in map(inner, records)
             if isinstance(event, e.ModelCallStarted | e.SummaryCallStarted)]  # fmt: skip
    assert set(begun) == {(child, event.call) for child, event in asked}
    for child, event in asked:
        assert begun[child, event.call].request == rebuild(numbered, event.call, child)
    ends = {(child, event.call): event for child, event in map(inner, records)
            if isinstance(event, e.ModelCallEnded | e.ModelCallFailed | e.SummaryCallEnded)}  # fmt: skip
    for key, event in ends.items():
        assert begun[key].ended == event
    results = [event.call_id for _, event in map(inner, records) if isinstance(event, e.ToolEnded)]
    assert len([span for span in spans if span.kind == "TOOL" and span.ended]) == len(results)
