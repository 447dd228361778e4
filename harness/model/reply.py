"""What one model call brings back, put together from the chunks of its stream. Pure: a chunk is a plain
dict of Chat Completions. Knows nothing of HTTP, and looks at no tool call that stands in the text.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.messages import ToolCall, clean
from harness.model.usage import read_usage
from harness.sizes import Usage

Kind = Literal["text", "reasoning"]
Delta = tuple[str, Kind]

# Of one reply, in characters: one without an end must not stop everybody else. 128,000 tokens are about half of it.
MOST_CHARS = 1_000_000
_THOUGHT = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)
_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole reply. `finish` is the provider's word, empty if it gave none; `seconds` are wall time.

    `marks` are codes for what was unusual: empty, more_choices, no_finish, no_usage, made_ids, refusal,
    calls_in_text, thought_in_text, adapted_request, endless.
    """

    text: str
    calls: tuple[ToolCall, ...]
    reasoning: str
    finish: str
    usage: Usage
    seconds: float
    marks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Call:
    """A tool call while its pieces arrive."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Assembly:
    """A reply while its chunks arrive. `new_id` makes an id that no other call of the session has."""

    new_id: Callable[[], str]
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    finish: str = ""
    usage: Usage = Usage()
    chunks: int = 0
    marks: set[str] = field(default_factory=set)
    left: int = MOST_CHARS
    _calls: list[_Call] = field(default_factory=list)
    _at: dict[int, _Call] = field(default_factory=dict)

    def add(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """Take one chunk; return the new pieces of text and reasoning, in order. Odd parts are skipped."""
        self.chunks += 1
        usage = read_usage(chunk.get("usage"), chunk.get("timings"))
        if usage != Usage():
            self.usage = usage
        deltas: list[Delta] = []
        for position, choice in enumerate(_dicts(chunk.get("choices"))):
            # Some servers answer twice whatever `n` says; the first answer is the reply.
            if choice.get("index") or position:
                self.marks.add("more_choices")
                continue
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                deltas += self._delta(delta)
            if isinstance(choice.get("finish_reason"), str):
                self.finish = clean(choice["finish_reason"])
        if self.left <= 0:  # it ends here, as one that was cut by its length
            self.finish = "length"
            self.marks.add("endless")
        return deltas

    def _fitting(self, piece: str) -> str:
        """Return as much of a piece as there is room for."""
        piece = piece[: max(0, self.left)]
        self.left -= len(piece)
        return piece

    def _delta(self, delta: Mapping[str, Any]) -> list[Delta]:
        for piece in _dicts(delta.get("tool_calls")):
            self._call_piece(piece)
        deltas: list[Delta] = []
        if thought := self._fitting(_plain(delta.get("reasoning_content")) or _plain(delta.get("reasoning"))):
            self.reasoning.append(thought)
            deltas.append((clean(thought), "reasoning"))
        text = self._fitting(_plain(delta.get("content")))
        if not text and (text := self._fitting(_plain(delta.get("refusal")))):
            self.marks.add("refusal")
        if text:
            self.text.append(text)
            deltas.append((clean(text), "text"))
        return deltas

    def _call_piece(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        number, call_id = piece.get("index"), _plain(piece.get("id"))
        name = self._fitting(_plain(function.get("name")))
        arguments = self._fitting(_arguments(function.get("arguments")))
        call = self._at.get(number) if isinstance(number, int) else self._without_index(call_id)
        if call is None or _begins(call, call_id, name):
            call = _Call()
            self._calls.append(call)
        if isinstance(number, int):
            self._at[number] = call
        # Most servers send a name once or in pieces; some send the whole of it again with every piece.
        again = call.arguments or (call_id and call_id == call.id and name == call.name)
        call.id = call.id or call_id
        call.name += "" if again else name
        call.arguments += [arguments] if arguments else []

    def _without_index(self, call_id: str) -> _Call | None:
        same = [call for call in self._calls if call_id and call.id == call_id]
        return (same or self._calls or [None])[-1]

    def reply(self, seconds: float, taken: set[str]) -> Reply:
        """Return the whole. `taken` are ids that calls may not have; the ids of this reply are added."""
        calls = tuple(self._finished(call, taken) for call in self._calls if call.name or call.arguments)
        text, reasoning = _joined(self.text), _joined(self.reasoning)
        if thought := _THOUGHT.match(text):
            self.marks.add("thought_in_text")
            text, reasoning = text[thought.end() :], reasoning + thought[1].strip()
        if not text.strip() and not calls:
            self.marks.add("empty")
        if not self.finish:
            self.marks.add("no_finish")
        if self.usage == Usage():
            self.marks.add("no_usage")
        marks = tuple(sorted(self.marks))
        return Reply(text, calls, reasoning, self.finish, self.usage, seconds, marks)

    def _finished(self, call: _Call, taken: set[str]) -> ToolCall:
        call_id = clean(call.id)
        if not call_id or call_id in taken:
            self.marks.add("made_ids")
            call_id = self.new_id()
        taken.add(call_id)
        # What goes back to the provider must be a name that it accepts, also when the model made it up.
        name = _BAD_IN_NAME.sub("_", call.name)[:64] or "unnamed"
        return ToolCall(call_id, name, _joined(call.arguments).strip() or "{}")


def _begins(call: _Call, call_id: str, name: str) -> bool:
    """Return whether a piece starts a new call although it carries the index of `call`, or none."""
    if not name:
        return False
    if call_id and call.id:
        return call_id != call.id
    return bool(call.arguments) and (name != call.name or _whole(call.arguments))


def _whole(pieces: list[str]) -> bool:
    # The look at the last piece spares parsing everything again with every piece.
    if not pieces[-1].rstrip().endswith("}"):
        return False
    try:
        json.loads("".join(pieces))
    except (ValueError, RecursionError):
        return False
    return True


def _arguments(value: object) -> str:
    # Some servers send the arguments as an object instead of as JSON text.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else _plain(value)


def _joined(pieces: list[str]) -> str:
    """Return the whole text. A pair of surrogates that came in two pieces is one character again."""
    text = "".join(pieces)
    if clean(text) == text:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _plain(value: object) -> str:
    """Return the text of a field that is a string or, with some servers, a list of parts."""
    if isinstance(value, str):
        return value
    return "".join(_plain(part.get("text")) for part in _dicts(value))
