"""An event as the journal keeps it: numbered, dated, and as text. Knows no database."""

import functools
import json
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.child_events import INSIDE
from harness.events import EVENTS, ChildEvent, Event
from harness.messages import clean
from harness.problems import Problem


class JournalError(Problem):
    """The journal cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its number in the session (from 1) and the time it was recorded (seconds, Unix)."""

    seq: int
    time: float
    event: Event


def encode(happened: Event) -> tuple[str, str]:
    """Return an event as (kind, JSON body)."""
    body = asdict(happened)
    if isinstance(happened, ChildEvent):
        body["kind"] = type(happened.event).__name__
    return type(happened).__name__, clean(json.dumps(body, ensure_ascii=False))


def decode(kind: str, body: str) -> Event:
    """Return the event that `encode` wrote. JournalError: unknown kind, or fields that do not fit."""
    if kind not in EVENTS:
        raise JournalError("journal_unknown_event", kind=kind)
    try:
        if kind == ChildEvent.__name__:
            return _decode_inside(_INSIDE.validate_json(body))
        return _adapter(kind).validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise JournalError("journal_bad_event", kind=kind, field=field, reason=first["msg"]) from error


@dataclass(frozen=True, slots=True)
class _Inside:
    """An event of a sub-agent, as its body holds it."""

    child: int
    kind: str
    event: dict[str, Any]


_INSIDE = TypeAdapter(_Inside)


def _decode_inside(body: _Inside) -> ChildEvent:
    if body.kind not in INSIDE:
        raise JournalError("journal_unknown_event", kind=body.kind)
    return ChildEvent(child=body.child, event=decode(body.kind, json.dumps(body.event)))


@functools.cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(EVENTS[kind])
