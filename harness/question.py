"""One question that waits for a person, with a time after which nobody answered. Knows nothing of what is asked."""

import asyncio
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Question(Generic[Asked, Answer]):
    """`waiting` is what was asked, or None; at most one question waits at a time."""

    def __init__(self) -> None:
        self.waiting: Asked | None = None
        self._answer: asyncio.Future[Answer] | None = None

    async def ask(self, asked: Asked, seconds: int) -> Answer:
        """Wait for the answer. TimeoutError: nobody answered in `seconds`. A cancellation goes through."""
        self.waiting, self._answer = asked, asyncio.get_running_loop().create_future()
        try:
            return await asyncio.wait_for(self._answer, seconds)
        finally:
            self.waiting = self._answer = None

    def answer(self, answer: Answer) -> bool:
        """Give the answer; False when nothing waits for one any more."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(answer)
        return True
