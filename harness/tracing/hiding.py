"""Leaves out what a person wants hidden (`OPENINFERENCE_HIDE_*`), also where the library knows no name for it."""

from collections.abc import Callable
from typing import Any

from harness.tracing.attributes import Attributes
from harness.tracing.span import Span

# What hides when: each of these has its twin among OpenInference's names, and is hidden like that.
_TWINS = {
    "gen_ai.input.messages": "llm.input_messages.0.message.content",
    "gen_ai.system_instructions": "llm.input_messages.0.message.content",
    "gen_ai.output.messages": "llm.output_messages.0.message.content",
    "gen_ai.tool.call.arguments": "input.value",
    "exception.message": "output.value",
}
# A whole request and a whole reply hold the messages and the tools that are hidden.
_WHOLE = {
    "input.value": [_TWINS["gen_ai.input.messages"], "llm.tools.0.tool.json_schema"],
    "output.value": [_TWINS["gen_ai.output.messages"]],
}
# Words of people, models and tools in what took no time.
_WORDS = ("text", "detail", "summary", "output", "command")
REDACTED = "__REDACTED__"

Mask = Callable[[str, Any], Any]


def hidden(span: Span, told: Attributes, mask: Mask) -> Attributes:
    """Return the attributes of a span, or of what happened in it, without what is to be hidden.

    mask: returns what is to stand for the value of a name, or None for nothing.
    """
    found: Attributes = {}
    for name, value in told.items():
        own = mask(name, value)
        twins = [_TWINS[name]] if name in _TWINS else ["input.value", "output.value"] if name in _WORDS else []
        twins += _WHOLE.get(name, []) if span.kind == "LLM" else []
        if own is not None and any(mask(twin, value) != value for twin in twins):
            own = REDACTED
        if own is not None:
            found[name] = own
    return found
