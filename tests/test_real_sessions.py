"""Sessions that real agents recorded go through every strategy, and no invariant is broken.

They lie beside the project and are no part of it; `LAB_TEST_TRANSCRIPTS` names another folder. Of a long one the first
messages are taken, since what a strategy does depends on the window and not on how long it went on.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.messages import clean
from harness.request import dump
from harness.sizes import Usage
from tests.strategies_support import ROOT, Run, labs
from tests.test_invariants import STRATEGIES, check

FOLDER = Path(os.environ.get("LAB_TEST_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts"))
FILES = sorted(path for path in FOLDER.rglob("*.*") if path.is_file()) if FOLDER.is_dir() else []
# Messages of a session, and characters of one text; tokens of the windows.
MOST_MESSAGES, MOST_CHARS = 70, 12_000
WINDOWS = (2_000, 8_000, 40_000)


@dataclass(frozen=True)
class Piece:
    """One message: who says it, its text and thought, its calls as (id, name, arguments), and what a result answers."""

    role: str
    text: str
    thought: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    answers: str = ""


def read(path: Path) -> list[Piece]:
    """Return the messages of a recorded session in order; what is no message is skipped."""
    text = path.read_text("utf-8", errors="replace")
    rows = list(_objects(text))
    messages = rows[0] if len(rows) == 1 and "message" not in rows[0] else rows
    return [piece for message in _messages(messages) for piece in _pieces(message)]


def _objects(text: str) -> Iterator[Any]:
    """Yield every JSON value of a file; a line may hold two, and one that is broken is skipped."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            value, place = decoder.raw_decode(text, place)
        except ValueError:
            place = text.find("\n", place) + 1 or len(text)
            continue
        yield value


def _messages(value: Any) -> Iterator[dict]:
    """Yield the messages in a whole file: of a record of requests those of the longest one."""
    match value:
        case {"packets": [*packets]}:
            yield from max((each["request"]["body"].get("messages", []) for each in packets), key=len)
        case {"samples": [{"messages": [*messages]}, *_]}:
            yield from messages
        case {"messages": [*messages], "response": {"choices": [{"message": answer}, *_]}}:
            yield from [*messages, answer]
        case {"messages": [*messages]} | {"history": [*messages]}:
            yield from messages
        case [*rows]:
            asked = [
                row["request_params"]["messages"] for row in rows if isinstance(row, dict) and "request_params" in row
            ]
            for row in max(asked, key=len) if asked else rows:
                if isinstance(row, dict):
                    yield row["message"] if isinstance(row.get("message"), dict) and "role" in row["message"] else row
        case _:
            return


def _pieces(message: dict) -> Iterator[Piece]:
    """Yield a message as pieces: results that stand in a user's message are messages of their own here."""
    match message:
        case {"kind": "ActionEvent"}:
            called = (str(message["tool_call_id"]), str(message.get("tool_name")), dump(message.get("tool_call")))
            yield Piece("assistant", _text(message.get("thought")), calls=(called,))
            return
        case {"kind": "ObservationEvent"}:
            yield Piece("result", dump(message.get("observation")), answers=str(message["tool_call_id"]))
            return
    role = {"model": "assistant", "toolResult": "tool"}.get(str(message.get("role")), str(message.get("role")))
    blocks = message.get("content", message.get("parts"))
    blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
    blocks = [each if isinstance(each, dict) else {"text": str(each)} for each in blocks or []]
    if role == "tool":
        yield Piece(
            "result", _text(blocks), answers=str(message.get("tool_call_id") or message.get("toolCallId") or "")
        )
        return
    results = [each for each in blocks if each.get("type") == "tool_result" or "functionResponse" in each]
    for each in results:
        inner = each.get("functionResponse", each)
        yield Piece("result", _text(inner.get("content", inner.get("response"))), answers=_id(inner))
    calls = [call for each in blocks if (call := _call(each))] or [
        _call(each) for each in message.get("tool_calls") or []
    ]
    thought = "".join(str(each.get("thinking") or each.get("think") or "") for each in blocks)
    said = _text([each for each in blocks if "text" in each])
    if role in ("user", "assistant") and (said or calls):
        yield Piece(role, said, thought, tuple(call for call in calls if call))


