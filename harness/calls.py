"""Runs the tool calls of one reply: each becomes exactly one result, whatever goes wrong.

Knows nothing of the model; it gets the calls and emits what happens to them.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Any

from harness.delegation import Delegation
from harness.events import ApprovalRequested, Event, ToolEnded, ToolStarted
from harness.messages import ToolCall, clean
from harness.tools import Arguments, Tool, ToolError

# The same call this often in a row is not run again; a task that goes on so is ended.
REPEATS_REFUSED, REPEATS_ENDED = 3, 5
CHANGED = "What this call would do has changed since the user was asked, so nothing was run. Look again and ask anew."
# A tool bounds its own result; this holds for one that does not. Characters.
RESULT_CHARS = 100_000

# So many sub-agents of one reply work at once.
AT_ONCE = 4

Approve = Callable[..., Awaitable[str]]
Delegate = Callable[[str, Delegation], Awaitable[str]]
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,),
    "array": (list,),
}  # fmt: skip


class Calls:
    """Runs calls for one task and counts how often the same one comes in a row.

    approve: asks a person what the function it gets returns, which it calls when the question is to be shown; returns
        "" for yes, or the text that tells the model why not.
    left: whether the newest result has left the context, so that asking again for it makes sense.
    delegate: lets a sub-agent do what a call hands on, and returns its answer. alone: held while a tool runs.
    """

    def __init__(
        self,
        tools: dict[str, Tool],
        emit: Callable[[Event], object],
        approve: Approve,
        approval_seconds: int,
        left: Callable[[], bool] = lambda: False,
        delegate: Delegate | None = None,
        alone: asyncio.Lock | None = None,
    ) -> None:
        self._tools, self._emit, self._approve = tools, emit, approve
        self._approval_seconds, self._left = approval_seconds, left
        self._delegate, self._alone = delegate, alone or asyncio.Lock()
        self._last = ("", "")
        self.repeats = 0

    async def run_all(self, task: int, calls: Sequence[ToolCall]) -> None:
        """Run the calls of one reply, one after another; neighbours that hand their work on, side by side."""
        for delegates, group in groupby(calls, key=self._delegates):
            if delegates:
                await self._side_by_side(task, tuple(group))
                continue
            for call in group:
                await self.run(task, call)

    async def run(self, task: int, call: ToolCall) -> None:
        """Run one call and emit its result. Only a cancellation leaves it without one."""
        self._emit(await self._ended(task, call))

    def _delegates(self, call: ToolCall) -> bool:
        return call.name in self._tools and self._tools[call.name].delegate is not None

    async def _side_by_side(self, task: int, calls: Sequence[ToolCall]) -> None:
        most = asyncio.Semaphore(AT_ONCE)

        async def one(call: ToolCall) -> ToolEnded:
            async with most:
                return await self._ended(task, call)

        # Each in a task of its own, for a sub-agent takes a cancellation as its end and says no more of it. A stop of
        # this one ends them all, waits for each, and then goes on from here.
        ended = await asyncio.gather(*map(one, calls), return_exceptions=True)
        for each in ended:
            if isinstance(each, BaseException):
                raise each
            # In the order of the calls, whichever was the fastest.
            self._emit(each)

    async def _ended(self, task: int, call: ToolCall) -> ToolEnded:
        named = {"task": task, "call_id": call.id, "name": call.name, "arguments": call.arguments}
        same = (call.name, call.arguments) == self._last
        self.repeats = self.repeats + 1 if same else 1
        self._last = (call.name, call.arguments)
        began = time.monotonic()
        try:
            text, ok = bounded(await self._result(named, call)), True
        except ToolError as error:
            text, ok = bounded(str(error)), False
        except Exception as error:  # a tool is not ours: whatever it raises becomes a result
            text, ok = clean(f"The tool failed: {error!r}. Try another way."), False
        return ToolEnded(text=text, ok=ok, seconds=time.monotonic() - began, **named)

    async def _result(self, named: dict[str, Any], call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if not tool:
            raise ToolError(f"There is no tool `{call.name}`. The tools are: {', '.join(self._tools)}.")
        arguments = parse(call.arguments, tool)
        if self.repeats >= REPEATS_REFUSED and not self._left():
            raise ToolError(
                f"This very call came {self.repeats} times in a row and was not run again. Its result would "
                "be the same. Do something else, or answer with what you know."
            )
        shown = await self._allowed(tool, arguments, named) if tool.asks else None
        if tool.delegate and self._delegate:
            wanted = tool.delegate(arguments)
            self._emit(ToolStarted(**named))
            return await self._delegate(call.id, wanted)
        async with self._alone:
            # What a person allowed is what was shown; a sub-agent beside this one, or anybody, may have been faster.
            if shown is not None and await _preview(tool, arguments) != shown:
                raise ToolError(CHANGED)
            self._emit(ToolStarted(**named))
            return await tool.run(arguments)

    async def _allowed(self, tool: Tool, arguments: Arguments, named: dict[str, Any]) -> str:
        """Return what a person was shown who allowed this call. ToolError: nobody did."""
        shown = ""

        async def asked() -> ApprovalRequested:
            nonlocal shown
            async with self._alone:
                shown = await _preview(tool, arguments)
            return ApprovalRequested(preview=shown, seconds=self._approval_seconds, **named)

        if refused := await self._approve(asked):
            raise ToolError(refused)
        return shown


async def _preview(tool: Tool, arguments: Arguments) -> str:
    # It reads files.
    return clean(await asyncio.to_thread(tool.preview, arguments)) if tool.preview else ""


def bounded(text: str) -> str:
    """Return a result as it may enter the context: a text that UTF-8 can carry, cut with a mark where it is long."""
    if not isinstance(text, str):
        raise TypeError(f"a tool returns text, not {type(text).__name__}")
    if len(text) > RESULT_CHARS:
        text = f"{text[:RESULT_CHARS]}\n[{len(text) - RESULT_CHARS} more characters left out]"
    return clean(text)


def parse(text: str, tool: Tool) -> Arguments:
    """Return a call's arguments as the tool expects them. ToolError tells the model what is wrong."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The arguments are no valid JSON ({error}). Send the call again.") from error
    if not isinstance(arguments, dict):
        raise ToolError("The arguments must be one JSON object. Send the call again.")
    properties = tool.parameters.get("properties", {})
    if missing := [name for name in tool.parameters.get("required", []) if name not in arguments]:
        raise ToolError(f"`{tool.name}` needs {', '.join(f'`{name}`' for name in missing)}.")
    if unknown := [name for name in arguments if name not in properties]:
        raise ToolError(f"`{tool.name}` does not take {', '.join(f'`{name}`' for name in unknown)}.")
    for name, value in arguments.items():
        wanted = properties[name].get("type", "")
        right = isinstance(value, _TYPES.get(wanted, (object,)))
        # To Python a bool is an int; to a schema it is not.
        if not right or (isinstance(value, bool) and wanted in ("integer", "number")):
            raise ToolError(f"`{name}` of `{tool.name}` must be of type {wanted}.")
    return arguments
