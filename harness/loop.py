"""The agent's loop: one task, turn by turn, until the model answers or something ends it.

Everything that happens goes through `emit`. Knows nothing of sessions, storage or the page.
"""

import asyncio
import time
from functools import partial

from harness import events as e
from harness.agent import Agent
from harness.calls import REPEATS_ENDED, Calls
from harness.children import answers_of
from harness.delegating import delegate
from harness.extending import guarded, put_beside
from harness.hooks import at_the_end
from harness.messages import clean
from harness.model.errors import ModelError
from harness.model_calls import ModelCalls
from harness.replay import State
from harness.surroundings import Surroundings

STOPPED_RESULT = "Stopped by the user before it had ended. What it had done until then may stand."


async def run_task(around: Surroundings, files: "asyncio.Task[bool] | None" = None) -> None:
    """Run the task that the state calls running, from the turn that it has reached, to its TaskEnded.

    A cancellation ends it as stopped. files: of a task that was resumed, whether its files were put back.
    """
    began = time.monotonic()
    loop = _Loop(around)
    detail, reason = "", "failed"
    try:
        if files and files.done() and not files.result():
            detail = "files"
        else:
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
    """Return a result for every call that has none, so that the history is valid again.

    It is the answer of the call's sub-agent where that has one already, else `text`.
    """
    task, answers, results = state.tasks[-1].task, answers_of(state), []
    for call in state.unanswered.values():
        named = {"task": task, "call_id": call.id, "name": call.name, "arguments": call.arguments}
        told = {"text": answers.get(call.id, text), "ok": call.id in answers}
        results.append(e.ToolEnded(seconds=0.0, **told, **named))
    return results


class _Loop:
    def __init__(self, around: Surroundings) -> None:
        self._around, self._state, self._emit = around, around.state, around.emit
        self._task = around.state.tasks[-1].task
        self._turn = around.state.turn
        self.answered = False
        self._model = ModelCalls(around)
        reaching = (around.gateway, around.confirmations, around.workspace, around.keep_step)
        beside = partial(put_beside, around.extensions, around.state, around.emit)
        self._agent = Agent(around.state, around.emit, *reaching, beside)
        waits = around.state.settings["approval_seconds"]
        handing_on = partial(delegate, around, run_task)
        self._calls = Calls(
            around.tools, around.emit, around.approve, waits, self._result_left, handing_on, around.alone
        )

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
            await self._before_turn()
            try:
                reply = await self._model.call(self._turn)
            except ModelError as error:
                if not (error.kind == "overflow" and await self._shrunk()):
                    return "failed", error.kind
                try:
                    reply = await self._model.call(self._turn)
                except ModelError as again:
                    return "failed", again.kind
            empty = 0 if reply.text.strip() or reply.calls else empty + 1
            if empty == 2:
                return "failed", "empty"
            await self._calls.run_all(self._task, reply.calls)
            if self._calls.repeats >= REPEATS_ENDED:
                return "repeated_call", self._state.history[-1].message.name
            self.answered = not reply.calls and not empty
            if self.answered and not await self._keep_working():
                return "answered", ""
            self.answered = False
        return "step_limit", str(self._turn)

    def _result_left(self) -> bool:
        """Whether the newest result has left the context."""
        newest = next(reversed(self._state.results.values()), None)
        return newest is not None and all(entry.seq != newest.seq for entry in self._state.context.entries)

    async def _before_turn(self) -> None:
        for extension in self._around.extensions:
            await guarded(self._around, extension, "before_turn", self._agent)

    async def _shrunk(self) -> bool:
        """Let the extensions compact after the provider refused a request as too long; whether one of them did."""
        made, self._agent.overflowed = len(self._state.compactions), True
        try:
            await self._before_turn()
        finally:
            self._agent.overflowed = False
        return len(self._state.compactions) > made

    def settle(self) -> None:
        """Give what was cut short its end: the reply so far, and a result for each open call."""
        self._model.settle()
        for result in results_for_open_calls(self._state, STOPPED_RESULT):
            self._emit(result)

    async def _keep_working(self) -> bool:
        """Ask the on_stop hooks; whether one of them wants the agent to go on."""
        for extension in at_the_end(self._around.extensions):
            if text := await guarded(self._around, extension, "on_stop", self._agent):
                self._emit(e.FollowUpAdded(task=self._task, extension=extension.name, text=clean(str(text))))
                return True
        return False

    async def _compact(self) -> None:
        """Let the compacting extensions act where a task ends without an answer, but could go on."""
        for extension in at_the_end(self._around.extensions):
            if extension.compacts:
                await guarded(self._around, extension, "on_stop", self._agent)
