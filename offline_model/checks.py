"""Turns the bytes of a request into a ChatRequest, or says what is wrong with them, as OpenAI does.

As strict as the strictest provider about the order of messages: a call without its result is refused here
too, so that a client that breaks a pair learns of it without a key.
"""

import json
from typing import Any

from offline_model.chat import Call, ChatRequest, Turn

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class BadRequest(Exception):
    """The request can't be served. Becomes a JSON error with this status."""

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None):
        super().__init__(message)
        self.message, self.status, self.code, self.param = message, status, code, param


def parse(body: bytes) -> ChatRequest:
    """Return the request in `body`. Raises BadRequest."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("The body is not valid JSON.") from None
    if not isinstance(data, dict):
        raise BadRequest("The body must be a JSON object.")
    model = data.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequest("You must provide a model.", param="model")
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("`messages` must be a list with at least one message.", param="messages")
    turns = tuple(_turn(message, f"messages.{i}") for i, message in enumerate(messages))
    _check_pairs(turns)
    tools = data.get("tools") or []
    parts = [canonical(tools)] if tools else []
    return ChatRequest(
        model=model,
        turns=turns,
        tools=_tool_names(tools),
        parts=(*parts, *(canonical(message) for message in messages)),
        stream=_flag(data, "stream"),
        include_usage=_include_usage(data),
        max_tokens=_max_tokens(data),
        reasoning_effort=_effort(data),
    )


def canonical(value: Any) -> bytes:
    """Return `value` as compact UTF-8 JSON; lone surrogates are kept as they are and never fail."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _turn(message: Any, where: str) -> Turn:
    if not isinstance(message, dict):
        raise BadRequest("Each message must be an object.", param=where)
    role = ROLES.get(str(message.get("role")))
    if role is None:
        raise BadRequest(f"Invalid role: `{message.get('role')}`.", param=f"{where}.role")
    calls = tuple(_call(each, where) for each in _list(message.get("tool_calls"), f"{where}.tool_calls"))
    if calls and role != "assistant":
        raise BadRequest("Only an assistant message may hold `tool_calls`.", param=where)
    content = message.get("content")
    if content is None and not calls:
        raise BadRequest("`content` is missing.", param=f"{where}.content")
    call_id = message.get("tool_call_id")
    if role == "tool" and not (isinstance(call_id, str) and call_id):
        raise BadRequest("A tool message needs a `tool_call_id`.", param=f"{where}.tool_call_id")
    return Turn(role, _text(content, where), calls, call_id if role == "tool" else "")  # type: ignore[arg-type]


def _text(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise BadRequest("`content` must be a string or a list of parts.", param=f"{where}.content")
    return "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")


def _call(value: Any, where: str) -> Call:
    function = value.get("function") if isinstance(value, dict) else None
    named = isinstance(function, dict) and isinstance(function.get("name"), str)
    if not named or not isinstance(value.get("id"), str) or not isinstance(function.get("arguments"), str):
        raise BadRequest("A tool call needs an id, a name and arguments as a string.", param=f"{where}.tool_calls")
    return Call(value["id"], function["name"], function["arguments"])


def _check_pairs(turns: tuple[Turn, ...]) -> None:
    """Refuse a result without a call directly before it, and a call without a result."""
    waiting: set[str] = set()
    for i, turn in enumerate(turns):
        if turn.role == "tool":
            if turn.call_id not in waiting:
                raise BadRequest(
                    "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
                    param=f"messages.{i}.role",
                )
            waiting.discard(turn.call_id)
            continue
        if waiting:
            break
        waiting = {call.id for call in turn.calls}
    if waiting:
        missing = ", ".join(sorted(waiting))
        raise BadRequest(
            "An assistant message with 'tool_calls' must be followed by a tool message for each "
            f"'tool_call_id'. No result for: {missing}",
            param="messages",
        )


def _tool_names(tools: Any) -> tuple[str, ...]:
    names = []
    for tool in _list(tools, "tools"):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BadRequest("Each tool needs `function.name`.", param="tools")
        names.append(function["name"])
    return tuple(names)


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRequest("A list was expected.", param=where)
    return value


def _flag(data: dict[str, Any], name: str) -> bool:
    value = data.get(name, False)
    if value is not None and not isinstance(value, bool):
        raise BadRequest(f"`{name}` must be true or false.", param=name)
    return bool(value)


def _include_usage(data: dict[str, Any]) -> bool:
    options = data.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise BadRequest("`stream_options` must be an object.", param="stream_options")
    return _flag(options or {}, "include_usage")


def _effort(data: dict[str, Any]) -> str:
    value = data.get("reasoning_effort")
    if value is not None and not isinstance(value, str):
        raise BadRequest("`reasoning_effort` must be a string.", param="reasoning_effort")
    return value or ""


def _max_tokens(data: dict[str, Any]) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = data.get(name)
        if value is not None:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise BadRequest(f"`{name}` must be a positive whole number.", param=name)
            return value
    return None
