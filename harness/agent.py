"""What a hook may see and do: read the state, ask the model for a summary, compact the context.

`compact` is the one way to change the context: it checks the rules, emits ContextCompacted, or refuses
with a reason. Knows nothing of tools or of the loop.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from harness import checkpoints
from harness import events as e
from harness.compaction import Plan, Summary, is_smaller, refusal, size_removed
from harness.confirmations import Confirmations
from harness.context import Entry
from harness.messages import SummaryMessage
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.offline import offline_headers
from harness.replay import State
from harness.reporting import Reporting
from harness.request import Request, digest
from harness.sizes import Size, Usage, size_of
from harness.tokens import size_of_message
from harness.workspace import Workspace


class Agent(Reporting):
    """The agent as an extension sees it, for the time of one task. `confirmations` ask a person about a summary.

    overflowed: the provider has just refused a request as too long; it is sent once more if something is compacted.
    """

    def __init__(
        self,
        state: State,
        emit: Callable[[e.Event], object],
        gateway: Gateway,
        confirmations: Confirmations,
        workspace: Workspace | None = None,
        keep_step: Callable[[int, int], Awaitable[int]] | None = None,
        beside: Callable[[Sequence[Entry]], str] = lambda removed: "",
    ) -> None:
        super().__init__(state, emit)
        self._gateway = gateway
        self._confirmations = confirmations
        self.workspace = workspace
        self._keep_step = keep_step
        self.beside = beside

    async def checkpoint(self, rounds: int) -> None:
        """Save a checkpoint with the newest `rounds`, where a step has just succeeded; else do nothing.

        The files are kept first, in a thread, and what comes next waits for that.
        """
        if not checkpoints.due(self.state):
            return
        before, workspace = checkpoints.standing(self.state), 0
        if self._keep_step:
            workspace = await self._keep_step(len(self.state.checkpoints) + 1, before.workspace if before else 0)
        self._emit(checkpoints.made(self.state, rounds=rounds, workspace=workspace))

    async def ask(
        self,
        messages: tuple[dict[str, str], ...],
        *,
        attempt: int,
        clipped: int,
        max_tokens: int,
        extra: dict[str, Any] | None = None,
    ) -> e.SummaryCallEnded:
        """Call the session's model apart from the context and return what came back. Raises ModelError.

        extra: further fields of the request's body.
        """
        model = self.state.model
        assert model, "a session chooses its model before its first request"
        request = Request(model.model, messages, (), max_tokens, extra or {})
        call, task = len(self.state.calls) + 1, self.task.task
        # Of a long history it takes a tenth of a second and more: not in the event loop.
        size = await asyncio.to_thread(lambda: sum(map(size_of_message, messages), Size()))
        self._emit(
            e.SummaryCallStarted(
                call=call, task=task, attempt=attempt, messages=messages, max_tokens=max_tokens,
                clipped=clipped, size=size, digest=digest(request), extra=request.extra,
            )
        )  # fmt: skip
        began = time.monotonic()
        answer = {"call": call, "task": task, "attempt": attempt}
        try:
            reply = await self._gateway.stream(request, lambda text, kind: None, headers=offline_headers(self.state))
        except (ModelError, asyncio.CancelledError) as error:
            stopped = not isinstance(error, ModelError)
            spent = {"finish": "stopped" if stopped else error.kind, "seconds": time.monotonic() - began}
            self._emit(e.SummaryCallEnded(text="", usage=Usage(), **spent, **answer))
            raise
        finish = "tool_calls" if reply.calls and not reply.text.strip() else reply.finish
        spent = {"usage": reply.usage, "seconds": reply.seconds}
        ended = e.SummaryCallEnded(text=reply.text.strip(), finish=finish, **spent, **answer)
        self._emit(ended)
        return ended

    async def confirm(self, plan: Plan, summary: Summary) -> str | None:
        """Let a person change the summary before it takes effect; return its text, or None where it may not."""
        seconds = self.settings["approval_seconds"]
        named = {"call": summary.calls[-1], "task": self.task.task}
        proposed = e.SummaryProposed(preface=summary.preface, text=summary.text, seconds=seconds, **named)
        return await self._confirmations.ask(
            proposed, lambda text: self._refusal(plan, self._entry(replace(summary, text=text)))
        )

    def compact(self, plan: Plan, summary: Summary) -> bool:
        """Replace what `plan` removes by `summary`, or refuse and change nothing; return whether it did."""
        context, entry = self.state.context, self._entry(summary)
        if reason := self._refusal(plan, entry):
            self.refuse(plan, reason)
            return False
        before, model = context.total, self.state.model
        after = before - size_removed(context, plan) + entry.size
        measured = entry.size if plan.scope == "finished tasks" else after
        self._emit(
            e.ContextCompacted(
                number=len(self.state.compactions) + 1, task=self.task.task,
                measured_after=measured.chars if plan.unit == "characters" else measured.tokens,
                before=before, after=after, model=model.model if model else "",
                cut=plan.cut, **{each.name: getattr(plan, each.name) for each in fields(plan)}, **_cost(summary),
            )
        )  # fmt: skip
        # Another strategy must not cut once more for the same refusal.
        self.overflowed = False
        return True

    def frees(self, removed: Sequence[Entry], summary: Summary) -> bool:
        """Whether `summary`, with all that stands beside it, is smaller than what it would take the place of."""
        return is_smaller(self._entry(summary), size_of(removed))

    def _entry(self, summary: Summary) -> Entry:
        message = SummaryMessage(summary.preface, summary.text, summary.beside)
        return self.state.try_on(self.task.task, message)

    def _refusal(self, plan: Plan, summary: Entry) -> str:
        running = self.state.running_task()
        return refusal(self.state.context, plan, summary, request=running.seq if running else 0)


def _cost(summary: Summary) -> dict[str, object]:
    names = ("preface", "shortened", "calls", "usage", "seconds", "written", "focus", "beside", "demands")
    return {name: getattr(summary, name) for name in names} | {"summary": summary.text}
