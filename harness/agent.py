"""What a hook may see and do: read the state, ask the model for a summary, compact the context.

`compact` is the one way to change the context: it checks the rules, emits ContextCompacted, or refuses
with a reason. Knows nothing of tools or of the loop.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict

from harness.compaction import Plan, Summary, refusal
from harness.confirmations import Confirmations
from harness.context import Entry, make_entry
from harness.events import (
    BoundaryMeasured,
    CompactionRefused,
    ContextCompacted,
    Event,
    SummaryCallEnded,
    SummaryCallStarted,
    SummaryProposed,
)
from harness.messages import SummaryMessage
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.offline import offline_headers
from harness.records import TaskRecord
from harness.replay import State
from harness.request import Request, digest
from harness.sizes import Size, Usage, size_of
from harness.tokens import size_of_message


class Agent:
    """The agent as an extension sees it, for the time of one task. `confirmations` ask a person about a summary."""

    def __init__(
        self, state: State, emit: Callable[[Event], object], gateway: Gateway, confirmations: Confirmations
    ) -> None:
        self.state = state
        self._emit = emit
        self._gateway = gateway
        self._confirmations = confirmations

    @property
    def task(self) -> TaskRecord:
        """Return the current task."""
        return self.state.tasks[-1]

    @property
    def settings(self) -> dict[str, int]:
        """Return the settings in force."""
        return self.state.settings

    def measured(self, plan: Plan) -> None:
        """Report what a strategy counted and whether it acts."""
        outcome = "past" if plan.past else "within" if plan.removed else "none"
        counted = {name: getattr(plan, name) for name in ("strategy", "unit", "measured", "budget")}
        self._emit(BoundaryMeasured(task=self.task.task, outcome=outcome, **counted))

    def refuse(self, plan: Plan, reason: str, detail: str = "") -> None:
        """Report that a compaction was wanted and that everything stays as it was."""
        wanted = {"strategy": plan.strategy, "trigger": plan.trigger}
        self._emit(CompactionRefused(task=self.task.task, reason=reason, detail=detail, **wanted))

    async def ask(
        self, messages: tuple[dict[str, str], ...], *, attempt: int, clipped: int, max_tokens: int
    ) -> SummaryCallEnded:
        """Call the session's model apart from the context and return what came back. Raises ModelError."""
        model = self.state.model
        assert model, "a session chooses its model before its first request"
        request = Request(model.model, messages, (), max_tokens)
        call, task = len(self.state.calls) + 1, self.task.task
        size = sum((size_of_message(message) for message in messages), Size())
        self._emit(
            SummaryCallStarted(
                call=call, task=task, attempt=attempt, messages=messages, max_tokens=max_tokens,
                clipped=clipped, size=size, digest=digest(request),
            )
        )  # fmt: skip
        began = time.monotonic()
        answer = {"call": call, "task": task, "attempt": attempt}
        try:
            reply = await self._gateway.stream(request, lambda text, kind: None, headers=offline_headers(self.state))
        except (ModelError, asyncio.CancelledError) as error:
            stopped = not isinstance(error, ModelError)
            spent = {"finish": "stopped" if stopped else error.kind, "seconds": time.monotonic() - began}
            self._emit(SummaryCallEnded(text="", usage=Usage(), **spent, **answer))
            raise
        finish = "tool_calls" if reply.calls and not reply.text.strip() else reply.finish
        spent = {"usage": reply.usage, "seconds": reply.seconds}
        ended = SummaryCallEnded(text=reply.text.strip(), finish=finish, **spent, **answer)
        self._emit(ended)
        return ended

    async def confirm(self, plan: Plan, summary: Summary) -> str | None:
        """Let a person change the summary before it takes effect; return its text, or None where it may not."""
        seconds = self.settings["approval_seconds"]
        named = {"call": summary.calls[-1], "task": self.task.task}
        proposed = SummaryProposed(preface=summary.preface, text=summary.text, seconds=seconds, **named)
        return await self._confirmations.ask(
            proposed, lambda text: self._refusal(plan, self._entry(summary.preface, text))
        )

    def compact(self, plan: Plan, summary: Summary) -> bool:
        """Replace what `plan` removes by `summary`, or refuse and change nothing; return whether it did."""
        context, entry = self.state.context, self._entry(summary.preface, summary.text)
        if reason := self._refusal(plan, entry):
            self.refuse(plan, reason)
            return False
        removed = size_of(context.entries[: len(plan.removed)])
        before = context.total
        model = self.state.model
        self._emit(
            ContextCompacted(
                number=len(self.state.compactions) + 1, task=self.task.task,
                measured_after=entry.size.chars if plan.unit == "characters" else entry.size.tokens,
                before=before, after=before - removed + entry.size,
                model=model.model if model else "", cut=plan.cut, **asdict(plan), **_cost(summary),
            )
        )  # fmt: skip
        return True

    def _entry(self, preface: str, text: str) -> Entry:
        return make_entry(0, self.task.task, SummaryMessage(preface, text), size_of_message)

    def _refusal(self, plan: Plan, summary: Entry) -> str:
        running = self.state.running_task()
        return refusal(self.state.context, plan, summary, request=running.seq if running else 0)


def _cost(summary: Summary) -> dict[str, object]:
    names = ("preface", "shortened", "calls", "usage", "seconds", "written", "focus")
    return {name: getattr(summary, name) for name in names} | {"summary": summary.text}
