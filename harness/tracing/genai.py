"""The attributes of OpenTelemetry's conventions for generative AI, which are still in development."""

from collections.abc import Iterator, Sequence
from typing import Any

from harness import events as e
from harness.request import Wire
from harness.tracing.messages import Value, as_json, from_json
from harness.tracing.span import Span

# The names for those who answer; each but the first two speaks OpenAI's protocol and is no company's service.
PROVIDERS = {
    "openai": "openai",
    "deepseek": "deepseek",
    "compatible": "openai-compatible",
    "local": "llama.cpp",
    "offline": "context-lab-offline",
}


def genai(span: Span, messages: Sequence[Wire], reply: Wire | None) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a span. messages: what a model call sent, masked; reply: what came back, masked."""
    yield "gen_ai.conversation.id", span.session
    if span.kind in ("AGENT", "LLM") and span.model:
        yield "gen_ai.provider.name", PROVIDERS[span.model.provider]
    match span.kind:
        case "AGENT":
            yield "gen_ai.operation.name", "invoke_agent"
            yield "gen_ai.agent.name", name_of(span)
        case "TOOL":
            yield from _tool(span)
        case "LLM":
            yield from _call(span, messages, reply)
    if span.fault:
        yield "error.type", span.fault


def name_of(span: Span) -> str:
    """Return the name of the agent that a span is of: a sub-agent's role, else the session's own."""
    return span.begun.role if isinstance(span.begun, e.ChildStarted) else "context-lab"


def _tool(span: Span) -> Iterator[tuple[str, Value]]:
    call = span.begun
    yield "gen_ai.operation.name", "execute_tool"
    yield "gen_ai.tool.type", "function"
    if isinstance(call, e.ToolStarted | e.ToolEnded):
        yield "gen_ai.tool.name", call.name
        yield "gen_ai.tool.call.id", call.call_id
        yield "gen_ai.tool.call.arguments", from_json(call.arguments)[0]


def _call(span: Span, messages: Sequence[Wire], reply: Wire | None) -> Iterator[tuple[str, Value]]:
    yield "gen_ai.operation.name", "chat"
    if span.model:
        yield "gen_ai.request.model", span.model.model
    yield "gen_ai.request.stream", True
    if span.request and span.request.max_tokens is not None:
        yield "gen_ai.request.max_tokens", span.request.max_tokens
    if system := [part for each in messages if each["role"] == "system" for part in _parts(each)]:
        yield "gen_ai.system_instructions", as_json(system)[0]
    if others := [each for each in messages if each["role"] != "system"]:
        told = [{"role": each["role"], "parts": list(_parts(each))} for each in others]
        yield "gen_ai.input.messages", as_json(told)[0]
    if span.compacted:
        # Never false: unset means that nothing is known of it.
        yield "gen_ai.conversation.compacted", True
    if isinstance(ended := span.ended, e.ModelCallEnded | e.SummaryCallEnded):
        if ended.finish:
            yield "gen_ai.response.finish_reasons", [ended.finish]
        counted = (ended.usage.prompt, ended.usage.completion, ended.usage.cached)
        for name, tokens in zip(("input_tokens", "output_tokens", "cache_read.input_tokens"), counted, strict=True):
            if tokens is not None:
                yield f"gen_ai.usage.{name}", tokens
    if reply:
        finish = getattr(span.ended, "finish", "")
        told = [{"role": "assistant", "parts": list(_parts(reply)), "finish_reason": finish}]
        yield "gen_ai.output.messages", as_json(told)[0]


def _parts(message: Wire) -> Iterator[dict[str, Any]]:
    if message.get("reasoning_content"):
        yield {"type": "reasoning", "content": message["reasoning_content"]}
    if message["role"] == "tool":
        yield {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
    elif message.get("content"):
        yield {"type": "text", "content": message["content"]}
    for call in message.get("tool_calls", ()):
        function = call["function"]
        yield {"type": "tool_call", "id": call["id"], "name": function["name"], "arguments": function["arguments"]}
