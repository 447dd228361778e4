"""Strands Agents as a peer: its sliding window and its summarising manager, with its projection of the tokens."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.event_loop.event_loop import _estimate_input_tokens
from strands.hooks import BeforeModelCallEvent
from strands.models.model import Model

from bench.peers import KEEP, WINDOW, Said, drive
from harness.messages import AssistantMessage, Message, ToolResult

TOKENS = 100  # of one message of the conversation, about; strands keeps a number of messages


class Nothing(Model):
    """A model that is never asked."""

    def __init__(self, window: int) -> None:
        self.config = {"model_id": "-", "context_window_limit": window}

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> Any:
        return self.config

    def structured_output(self, *wanted: Any, **others: Any) -> Any: ...

    def stream(self, *wanted: Any, **others: Any) -> Any: ...


def message(own: Message, prompt: int) -> dict[str, Any]:
    """Return one of our messages as strands has it."""
    match own:
        case AssistantMessage(text=text, calls=calls):
            asked = [
                {"toolUse": {"toolUseId": call.id, "name": call.name, "input": json.loads(call.arguments)}}
                for call in calls
            ]
            usage = {"inputTokens": prompt, "outputTokens": 80, "totalTokens": prompt + 80}
            return {"role": "assistant", "content": [{"text": text}, *asked], "metadata": {"usage": usage}}
        case ToolResult(call_id=call_id, text=text):
            result = {"toolUseId": call_id, "status": "success", "content": [{"text": text}]}
            return {"role": "user", "content": [{"toolResult": result}]}
        case _:
            return {"role": "user", "content": [{"text": own.text}]}


def sliding(said: Said, limit: int) -> Callable[[], int]:
    """Project the tokens and decide; past the limit drop the oldest messages."""
    return _run(SlidingWindowConversationManager(KEEP // TOKENS, proactive_compression=True), said, limit)


def summarizing(said: Said, limit: int) -> Callable[[], int]:
    """The same, with a summary that costs nothing in the place of the oldest messages."""
    manager = SummarizingConversationManager(0.8, KEEP // TOKENS, proactive_compression=True)
    manager._generate_summary = lambda messages, agent: {"role": "user", "content": [{"text": "-"}]}  # type: ignore[method-assign]
    return _run(manager, said, limit)


def _run(manager: Any, said: Said, limit: int) -> Callable[[], int]:
    agent: Any = SimpleNamespace(messages=[message(*each) for each in said], model=Nothing(max(limit, WINDOW)))

    def run() -> int:
        tokens = drive(_estimate_input_tokens(agent))
        manager._on_before_model_call_threshold(BeforeModelCallEvent(agent=agent, projected_input_tokens=tokens))
        return len(agent.messages)

    return run
