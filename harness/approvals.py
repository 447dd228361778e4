"""Asks a person before a call runs. Not answered in time means no, and so does Stop."""

import asyncio
from collections.abc import Awaitable, Callable

from harness.children import Emit, emit_inside
from harness.events import ApprovalAnswered, ApprovalRequested
from harness.question import Question

DENIED = "The user did not allow this call, so nothing was run. Do not try it another way; ask what to do."
NO_ANSWER = "Nobody answered within {seconds} seconds, which means no: nothing was run. Ask what to do."


class Approvals:
    """The calls that wait for a person, one at a time: those of sub-agents that work side by side wait their turn."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._question: Question[ApprovalRequested, bool] = Question()
        self._turn = asyncio.Lock()
        self.asking = 0  # the sub-agent whose call waits, 0 for the session's own agent

    @property
    def waiting(self) -> ApprovalRequested | None:
        """Return the call that waits, or None."""
        return self._question.waiting

    async def ask(self, asked: Callable[[], Awaitable[ApprovalRequested]], child: int = 0) -> str:
        """Wait for a person's answer; return "" for yes, or the text that tells the model why not.

        asked: returns the question, and is called when its turn has come: what it shows is true then. Its time begins
        then too. child: the sub-agent whose call it is.
        """
        async with self._turn:
            question, self.asking = await asked(), child
            try:
                return await self._ask(question, emit_inside(self._emit, child) if child else self._emit)
            finally:
                self.asking = 0

    def answer(self, call_id: str, *, allowed: bool, child: int = 0) -> bool:
        """Take a person's answer; False when this call does not wait for one any more."""
        waits = self.waiting is not None and (self.waiting.call_id, self.asking) == (call_id, child)
        return waits and self._question.answer(allowed)

    async def _ask(self, asked: ApprovalRequested, emit: Emit) -> str:
        emit(asked)
        try:
            allowed = await self._question.ask(asked, asked.seconds)
        except TimeoutError:
            emit(_ended(asked, allowed=False, by="timeout"))
            return NO_ANSWER.format(seconds=asked.seconds)
        except asyncio.CancelledError:
            emit(_ended(asked, allowed=False, by="stop"))
            raise
        emit(_ended(asked, allowed=allowed, by="person"))
        return "" if allowed else DENIED


def _ended(asked: ApprovalRequested, *, allowed: bool, by: str) -> ApprovalAnswered:
    call = {name: getattr(asked, name) for name in ("task", "call_id", "name", "arguments")}
    return ApprovalAnswered(allowed=allowed, by=by, **call)
