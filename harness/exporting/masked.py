"""A session's events with every secret in them masked, and otherwise as they were: what exports are made of."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from harness.masking import mask
from harness.recorded import Recorded, decode, encode

# The names of calls, by which events belong together.
_IDS = frozenset({"id", "call_id", "tool_call_id"})


def masked(records: Sequence[Recorded]) -> list[Recorded]:
    """Return the events, masked, with their numbers and times. Where the folder lies on this machine is left out."""
    return [Recorded(each.seq, each.time, _masked(each)) for each in records]


def _masked(recorded: Recorded) -> Any:
    kind, body = encode(recorded.event)
    value = json.loads(body)
    told = _told(value)
    if kind == "SessionStarted":
        told["source"] = ""
    # Most events hold no secret, and to build them anew takes longer than to look.
    return recorded.event if told == value else decode(kind, json.dumps(told))


def _told(value: Any) -> Any:
    match value:
        case dict():
            return {name: _name(each) if name in _IDS else _told(each) for name, each in value.items()}
        case list():
            return [_told(each) for each in value]
        case str():
            return mask(value)
        case _:
            return value


def _name(call_id: Any) -> Any:
    """Return the name of a call. A model may name one after a secret, and then no two may become the same."""
    if not isinstance(call_id, str) or mask(call_id) == call_id:
        return call_id
    return f"call-{hashlib.sha256(call_id.encode()).hexdigest()[:16]}"
