"""The exact payload of one model call, and how messages look on the Chat Completions wire.

Knows nothing of where the messages come from.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from harness.messages import AssistantMessage, Message, SummaryMessage, ToolResult, UserMessage

Wire = dict[str, Any]
# Made once: for a short message to make it took as long as to write the JSON.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Request:
    """One model call: `messages` and `tools` as they stand on the wire, system prompt first.

    extra: further fields of the body, such as the thinking that a provider is asked for.
    """

    model: str
    messages: tuple[Wire, ...]
    tools: tuple[Wire, ...] = ()
    max_tokens: int | None = None
    extra: Wire = field(default_factory=dict)

    def payload(self) -> Wire:
        """Return the JSON body, its keys always in the same order."""
        body: Wire = {"model": self.model, "messages": list(self.messages)}
        if self.tools:
            body["tools"] = list(self.tools)
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        return body | self.extra | {"stream": True, "stream_options": {"include_usage": True}}

    def body(self) -> bytes:
        """Return the bytes that go out: compact JSON in UTF-8."""
        return dump(self.payload()).encode()


def dump(value: object) -> str:
    """Return `value` as the compact JSON that is sent and measured: dump({"a": "é"}) -> '{"a":"é"}'."""
    return _ENCODER.encode(value)


def to_wire(message: Message) -> Wire:
    """Return one message as Chat Completions wants it."""
    match message:
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case SummaryMessage():
            return {"role": message.role, "content": message.content}
        case ToolResult(call_id=call_id, text=text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case AssistantMessage():
            return _assistant(message)


def _assistant(message: AssistantMessage) -> Wire:
    wire: Wire = {"role": "assistant", "content": message.text}
    if message.calls:
        wire["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.calls
        ]
        # DeepSeek's thinking mode answers 400 when a call comes back without the thought that led to it.
        if message.reasoning:
            wire["reasoning_content"] = message.reasoning
    return wire


def digest(request: Request) -> str:
    """Return the sha256 over messages, model, tools and limit; equal requests have equal digests."""
    running = hashlib.sha256()
    for message in request.messages:
        running.update(line(message))
    return finish(running, request.model, request.tools, request.max_tokens, request.extra)


def line(message: Wire) -> bytes:
    """Return what one message adds to the running hash."""
    return dump(message).encode() + b"\n"


def finish(
    running: "hashlib._Hash",
    model: str,
    tools: tuple[Wire, ...],
    max_tokens: int | None = None,
    extra: Wire | None = None,
) -> str:
    """Return the digest of a request from the running hash of its messages, so that no turn rereads them."""
    whole = running.copy()
    whole.update(dump([model, list(tools), max_tokens, *([extra] if extra else [])]).encode())
    return whole.hexdigest()
