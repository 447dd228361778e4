"""LangChain as a peer: its middleware that summarises, the one that clears tool results, and `trim_messages`."""

import json
from collections.abc import Callable
from typing import Any

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, SummarizationMiddleware
from langchain.agents.middleware.types import ModelRequest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from bench.peers import KEEP, Said
from harness.messages import AssistantMessage, Message, ToolResult


def message(own: Message, prompt: int) -> BaseMessage:
    """Return one of our messages as LangChain has it."""
    match own:
        case AssistantMessage(text=text, calls=calls):
            asked = [{"name": call.name, "args": json.loads(call.arguments), "id": call.id} for call in calls]
            usage = {"input_tokens": prompt, "output_tokens": 80, "total_tokens": prompt + 80}
            return AIMessage(text, tool_calls=asked, usage_metadata=usage)
        case ToolResult(call_id=call_id, name=name, text=text):
            return ToolMessage(text, tool_call_id=call_id, name=name)
        case _:
            return HumanMessage(own.text)


def summarization(said: Said, limit: int) -> Callable[[], int]:
    """Count and decide; past the limit find the cut and build the new messages around a summary that costs nothing."""
    model = FakeListChatModel(responses=["-"])
    middleware = SummarizationMiddleware(
        model, trigger=("tokens", limit), keep=("tokens", KEEP), trim_tokens_to_summarize=None, summarizer=_no_summary
    )
    state: Any = {"messages": [message(*each) for each in said]}

    def run() -> int:
        changed = middleware.before_model(state, None)  # type: ignore[arg-type]
        return len(changed["messages"]) - 1 if changed else len(state["messages"])

    return run


def editing(said: Said, limit: int) -> Callable[[], int]:
    """Copy and count, as it does before each call."""
    middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=limit)])
    request = ModelRequest(model=FakeListChatModel(responses=["-"]), messages=[message(*each) for each in said])
    return lambda: middleware.wrap_model_call(request, lambda edited: len(edited.messages))  # type: ignore[arg-type]


def trimming(said: Said, limit: int) -> Callable[[], int]:
    """Keep the newest tokens that begin with a user's message."""
    messages = [message(*each) for each in said]
    wanted = {"strategy": "last", "start_on": "human", "include_system": True}
    return lambda: len(trim_messages(messages, max_tokens=KEEP, token_counter=count_tokens_approximately, **wanted))


def _no_summary(messages: list[BaseMessage]) -> str:
    return "-"