def _call(block: dict) -> tuple[str, str, str] | None:
    if isinstance(block.get("function"), str):
        block = block | {"name": block["function"], "function": None}
    inner = block.get("functionCall") or block.get("function") or block
    if block.get("type") not in ("tool_use", "toolCall", "function") and inner is block:
        return None
    arguments = inner.get("arguments", inner.get("input", inner.get("args", {})))
    text = arguments if isinstance(arguments, str) else dump(arguments)
    return str(block.get("id") or _id(inner)), str(inner.get("name")), clean(text)[:MOST_CHARS]


def _id(block: dict) -> str:
    return str(block.get("tool_use_id") or block.get("id") or "")


def _text(value: Any) -> str:
    match value:
        case str():
            text = value
        case [*parts]:
            text = "\n".join(_text(part) for part in parts)
        case {"text": str(text)}:
            pass
        case None:
            text = ""
        case _:
            text = dump(value)
    return clean(text)[:MOST_CHARS]


class Retelling:
    """Tells a recorded session to a run, as the loop would have."""

    def __init__(self, run: Run) -> None:
        self._run, self._open = run, {}

    async def all(self, pieces: list[Piece]) -> None:
        """Tell all of it."""
        for piece in pieces:
            match piece:
                case Piece(role="user"):
                    await self._request(piece.text)
                case Piece(role="assistant"):
                    await self._reply(piece)
                case _:
                    self._result(piece)
        await self._end()
        self._run.finish()

    async def _request(self, text: str) -> None:
        if text.strip():
            await self._end()
            self._run.start(text)

    async def _reply(self, piece: Piece) -> None:
        if not self._run.running:
            self._run.start("Go on with the work that was begun.")
        await self._run.before_turn()
        asked = [(name, arguments) for _, name, arguments in piece.calls]
        made = self._run.reply(piece.text, asked, reasoning=piece.thought, usage=lambda tokens: Usage(tokens + 7, 5, 0))
        # A recorded id can come twice, so that a result belongs to the newest call that has it.
        self._open |= {name: call for (name, _, _), call in zip(piece.calls, made, strict=True)}

    def _result(self, piece: Piece) -> None:
        waiting = self._run.state.unanswered
        call = self._open.get(piece.answers)
        if call and call.id in waiting:
            self._run.result(call, piece.text)
        elif not piece.answers and waiting:
            self._run.result(next(iter(waiting.values())), piece.text)
        elif self._run.running:
            # Its call is not in the recording.
            self._run.follow_up(piece.text or "nothing")

    async def _end(self) -> None:
        if self._run.running:
            for call in list(self._run.state.unanswered.values()):
                self._run.result(call, "Stopped before it had ended.", ok=False)
            await self._run.on_stop()
            self._run.end()


@pytest.mark.skipif(not FILES, reason=f"the recorded sessions are not there: {FOLDER.name}/ beside the project")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name[:40]}")
def test_a_recorded_session_goes_through_every_strategy(path: Path, tmp_path: Path) -> None:
    pieces = read(path)[:MOST_MESSAGES]
    for place, numbers in enumerate(STRATEGIES):
        window = WINDOWS[(place + FILES.index(path)) % len(WINDOWS)]
        chosen = {
            "window": window,
            "budget": window,
            "reserve": window // 4,
            "keep": window // 8,
            "result_limit": window,
        }
        run = Run(numbers, chosen, check, folder=tmp_path)
        asyncio.run(Retelling(run).all(pieces))


@pytest.mark.skipif(not FILES, reason="the recorded sessions are not there")
def test_the_recordings_are_read() -> None:
    """A reader that finds nothing would prove nothing."""
    found = {path: read(path) for path in FILES}
    assert sum(bool(pieces) for pieces in found.values()) >= len(FILES) - 4
    assert sum(len(piece.calls) for pieces in found.values() for piece in pieces) > 500
    assert sum(piece.role == "result" for pieces in found.values() for piece in pieces) > 500
    assert labs().keys() >= {"07", "08"}
