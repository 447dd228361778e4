"""What of a span has no attribute of its own in any convention: plain figures with their units, codes and numbers."""

from typing import Any

from harness import events as e
from harness.tracing.span import Span

# So many numbers of messages are named; there may be thousands, and how many there are is said in any case.
_NAMED = 200


def metadata(span: Span) -> dict[str, Any]:
    """Return a span's metadata as a value of JSON. seq: the journal number of the event that it began with."""
    found: dict[str, Any] = {"seq": span.seq} | ({"task": span.task} if span.task else {})
    found |= {"sub_agent": span.child} if span.child else {}
    found |= {"fault": span.fault} if span.fault else {}
    match span.begun:
        case e.ModelCallStarted(parts=parts, turn=turn) if span.kind == "LLM":
            sizes = {name: {"characters": size.chars, "tokens_estimated": size.tokens} for name, size in parts.items()}
            found |= {"purpose": "turn", "turn": turn, "size": sizes, "estimated_with": "o200k_base"}
        case e.ModelCallStarted(turn=turn):
            found |= {"turn": turn}
        case e.SummaryCallStarted() if span.kind == "LLM":
            begun = span.begun
            size = {"characters": begun.size.chars, "tokens_estimated": begun.size.tokens}
            found |= {"purpose": "summary", "attempt": begun.attempt, "characters_left_out": begun.clipped}
            found |= {"size": {"summary": size}, "estimated_with": "o200k_base"}
        case e.TaskResumed(number=number, by=by):
            found |= {"resumed_from_checkpoint": number, "resumed_by": by}
        case e.CheckStarted(attempt=attempt, limit=limit):
            found |= {"attempt": attempt, "limit_seconds": limit}
    return found | _end(span.ended)


def _end(event: e.Event | None) -> dict[str, Any]:
    match event:
        case e.ModelCallEnded(marks=marks) if marks:
            return {"marks": list(marks)}
        case e.TaskEnded(reason=reason, detail=detail):
            return {"reason": reason} | ({"detail": detail} if detail else {})
        case e.ApprovalAnswered(allowed=allowed, by=by):
            return {"allowed": allowed, "by": by}
        case e.SummaryAnswered(used=used, changed=changed, by=by):
            return {"used": used, "changed": changed, "by": by}
        case e.Verified():
            return {"outcome": event.outcome, "exit": event.exit, "back": event.back}
        case e.CompactionRefused():
            return {"strategy": event.strategy, "trigger": event.trigger, "refused": event.reason} | (
                {"failures_in_a_row": event.failures} if event.failures else {}
            )
        case e.ContextCompacted():
            return _compaction(event)
        case _:
            return {}


def _compaction(event: e.ContextCompacted) -> dict[str, Any]:
    found: dict[str, Any] = {
        "strategy": event.strategy,
        "trigger": event.trigger,
        "source": "person" if event.trigger == "by hand" else "automatic",
        "scope": event.scope,
        "unit": event.unit,
        "threshold": event.budget,
        "before": event.measured,
        "after": event.measured_after,
        "request_characters": {"before": event.before.chars, "after": event.after.chars},
        "request_tokens_estimated": {"before": event.before.tokens, "after": event.after.tokens},
        "cut": event.cut,
        "messages_removed": len(event.removed),
        "messages_kept": len(event.kept),
        "messages_pinned": len(event.pinned),
    }
    for name in ("removed", "kept", "pinned"):
        numbers = getattr(event, name)
        found |= {name: list(numbers)} if len(numbers) <= _NAMED else {}
    found |= {"shortened": event.shortened} if event.shortened else {}
    found |= {"changed_by_person": True} if event.written else {}
    found |= {"focused_by_person": True} if event.focus else {}
    return found | {"summary_calls": list(event.calls), "summary_seconds": round(event.seconds, 3)}
