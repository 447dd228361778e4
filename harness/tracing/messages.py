"""A request and its reply as the flat names of OpenInference: one attribute a field of a message.

Texts come masked and are cut where they are long; each cut says how much is missing.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness.masking import mask_all
from harness.request import Request, Wire, dump

Value = str | int | float | bool | list[str]
# Characters of one text, and of one JSON document.
TEXT_CHARS, JSON_CHARS = 32_000, 400_000
TEXT, JSON = "text/plain", "application/json"


def cut(text: str, limit: int = TEXT_CHARS) -> str:
    """Return at most `limit` characters of `text`, and behind them how many more there were."""
    left = len(text) - limit
    return f"{text[:limit]}\n[{left} more characters left out]" if left > 0 else text


def masked(value: Any) -> Any:
    """Return a value of JSON with no secret and no long text in it."""
    return _cut_all(mask_all(value))


def as_json(value: Any) -> tuple[str, str]:
    """Return a masked value as JSON, with its MIME type: a document that had to be cut is plain text."""
    text = dump(value)
    return (text, JSON) if len(text) <= JSON_CHARS else (cut(text, JSON_CHARS), TEXT)


def from_json(text: str) -> tuple[str, str]:
    """Return a text that should be JSON, masked, with its MIME type: what a model wrote may be none."""
    try:
        return as_json(masked(json.loads(text or "{}")))
    except (ValueError, RecursionError):
        return masked(text), TEXT


def sent(request: Request) -> list[Wire]:
    """Return the messages of a request, masked."""
    return [masked(message) for message in request.messages]


def flat(place: str, messages: Sequence[Wire]) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of masked messages. place: `llm.input_messages` or `llm.output_messages`."""
    for number, message in enumerate(messages):
        name = f"{place}.{number}.message"
        yield f"{name}.role", str(message["role"])
        if message.get("content"):
            yield f"{name}.content", str(message["content"])
        if message.get("tool_call_id"):
            yield f"{name}.tool_call_id", str(message["tool_call_id"])
        for place_of_call, call in enumerate(message.get("tool_calls", ())):
            own, function = f"{name}.tool_calls.{place_of_call}.tool_call", call["function"]
            yield f"{own}.id", str(call["id"])
            yield f"{own}.function.name", str(function["name"])
            yield f"{own}.function.arguments", from_json(function["arguments"])[0]


def parameters(request: Request) -> Wire:
    """Return what a request says beside its model, its messages and its tools."""
    return {name: value for name, value in request.payload().items() if name not in ("model", "messages", "tools")}


def _cut_all(value: Any) -> Any:
    match value:
        case str():
            return cut(value)
        case dict():
            return {name: _cut_all(each) for name, each in value.items()}
        case list() | tuple():
            return [_cut_all(each) for each in value]
        case _:
            return value
