"""Histories of tool results for tests: real events, folded by the real state."""

import json
from collections.abc import Mapping, Sequence

from harness import events as e
from harness.messages import ToolCall
from harness.replay import State
from harness.result_events import Decision, ResultsDecided
from harness.sizes import Usage

TOOLS = tuple(
    {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object"}}}
    for name, text in (("read", "Read a text file, or list a folder. A cut is marked."), ("edit", "Replace a passage"))
)


class Told:
    """A session whose turns a test tells; each event gets the next journal number."""

    def __init__(self, settings: Mapping[str, int] | None = None) -> None:
        self.state, self.seq, self.calls, self.numbered = State(), 0, 0, []
        self.add(
            e.SessionStarted(
                lab="09", extensions=(), workspace="w", language="en", settings=dict(settings or {}), source="w"
            )
        )
        self.add(e.ModelChosen(model="m", provider="offline", reason="no_key"))
        self.add(e.InstructionsSet(system="Be brief.", tools=TOOLS))
        self.ask("Look at the files.")

    def add(self, event: e.Event) -> int:
        """Fold one event and return its journal number."""
        self.seq += 1
        self.numbered.append((self.seq, event))
        self.state.apply(self.seq, event)
        return self.seq

    def ask(self, text: str) -> None:
        """Start the next task."""
        self.add(e.TaskStarted(task=len(self.state.tasks) + 1, text=text, language="en"))

    def reply(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        """Tell one model call that answers with `text` and asks for `calls`."""
        self.calls += 1
        task = len(self.state.tasks)
        sent = {"call": self.calls, "task": task, "turn": self.calls}
        self.add(e.ModelCallStarted(messages=0, parts={}, digest="", **sent))
        self.add(
            e.ModelCallEnded(
                text=text, calls=tuple(calls), reasoning="", finish="stop", usage=Usage(), seconds=0.0, **sent
            )
        )

    def turn(self, *results: tuple[str, Mapping[str, object], str], ok: bool = True) -> list[str]:
        """Tell one turn: (tool, arguments, result) for each of its calls; return the call ids."""
        first = len(self.state.call_ids)
        made = [
            ToolCall(f"c{first + place}", tool, json.dumps(arguments, ensure_ascii=False))
            for place, (tool, arguments, _) in enumerate(results, 1)
        ]
        self.reply("", made)
        for call, (_, _, text) in zip(made, results, strict=True):
            ended = {"call_id": call.id, "name": call.name, "arguments": call.arguments, "text": text}
            self.add(e.ToolEnded(task=len(self.state.tasks), ok=ok, seconds=0.0, **ended))
        return [call.id for call in made]

    def read(self, path: str, text: str, **more: object) -> str:
        """Tell one turn that reads a file; return the call id."""
        return self.turn(("read", {"path": path, **more}, text))[0]

    def decided(self, decisions: Sequence[Decision], *, anew: bool = False) -> None:
        """Record decisions as the agent does, figures apart."""
        if decisions:
            event = ResultsDecided(
                task=len(self.state.tasks), decisions=tuple(decisions), freed_chars=0, freed_tokens=0, anew=anew
            )
            self.add(event)

    @property
    def sent(self) -> list[str]:
        """Return the contents of the next request's messages."""
        return [str(message["content"]) for message in self.state.request().messages]
