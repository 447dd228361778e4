"""The model calls of one task's turns: what goes out, what streams, what came back, each as an event.

Knows nothing of tools and of when a task ends.
"""

import time
from dataclasses import replace
from typing import Any, Literal

from harness import events as e
from harness.extending import guarded
from harness.messages import ToolCall
from harness.model.errors import ModelError
from harness.model.reply import Reply
from harness.offline import offline_headers
from harness.projection import Part, describe, given, project, project_sizes
from harness.request import Request, digest
from harness.sizes import Usage
from harness.surroundings import Surroundings


class ModelCalls:
    """Calls the session's model for one task, and remembers the reply that streams."""

    def __init__(self, around: Surroundings) -> None:
        self._around, self._state, self._emit = around, around.state, around.emit
        self._task = around.state.tasks[-1].task
        self._streaming: list[str] | None = None

    async def call(self, turn: int) -> Reply:
        """Send the request of this turn and return the reply. Raises ModelError."""
        request, projected = await self._project()
        context = self._state.context
        parts = project_sizes(context.totals, context.places if projected else (), projected)
        self._emit(
            e.ModelCallStarted(
                call=len(self._state.calls) + 1, task=self._task, turn=turn, messages=len(request.messages),
                digest=digest(request) if projected else context.digest(request.model),
                parts=parts, projected=projected,
            )
        )  # fmt: skip
        self._turn, self._streaming, self._began = turn, [], time.monotonic()
        try:
            reply = await self._around.gateway.stream(request, self._delta, headers=offline_headers(self._state))
        except ModelError as error:
            self._streaming = None
            failed = {"kind": error.kind, "detail": error.detail, "seconds": self._passed()}
            self._emit(e.ModelCallFailed(call=len(self._state.calls), task=self._task, **failed))
            raise
        return self._end_call(replace(reply, calls=tuple(map(self._unique, reply.calls))))

    def settle(self) -> None:
        """Give a reply that was cut short its end."""
        if self._streaming is not None:
            self._end_call(Reply("".join(self._streaming), (), "", "stopped", Usage(), self._passed(), ()))

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

    async def _project(self) -> tuple[Request, tuple[Part, ...]]:
        """Return the request that goes out, and how the extensions made it of the context's."""
        base, projected = self._state.request(), ()
        hooks = [extension for extension in self._around.extensions if extension.before_send]
        request = handed = given(base) if hooks else base
        for extension in hooks:
            sent = await guarded(self._around, extension, "before_send", request) or request
            try:
                projected = describe(base, handed, sent)
                request = sent
            except (AttributeError, TypeError, ValueError, KeyError) as error:
                failed = {"extension": extension.name, "hook": "before_send", "detail": repr(error)}
                self._emit(e.HookFailed(task=self._task, **failed))
        return replace(base, messages=project(base.messages, projected)), projected

    def _passed(self) -> float:
        return time.monotonic() - self._began
