"""Lets a person read a summary, and change it, before it takes effect. Not answered in time means no."""

import asyncio
from collections.abc import Callable

from harness.events import Event, SummaryAnswered, SummaryProposed
from harness.messages import clean
from harness.question import Question


class Confirmations:
    """The summary that waits for a person; at most one at a time, since a session does one thing at a time."""

    def __init__(self, emit: Callable[[Event], object]) -> None:
        self._emit = emit
        self._question: Question[SummaryProposed, str | None] = Question()
        self._check: Callable[[str], str] = lambda text: ""

    @property
    def waiting(self) -> SummaryProposed | None:
        """Return the summary that waits, or None."""
        return self._question.waiting

    async def ask(self, proposed: SummaryProposed, check: Callable[[str], str]) -> str | None:
        """Return the summary as a person wants it, or None for no.

        check: returns the code of the rule that a text breaks, or ""; such a text is not taken.
        """
        self._check = check
        self._emit(proposed)
        try:
            text = await self._question.ask(proposed, proposed.seconds)
        except TimeoutError:
            self._end(proposed, None, "timeout")
            return None
        except asyncio.CancelledError:
            self._end(proposed, None, "stop")
            raise
        self._end(proposed, text, "person")
        return text

    def answer(self, text: str | None) -> str:
        """Take a person's answer; None means no. Return "", or why it was not taken: a rule's code or "not_waiting"."""
        if self.waiting is None:
            return "not_waiting"
        text = None if text is None else clean(text)
        if text is not None and (broken := self._check(text)):
            return broken
        return "" if self._question.answer(text) else "not_waiting"

    def _end(self, proposed: SummaryProposed, text: str | None, by: str) -> None:
        shown = proposed.text if text is None else text
        named = {"call": proposed.call, "task": proposed.task}
        told = {"used": text is not None, "changed": shown != proposed.text}
        self._emit(SummaryAnswered(text=shown, by=by, **told, **named))
