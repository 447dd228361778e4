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
from harness.accounting import estimate, window_of
from harness.budgets import freed_by
from harness.compaction import Plan, Summary, refusal, size_removed
from harness.confirmations import Confirmations
from harness.context import Entry
from harness.messages import SummaryMessage
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.offline import offline_headers
from harness.records import TaskRecord
from harness.replay import State
from harness.request import Request, digest
from harness.result_events import Decision
from harness.sizes import Size, Usage
from harness.tokens import size_of_message
from harness.workspace import Workspace


class Agent:
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
    ) -> None:
        self.state = state
        self.overflowed = False
        self._emit = emit
        self._gateway = gateway
        self._confirmations = confirmations
        self.workspace = workspace
        self._keep_step = keep_step

    @property
    def task(self) -> TaskRecord:
        """Return the current task."""
        return self.state.tasks[-1]

    @property
    def settings(self) -> dict[str, int]:
        """Return the settings in force."""
        return self.state.settings

    def measured(self, plan: Plan) -> None:
        """Report what a strategy counted at the end of a task and whether it acts."""
        outcome = "past" if plan.past else "within" if plan.removed else "none"
        counted = {name: getattr(plan, name) for name in ("strategy", "unit", "measured", "budget")}
        self._emit(e.BoundaryMeasured(task=self.task.task, outcome=outcome, **counted))

    def watch(self, strategy: str, *, simple: bool, threshold: int) -> bool:
        """Report how large the next request is; whether it is past `threshold`, in tokens, or was refused as too long.

        Costs the same however long the history is, so it may be done before every turn; a cut is planned only then.
        """
        found, window = estimate(self.state), window_of(self.state).tokens
        counted = {"exact": found.exact, "simple": found.simple, "reported": found.reported, "call": found.call}
        limit = {"estimate": found.tokens(simple=simple), "threshold": threshold, "window": window}
        self._emit(e.ContextMeasured(task=self.task.task, strategy=strategy, **counted, **limit))
        return found.tokens(simple=simple) > threshold or self.overflowed

    def decide(self, decisions: Sequence[Decision], *, anew: bool = False) -> None:
        """Let `decisions` about results hold from here on; those that hold already are left out.

        anew: they are made afresh before each turn and not kept.
        """
        new = tuple(each for each in decisions if each != self.state.decisions.get(each.call_id))
        if new:
            freed = freed_by(self.state, new)
            figures = {"freed_chars": max(0, freed.chars), "freed_tokens": max(0, freed.tokens)}
            self._emit(e.ResultsDecided(task=self.task.task, decisions=new, anew=anew, **figures))

    def end_stage(self, name: str) -> None:
        """Report that the agent has marked the end of a stage of its task."""
        self._emit(e.StageEnded(task=self.task.task, name=name, by="agent"))

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

    def refuse(self, plan: Plan, reason: str, detail: str = "") -> None:
        """Report that a compaction was wanted and that everything stays as it was."""
        wanted = {"strategy": plan.strategy, "trigger": plan.trigger}
        failures = self.state.breaker.after(reason)
        self._emit(e.CompactionRefused(task=self.task.task, reason=reason, detail=detail, failures=failures, **wanted))

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

    def _entry(self, summary: Summary) -> Entry:
        message = SummaryMessage(summary.preface, summary.text, summary.beside)
        return self.state.try_on(self.task.task, message)

    def _refusal(self, plan: Plan, summary: Entry) -> str:
        running = self.state.running_task()
        return refusal(self.state.context, plan, summary, request=running.seq if running else 0)


def _cost(summary: Summary) -> dict[str, object]:
    names = ("preface", "shortened", "calls", "usage", "seconds", "written", "focus", "beside", "demands")
    return {name: getattr(summary, name) for name in names} | {"summary": summary.text}
