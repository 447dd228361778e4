"""The agent's loop: one task, turn by turn, until the model answers or something ends it.

Everything that happens goes through `emit`. Knows nothing of sessions, storage or the page.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness import events as e
from harness.agent import Agent
from harness.calls import REPEATS_ENDED, Approve, Calls
from harness.confirmations import Confirmations
from harness.hooks import Extension, at_the_end
from harness.messages import ToolCall, clean
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.model.reply import Reply
from harness.offline import offline_headers
from harness.replay import State
from harness.request import Request, digest
from harness.sizes import Usage
from harness.tools import Tool

Show = Callable[[e.TextDelta], object]
STOPPED_RESULT = "Stopped by the user before it had ended. What it had done until then may stand."


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the loop works with: the session's state and the things that reach outside."""

    state: State
    emit: Callable[[e.Event], object]
    show: Show
    gateway: Gateway
    tools: dict[str, Tool]
    extensions: tuple[Extension, ...]
    approve: Approve
    confirmations: Confirmations


async def run_task(around: Surroundings) -> None:
    """Run the task that the state calls running, to its TaskEnded. A cancellation ends it as stopped."""
    began = time.monotonic()
    loop = _Loop(around)
    detail, reason = "", "failed"
    try:
        reason, detail = await loop.run()
    except asyncio.CancelledError:
        # The cancellation is the Stop button: it ends here, with a history that is valid again.
        loop.settle()
        reason = "answered" if loop.answered else "stopped"
    except Exception:
        loop.settle()
        raise
    finally:
        task = around.state.tasks[-1].task
        seconds = time.monotonic() - began
        around.emit(e.TaskEnded(task=task, reason=reason, seconds=seconds, detail=detail))


def results_for_open_calls(state: State, text: str) -> list[e.ToolEnded]:
    """Return a result with `text` for every call that has none, so that the history is valid again."""
    task = state.tasks[-1].task
    return [
        e.ToolEnded(task=task, call_id=c.id, name=c.name, arguments=c.arguments, text=text, ok=False, seconds=0.0)
        for c in state.unanswered.values()
    ]


class _Loop:
    def __init__(self, around: Surroundings) -> None:
        self._around, self._state, self._emit = around, around.state, around.emit
        self._task = around.state.tasks[-1].task
        self._turn = 0
        self.answered = False
        self._streaming: list[str] | None = None
        self._agent = Agent(around.state, around.emit, around.gateway, around.confirmations)
        self._calls = Calls(around.tools, around.emit, around.approve, around.state.settings["approval_seconds"])

    async def run(self) -> tuple[e.EndReason, str]:
        """Take turns until the task ends; return why, and the detail of a failure."""
        reason, detail = await self._take_turns()
        # Without this the next task would meet the same overflow again.
        if reason in ("step_limit", "repeated_call") or detail == "overflow":
            await self._compact()
        return reason, detail

    async def _take_turns(self) -> tuple[e.EndReason, str]:
        empty = 0
        while self._turn < self._state.settings["step_limit"]:
            self._turn += 1
            for extension in self._around.extensions:
                await self._guard(extension, "before_turn", self._agent)
            try:
                reply = await self._call_model()
            except ModelError as error:
                return "failed", error.kind
            empty = 0 if reply.text.strip() or reply.calls else empty + 1
            if empty == 2:
                return "failed", "empty"
            for call in reply.calls:
                await self._calls.run(self._task, call)
            if self._calls.repeats >= REPEATS_ENDED:
                return "repeated_call", self._state.history[-1].message.name
            self.answered = not reply.calls and not empty
            if self.answered and not await self._keep_working():
                return "answered", ""
            self.answered = False
        return "step_limit", str(self._turn)

    def settle(self) -> None:
        """Give what was cut short its end: the reply so far, and a result for each open call."""
        if self._streaming is not None:
            self._end_call(Reply("".join(self._streaming), (), "", "stopped", Usage(), self._passed(), ()))
        for result in results_for_open_calls(self._state, STOPPED_RESULT):
            self._emit(result)

    async def _call_model(self) -> Reply:
        request, parts = await self._project(), dict(self._state.context.totals)
        self._emit(
            e.ModelCallStarted(
                call=len(self._state.calls) + 1, task=self._task, turn=self._turn,
                messages=len(request.messages), parts=parts, digest=self._digest(request),
            )
        )  # fmt: skip
        self._streaming, self._began = [], time.monotonic()
        try:
            reply = await self._around.gateway.stream(request, self._delta, headers=offline_headers(self._state))
        except ModelError as error:
            self._streaming = None
            failed = {"kind": error.kind, "detail": error.detail, "seconds": self._passed()}
            self._emit(e.ModelCallFailed(call=len(self._state.calls), task=self._task, **failed))
            raise
        return self._end_call(replace(reply, calls=tuple(map(self._unique, reply.calls))))

    def _end_call(self, reply: Reply) -> Reply:
        self._streaming = None
        names = ("text", "calls", "reasoning", "finish", "usage", "seconds", "marks")
        whole: dict[str, Any] = {name: getattr(reply, name) for name in names}
        call = len(self._state.calls)
        self._emit(e.ModelCallEnded(call=call, task=self._task, turn=self._turn, **whole))
        return reply

    def _delta(self, text: str, kind: Literal["text", "reasoning"]) -> None:
        if kind == "text" and self._streaming is not None:
            self._streaming.append(text)
        self._around.show(e.TextDelta(call=len(self._state.calls), text=text, kind=kind))

    def _unique(self, call: ToolCall) -> ToolCall:
        # Some servers number the calls of each reply from zero; in a session an id names one call.
        number, given = len(self._state.call_ids), call.id
        while given in self._state.call_ids:
            number, given = number + 1, f"{call.id}-{number}"
        return replace(call, id=given)

    async def _project(self) -> Request:
        request = self._state.request()
        for extension in self._around.extensions:
            request = await self._guard(extension, "before_send", request) or request
        return request

    def _digest(self, request: Request) -> str:
        projected = any(extension.before_send for extension in self._around.extensions)
        return digest(request) if projected else self._state.context.digest(request.model)

    async def _keep_working(self) -> bool:
        """Ask the on_stop hooks; whether one of them wants the agent to go on."""
        for extension in at_the_end(self._around.extensions):
            if text := await self._guard(extension, "on_stop", self._agent):
                self._emit(e.FollowUpAdded(task=self._task, extension=extension.name, text=clean(str(text))))
                return True
        return False

    async def _compact(self) -> None:
        """Let the compacting extensions act where a task ends without an answer, but could go on."""
        for extension in at_the_end(self._around.extensions):
            if extension.compacts:
                await self._guard(extension, "on_stop", self._agent)

    async def _guard(self, extension: Extension, hook: str, argument: Any) -> Any:
        try:
            answer = getattr(extension, hook)
            answer = answer(argument) if answer else None
            return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # a lab's code is not ours: it must not cost the task
            failed = {"extension": extension.name, "hook": hook, "detail": repr(error)}
            self._emit(e.HookFailed(task=self._task, **failed))
            return None

    def _passed(self) -> float:
        return time.monotonic() - self._began
