"""pydantic-ai with its official harness as a peer: the compaction that summarises and the one that slides."""

from collections.abc import Callable

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_ai_harness.compaction import SlidingWindowCompaction, SummarizingCompaction

from bench.peers import KEEP, Said, drive
from harness.messages import AssistantMessage, Message, ToolResult


def message(own: Message, prompt: int) -> ModelMessage:
    """Return one of our messages as pydantic-ai has it."""
    match own:
        case AssistantMessage(text=text, calls=calls):
            parts = [ToolCallPart(call.name, call.arguments, call.id) for call in calls]
            usage = RequestUsage(input_tokens=prompt, output_tokens=80)
            return ModelResponse([TextPart(text), *parts], usage=usage)
        case ToolResult(call_id=call_id, name=name, text=text):
            return ModelRequest([ToolReturnPart(name, text, call_id)])
        case _:
            return ModelRequest([UserPromptPart(own.text)])


def summarizing(said: Said, limit: int) -> Callable[[], int]:
    """Anchor on the last usage and decide."""
    return _run(SummarizingCompaction(max_tokens=limit, keep_tokens=KEEP), said)


def sliding(said: Said, limit: int) -> Callable[[], int]:
    """Anchor on the last usage and decide; past the limit drop the oldest messages."""
    return _run(SlidingWindowCompaction(max_tokens=limit, keep_tokens=KEEP), said)


def _run(compaction: SummarizingCompaction | SlidingWindowCompaction, said: Said) -> Callable[[], int]:
    model, messages = TestModel(), [message(*each) for each in said]
    context = RunContext(deps=None, model=model, usage=RunUsage(), messages=messages, run_id="bench")
    parameters = ModelRequestParameters()
    request = ModelRequestContext(
        model=model, messages=messages, model_settings=None, model_request_parameters=parameters
    )  # fmt: skip
    return lambda: len(drive(compaction.before_model_request(context, request)).messages)
