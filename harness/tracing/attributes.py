"""What a trace viewer is told of a span, in the names of OpenInference; `genai` adds those of OpenTelemetry.

Token attributes hold only what a provider reported. What we counted ourselves stands in `metadata`, with its unit.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from harness import events as e
from harness.masking import mask
from harness.request import Wire
from harness.tracing.genai import PROVIDERS, genai, name_of
from harness.tracing.messages import JSON, TEXT, Value, as_json, cut, flat, from_json, masked, parameters, sent
from harness.tracing.metadata import metadata
from harness.tracing.span import Span

Attributes = dict[str, Value]


def attributes(span: Span) -> Attributes:
    """Return the attributes of a span, masked and cut."""
    found: Attributes = {"openinference.span.kind": span.kind, "session.id": span.session}
    messages = sent(span.request) if span.request else []
    reply = _reply(span.ended)
    found |= dict(_own(span, messages, reply))
    found |= dict(genai(span, messages, reply))
    return found | {"metadata": as_json(masked(metadata(span)))[0]}


def happenings(span: Span) -> Iterator[tuple[str, float, Attributes]]:
    """Yield what took no time as (name, moment, attributes), and last the fault, as OpenTelemetry's exception."""
    for moment, event in span.happened:
        told = {each.name: getattr(event, each.name) for each in fields(event)}
        plain = {name: value for name, value in told.items() if isinstance(value, str | int | float)}
        yield type(event).__name__, moment, masked(plain)
    if is_error(span):
        text = cut(mask(_said(span.ended)))
        yield "exception", span.end or span.begin, {"exception.type": span.fault, "exception.message": text}


def is_error(span: Span) -> bool:
    """Whether something went wrong. A person who says no to a call is no error; that the call did not run is."""
    return bool(span.fault) and not isinstance(span.begun, e.ApprovalRequested | e.SummaryProposed)


def _own(span: Span, messages: list[Wire], reply: Wire | None) -> Iterator[tuple[str, Value]]:
    match span.begun:
        case e.TaskStarted() | e.TaskResumed() | e.ChildStarted():
            yield "agent.name", name_of(span)
            yield from _ends((masked(span.asked), TEXT), (masked(span.answer), TEXT) if span.answer else None)
        case e.ApprovalRequested(arguments=arguments):
            answer = span.ended if isinstance(span.ended, e.ApprovalAnswered) else None
            said = f"{'allowed' if answer.allowed else 'denied'} ({answer.by})" if answer else ""
            yield from _ends(from_json(arguments), (said, TEXT) if said else None)
        case e.SummaryProposed(text=text):
            answer = span.ended if isinstance(span.ended, e.SummaryAnswered) else None
            yield from _ends((masked(text), TEXT), (masked(answer.text), TEXT) if answer and answer.used else None)
        case e.ToolStarted(arguments=arguments) | e.ToolEnded(arguments=arguments):
            ended = span.ended
            yield from _ends(from_json(arguments), (masked(_said(ended)), TEXT) if ended else None)
            yield from _tool(span)
        case e.CheckStarted(command=command):
            yield from _ends((masked(command), TEXT), (masked(_said(span.ended)), TEXT))
        case e.ModelCallStarted() | e.SummaryCallStarted() if span.kind == "LLM":
            yield from _call(span, messages, reply)
        case e.SummaryCallStarted(messages=asked):
            made = span.ended if isinstance(span.ended, e.ContextCompacted) else None
            text = str(asked[-1].get("content", "")) if asked else ""
            yield from _ends((masked(text), TEXT), (masked(made.summary), TEXT) if made else None)
        case e.ContextCompacted(trigger=trigger, summary=summary):
            yield from _ends((trigger, TEXT), (masked(summary), TEXT))


def _ends(before: tuple[str, str], after: tuple[str, str] | None) -> Iterator[tuple[str, Value]]:
    yield "input.value", before[0]
    yield "input.mime_type", before[1]
    if after:
        yield "output.value", after[0]
        yield "output.mime_type", after[1]


def _tool(span: Span) -> Iterator[tuple[str, Value]]:
    yield "tool.name", getattr(span.begun, "name", "")
    yield "tool.id", getattr(span.begun, "call_id", "")
    if span.tool:
        yield "tool.description", masked(str(span.tool.get("function", {}).get("description", "")))
        yield "tool.json_schema", as_json(masked(span.tool))[0]


def _call(span: Span, messages: list[Wire], reply: Wire | None) -> Iterator[tuple[str, Value]]:
    yield "llm.system", "deepseek" if span.model and span.model.provider == "deepseek" else "openai"
    if span.model:
        yield "llm.provider", PROVIDERS[span.model.provider]
        yield "llm.model_name", span.model.model
    if request := span.request:
        whole: dict[str, Any] = masked(parameters(request))
        yield "llm.invocation_parameters", as_json(whole)[0]
        tools = [masked(tool) for tool in request.tools]
        sent_whole = as_json({"model": request.model, "messages": messages} | ({"tools": tools} if tools else {}))
        yield from _ends(sent_whole, as_json(reply) if reply else None)
        yield from flat("llm.input_messages", messages)
        for number, tool in enumerate(tools):
            yield f"llm.tools.{number}.tool.json_schema", as_json(tool)[0]
    elif reply:
        yield "output.value", as_json(reply)[0]
        yield "output.mime_type", JSON
    if reply:
        yield from flat("llm.output_messages", [reply])
    if isinstance(ended := span.ended, e.ModelCallEnded | e.SummaryCallEnded):
        if ended.finish:
            yield "llm.finish_reason", ended.finish
        prompt, completion, cached = ended.usage.prompt, ended.usage.completion, ended.usage.cached
        total = None if prompt is None or completion is None else prompt + completion
        names = {"prompt": prompt, "completion": completion, "total": total, "prompt_details.cache_read": cached}
        yield from ((f"llm.token_count.{name}", tokens) for name, tokens in names.items() if tokens is not None)


def _reply(ended: e.Event | None) -> Wire | None:
    """Return a reply as a message on the wire, masked."""
    if isinstance(ended, e.SummaryCallEnded):
        return masked({"role": "assistant", "content": ended.text})
    if not isinstance(ended, e.ModelCallEnded):
        return None
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in ended.calls
    ]
    wire: Wire = {"role": "assistant", "content": ended.text}
    wire |= {"reasoning_content": ended.reasoning} if ended.reasoning else {}
    return masked(wire | ({"tool_calls": calls} if calls else {}))


def _said(ended: e.Event | None) -> str:
    """Return what the end of a span says in words, of a model, a tool or a command."""
    match ended:
        case e.ToolEnded(text=text):
            return text
        case e.Verified(output=output):
            return output
        case e.ModelCallFailed(detail=detail) | e.CompactionRefused(detail=detail) | e.TaskEnded(detail=detail):
            return detail
        case _:
            return ""
