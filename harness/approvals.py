"""Asks a person before a call runs. Not answered in time means no, and so does Stop."""

import asyncio
from collections.abc import Callable

from harness.events import ApprovalAnswered, ApprovalRequested, Event
from harness.question import Question

DENIED = "The user did not allow this call, so nothing was run. Do not try it another way; ask what to do."
NO_ANSWER = "Nobody answered within {seconds} seconds, which means no: nothing was run. Ask what to do."


class Approvals:
    """The calls that wait for a person; at most one at a time, since tools run one after another."""

    def __init__(self, emit: Callable[[Event], object]) -> None:
        self._emit = emit
        self._question: Question[ApprovalRequested, bool] = Question()

    @property
    def waiting(self) -> ApprovalRequested | None:
        """Return the call that waits, or None."""
        return self._question.waiting

    async def ask(self, asked: ApprovalRequested) -> str:
        """Wait for a person's answer; return "" for yes, or the text that tells the model why not."""
        self._emit(asked)
        try:
            allowed = await self._question.ask(asked, asked.seconds)
        except TimeoutError:
            self._end(asked, allowed=False, by="timeout")
            return NO_ANSWER.format(seconds=asked.seconds)
        except asyncio.CancelledError:
            self._end(asked, allowed=False, by="stop")
            raise
        self._end(asked, allowed=allowed, by="person")
        return "" if allowed else DENIED

    def answer(self, call_id: str, *, allowed: bool) -> bool:
        """Take a person's answer; False when this call does not wait for one any more."""
        waits = self.waiting is not None and self.waiting.call_id == call_id
        return waits and self._question.answer(allowed)

    def _end(self, asked: ApprovalRequested, *, allowed: bool, by: str) -> None:
        call = {name: getattr(asked, name) for name in ("task", "call_id", "name", "arguments")}
        self._emit(ApprovalAnswered(allowed=allowed, by=by, **call))
