"""The same long conversation for every bench: as events of ours, and as the plain messages that peers are given.

Twenty messages make a task: a request, nine calls with a result each, an answer. A message has some 250 characters.
"""

from collections.abc import Mapping
from pathlib import Path

from bench.lost_cost import ANSWER_ZH, PLAN, REQUEST, REQUEST_ZH, RESULT
from harness import events as e
from harness.combining import DEFAULTS
from harness.context import Entry
from harness.discovery import Lab, find_labs
from harness.messages import ToolCall
from harness.replay import State, fold
from harness.request import dump
from harness.sizes import Usage

ROOT = Path(__file__).parent.parent
TASK = 20  # messages
# A window in tokens and a budget in characters that no conversation of a bench comes near.
ROOMY = {"window": 100_000_000, "budget": 10**9}
INSTRUCTIONS = "You are an agent."
TOOL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def labs() -> dict[str, Lab]:
    """Return the labs that compact and whose extension is there, by number."""
    return {
        number: lab
        for number, lab in find_labs(ROOT / "labs").items()
        if lab.compacts and (lab.folder / "extension.py").is_file()
    }


def settings_of(lab: Lab, **own: int) -> dict[str, int]:
    """Return the settings of a session of `lab` with its article's numbers, where it has those, and `own`."""
    article = next((preset.settings for preset in lab.presets if preset.id == "article"), {})
    return DEFAULTS | dict(lab.settings) | dict(article) | own


def words(number: int) -> dict[str, object]:
    """Return what the texts of message `number` are filled with; no two messages are alike."""
    return {
        "n": number, "file": f"gates/lane_{number}.py", "lane": number, "line": number % 400 + 1,
        "few": number % 9, "some": number % 60, "id": f"tg-{number:05x}",
    }  # fmt: skip


def call(number: int) -> ToolCall:
    """Return the call of message `number`."""
    command = "pytest tests/test_lane_{lane}.py -q -k probe_{n} --maxfail 2".format(**words(number))
    return ToolCall(f"call_{number:08x}", "bash", dump({"command": command}))


class Conversation:
    """A session of ours that grows by events; `numbered` are those so far, each with its journal number."""

    def __init__(self, lab: Lab, settings: Mapping[str, int]) -> None:
        self.state = State()
        self.numbered: list[tuple[int, e.Event]] = []
        self.emit(
            e.SessionStarted(
                lab=lab.number, extensions=(), workspace="gates", language="en", settings=dict(settings)
            )
        )  # fmt: skip
        self.emit(e.ModelChosen(model="m", provider="offline", reason="no_key"))
        self.emit(e.InstructionsSet(system=INSTRUCTIONS, tools=()))

    def emit(self, event: e.Event) -> None:
        """Take in one event, as a session does."""
        self.numbered.append((len(self.numbered) + 1, event))
        self.state.apply(*self.numbered[-1])

    def grow(self, messages: int) -> "Conversation":
        """Let there be that many messages, in tasks that have ended."""
        while (number := len(self.state.history)) < messages:
            if number % TASK == 0:
                self.begin()
            else:
                self._turn(number, last=number % TASK == TASK - 1 or number == messages - 1)
        return self

    def begin(self) -> None:
        """Start a task."""
        number = len(self.state.history)
        text = (REQUEST_ZH if number // TASK % 2 else REQUEST).format(**words(number))
        self.emit(e.TaskStarted(task=len(self.state.tasks) + 1, text=text, language="en"))

    def again(self) -> "Conversation":
        """Return a fresh copy, whose messages are not counted a second time."""
        copy = object.__new__(Conversation)
        known: dict[int, Entry] = {entry.seq: entry for entry in self.state.history}
        copy.numbered, copy.state = list(self.numbered), fold(self.numbered, known)
        return copy

    def _turn(self, number: int, *, last: bool) -> None:
        state, task = self.state, len(self.state.tasks)
        made = {"call": len(state.calls) + 1, "task": task, "turn": 1}
        self.emit(e.ModelCallStarted(messages=number, parts=dict(state.context.totals), digest="", **made))
        calls = () if last else (call(number),)
        text = (ANSWER_ZH if last else PLAN).format(**words(number))
        ended = {"finish": "stop", "usage": Usage(state.context.total.tokens, 80), "seconds": 0.0, "reasoning": ""}
        self.emit(e.ModelCallEnded(text=text, calls=calls, **ended, **made))
        for each in calls:
            result = RESULT.format(**words(number + 1))
            named = {"task": task, "call_id": each.id, "name": each.name, "arguments": each.arguments}
            self.emit(e.ToolEnded(text=result, ok=True, seconds=0.0, **named))
        if last:
            self.emit(e.TaskEnded(task=task, reason="answered", seconds=0.0))
