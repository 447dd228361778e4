"""How a reply looks on the wire: one JSON object, or server-sent events. Knows nothing of how it came about."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from offline_model.chat import ChatRequest, Reply
from offline_model.checks import BadRequest

PIECE = 12
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Counted:
    """The usage of one call, in tokens of this server."""

    prompt: int
    completion: int
    cached: int


def completion(request: ChatRequest, reply: Reply, used: Counted, identity: str, created: int) -> bytes:
    """Return the body of a reply that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in reply.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    head = {"id": identity, "object": "chat.completion", "created": created, "model": request.model}
    return dump(head | {"choices": [choice], "usage": usage(used)})


def chunks(request: ChatRequest, reply: Reply, used: Counted, identity: str, created: int) -> Iterator[bytes]:
    """Yield the events of a streamed reply, in small pieces, without the closing [DONE]."""
    head = {"id": identity, "object": "chat.completion.chunk", "created": created, "model": request.model}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return frame(head | {"choices": [choice]} | ({"usage": None} if request.include_usage else {}))

    yield event({"role": "assistant", "content": ""})
    for piece in pieces(reply.text):
        yield event({"content": piece})
    for index, call in enumerate(reply.calls):
        opening = {"name": call.name, "arguments": ""}
        yield event({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": opening}]})
        for piece in pieces(call.arguments):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, reply.finish)
    if request.include_usage:
        yield frame(head | {"choices": [], "usage": usage(used)})


def usage(used: Counted) -> dict[str, Any]:
    """Return the usage object. Cached tokens are part of the prompt tokens."""
    return {
        "prompt_tokens": used.prompt,
        "completion_tokens": used.completion,
        "total_tokens": used.prompt + used.completion,
        "prompt_tokens_details": {"cached_tokens": used.cached},
    }


def pieces(text: str) -> list[str]:
    """Return `text` in the pieces in which it is streamed; together they are the text."""
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def failure(error: BadRequest) -> bytes:
    """Return the body of an error."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return dump({"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}})


def models(name: str, window: int) -> bytes:
    """Return the model list. `max_model_len` is what vLLM calls the window, in tokens."""
    entry = {"id": name, "object": "model", "created": 0, "owned_by": "context-lab", "max_model_len": window}
    return dump({"object": "list", "data": [entry]})


def frame(value: dict[str, Any]) -> bytes:
    """Return one server-sent event."""
    return b"data: " + dump(value) + b"\n\n"


def dump(value: Any) -> bytes:
    """Return compact JSON; a lone surrogate becomes U+FFFD, since UTF-8 can't carry it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
