"""Builds lists of real events by hand, for tests that need a history without a model."""

from itertools import count

from harness import events as e
from harness.messages import ToolCall
from harness.replay import State
from harness.sizes import Usage

TOOLS = ({"type": "function", "function": {"name": "read", "description": "d", "parameters": {"type": "object"}}},)


class Story:
    """A session that is told event by event; `state` is what the events add up to."""

    def __init__(self) -> None:
        self.state, self.events, self._ids = State(), [], count(1)
        self.emit(e.SessionStarted(lab="07", extensions=(), workspace="w", language="en", settings={"budget": 1500}))
        self.emit(e.ModelChosen(model="m", provider="offline", reason="no_key"))
        self.emit(e.InstructionsSet(system="Be brief.", tools=TOOLS))

    def emit(self, event: e.Event) -> None:
        self.events.append((len(self.events) + 1, event))
        self.state.apply(*self.events[-1])

    def start(self, text: str) -> int:
        task = len(self.state.tasks) + 1
        self.emit(e.TaskStarted(task=task, text=text, language="en"))
        return task

    def reply(self, text: str, calls: tuple[ToolCall, ...] = (), finish: str = "stop") -> None:
        call, task = len(self.state.calls) + 1, self.state.tasks[-1].task
        digest = self.state.context.digest("m")
        parts = dict(self.state.context.totals)
        messages = len(self.state.request().messages)
        self.emit(e.ModelCallStarted(call=call, task=task, turn=1, messages=messages, parts=parts, digest=digest))
        spent = {"usage": Usage(10, 2, 0), "seconds": 0.1, "finish": finish, "reasoning": ""}
        self.emit(e.ModelCallEnded(call=call, task=task, turn=1, text=text, calls=calls, **spent))

    def use(self, name: str, arguments: str, result: str) -> None:
        call = ToolCall(f"c{next(self._ids)}", name, arguments)
        self.reply("", (call,), "tool_calls")
        named = {"call_id": call.id, "name": name, "arguments": arguments}
        self.emit(e.ToolEnded(task=self.state.tasks[-1].task, text=result, ok=True, seconds=0.0, **named))

    def end(self) -> None:
        self.emit(e.TaskEnded(task=self.state.tasks[-1].task, reason="answered", seconds=1.0))

    def task(self, text: str, result: str, answer: str) -> None:
        """Tell one whole task: a request, one call with its result, an answer."""
        self.start(text)
        self.use("read", '{"path":"a"}', result)
        self.reply(answer)
        self.end()
