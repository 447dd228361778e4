"""The peers that a bench measures beside ours, each with the piece of it that decides before a model call.

A peer is measured by its hook alone, without its loop, its request or its events: what it costs at least. Where its
package is not installed the line says so; bench/requirements.txt names them all.
"""

import importlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from bench.conversation import Conversation
from harness.messages import Message

KEEP = 20_000  # tokens that stay after a cut, as in lab 08
HUGE = 10**9  # a limit that is never passed
WINDOW = 200_000

Said = list[tuple[Message, int]]
# Of a conversation and the tokens above which the peer acts: what runs once, and returns how many messages are left.
Prepare = Callable[[Said, int], Callable[[], int]]


@dataclass(frozen=True, slots=True)
class Peer:
    """One way of a peer. turn: measured where nothing is to be done; cut: measured as a cut. module: of `bench`."""

    name: str
    module: str
    function: str
    turn: bool = False
    cut: bool = False

    def prepare(self) -> Prepare | None:
        """Return how to set it up, or None where its package is not installed."""
        try:
            return getattr(importlib.import_module(f"bench.{self.module}"), self.function)
        except ImportError:
            return None


PEERS = [
    Peer("LangChain SummarizationMiddleware", "peer_langchain", "summarization", turn=True, cut=True),
    Peer("LangChain ContextEditingMiddleware", "peer_langchain", "editing", turn=True),
    Peer("LangChain trim_messages", "peer_langchain", "trimming", cut=True),
    Peer("pydantic-ai SummarizingCompaction", "peer_pydantic", "summarizing", turn=True),
    Peer("pydantic-ai SlidingWindowCompaction", "peer_pydantic", "sliding", turn=True, cut=True),
    Peer("strands SlidingWindow", "peer_strands", "sliding", turn=True, cut=True),
    Peer("strands Summarizing", "peer_strands", "summarizing", cut=True),
]


def said(conversation: Conversation) -> Said:
    """Return the messages in order, each with the prompt tokens that were reported for it, 0 for none."""
    usages = iter([call.usage.prompt or 0 for call in conversation.state.calls if call.usage])
    history = [entry.message for entry in conversation.state.history]
    return [(message, next(usages) if type(message).__name__ == "AssistantMessage" else 0) for message in history]


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run what never waits, without the cost of a loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waited")
