"""What of the workplace stands beside a summary: files read of late, as they were read, and the tools. Pure.

A file named `SKILL.md` tells how to work, so it counts as an active skill and comes before the others. The texts are
whatever a file held: each line is quoted, so that none can pass for a line of ours.
"""

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from harness import tokens
from harness.context import Entry
from harness.messages import AssistantMessage, ToolCall, ToolResult
from harness.replay import State
from harness.sizes import size_of
from harness.wording import Wording

SKILL = "SKILL.md"
# Where the agent has a tool for skills, those that it read with it are put back by whoever brings the tool.
SKILL_TOOL = "skill"
# Messages of the history that are looked at for files; more would make a compaction dearer the longer a session is.
LOOK_BACK = 1_000
_CHANGES = ("edit", "write")
# Blanks come to more characters a token than any text; what is longer than this need not be counted.
_MOST_CHARS_PER_TOKEN = 100
_PATH_CHARS = 200
_DESCRIPTION_CHARS = 200


@dataclass(frozen=True, slots=True)
class Room:
    """How much is restored: files in number, tokens of each, tokens of all together."""

    files_most: int
    file_tokens: int
    files_tokens: int

    @classmethod
    def of(cls, settings: Mapping[str, int]) -> "Room":
        """Return the room that the settings of a session name."""
        return cls(*(settings[name] for name in cls.__slots__))


@dataclass(frozen=True, slots=True)
class Reading:
    """The newest reading of a file. changed: the agent has changed the file since."""

    path: str
    result: ToolResult
    changed: bool

    @property
    def skill(self) -> bool:
        """Whether the file tells how to work."""
        return posixpath.basename(self.path) == SKILL

    @property
    def skill_name(self) -> str:
        """Return the name of the skill, which is that of its folder, or ""."""
        return posixpath.basename(posixpath.dirname(self.path)) if self.skill else ""


def restored(state: State, removed: Sequence[Entry], words: Wording, room: Room) -> str:
    """Return the lines that stand beside the summary of `removed`; "" where there is nothing to say.

    What was read in messages that stay is not repeated. Together the files take at most half of what is removed, so
    that the summary still frees something.
    """
    seen, freed = staying(state, removed)
    twice = skills_read(state) if _has_tool(state, SKILL_TOOL) else {}
    found = [each for each in readings(state) if each.result.call_id not in seen and each.skill_name not in twice]
    found.sort(key=lambda each: not each.skill)
    left = min(room.files_tokens, freed // 2)
    blocks: list[str] = []
    for each in found[: room.files_most]:
        block, spent = _block(each, words, min(room.file_tokens, left))
        blocks.append(block)
        left -= spent
    files = "\n".join([words.files, *blocks]) if blocks else ""
    return "\n\n".join(filter(None, [files, _tools(state, words)]))


def staying(state: State, removed: Sequence[Entry]) -> tuple[set[str], int]:
    """Return the ids of the calls whose results stay when `removed` goes, and the tokens of what goes."""
    gone = {entry.seq for entry in removed}
    stays = [entry for entry in state.context.entries if entry.seq not in gone]
    seen = {entry.message.call_id for entry in stays if isinstance(entry.message, ToolResult)}
    return seen, (state.context.messages - size_of(stays)).tokens


def readings(state: State) -> list[Reading]:
    """Return the newest reading of each file, the newest first, from the history: also what was summarised before."""
    found: dict[str, Reading] = {}
    changed: set[str] = set()
    for call, result in _answered(state):
        path = _path(call) if result.ok else ""
        if call.name in _CHANGES:
            changed.add(path)
        elif call.name == "read" and path and path not in found:
            found[path] = Reading(path, result, path in changed)
    return list(found.values())


def skills_read(state: State) -> dict[str, ToolResult]:
    """Return the newest result of each skill that was read with the tool for them, by name, the newest first."""
    found: dict[str, ToolResult] = {}
    for call, result in _answered(state):
        if call.name == SKILL_TOOL and result.ok and (name := _argument(call, "name")):
            found.setdefault(name, result)
    return found


def _answered(state: State) -> Iterator[tuple[ToolCall, ToolResult]]:
    """Yield calls with their results, the newest first."""
    results: dict[str, ToolResult] = {}
    for entry in islice(reversed(state.history), LOOK_BACK):
        if state.is_left(entry.seq):
            # The files are again what they were before it.
            continue
        match entry.message:
            case ToolResult(call_id=call_id) as result:
                results[call_id] = result
            case AssistantMessage(calls=calls):
                yield from ((call, results.pop(call.id)) for call in reversed(calls) if call.id in results)
            case _:
                pass


def _path(call: ToolCall) -> str:
    """Return the file that a call names, written one way; "" for a folder, or where it names none."""
    path = _argument(call, "path")
    if not path.strip() or path.endswith("/"):
        return ""
    path = posixpath.normpath(path)
    return "" if path in (".", "..") else path


def _argument(call: ToolCall, name: str) -> str:
    """Return an argument of a call that is a text; "" where it has none of this name."""
    try:
        value = json.loads(call.arguments)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return value if isinstance(value, str) else ""


def _block(reading: Reading, words: Wording, room: int) -> tuple[str, int]:
    """Return the lines for one file and the tokens that they take, at most `room` for its text."""
    path = " ".join(reading.path.replace("`", "'").split())[:_PATH_CHARS]
    if reading.changed:
        return words.file_changed.format(path=path), 0
    text = quoted(reading.result.text)
    size = fits(text, room)
    if size is None:
        return words.file_path.format(path=path), 0
    return f"{words.file.format(path=path)}\n{text}", size


def fits(text: str, room: int) -> int | None:
    """Return how many tokens a text takes; None where it takes more than `room`."""
    size = tokens.count(text) if len(text) <= room * _MOST_CHARS_PER_TOKEN else room + 1
    return size if size <= room else None


def quoted(text: str) -> str:
    """Return `text` with a mark before each line, so that none of its lines stands alone: quoted("a") -> "> a"."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def _has_tool(state: State, name: str) -> bool:
    made = state.instructions
    return made is not None and any(tool["function"]["name"] == name for tool in made.tools)


def _tools(state: State, words: Wording) -> str:
    """Return one line for each tool: its name and the first sentence of what it says of itself."""
    made = state.instructions
    if not (made and made.tools and words.tools):
        return ""
    functions = [tool["function"] for tool in made.tools]
    return "\n".join(
        [words.tools, *(f"- {each['name']}: {_first_sentence(each['description'])}" for each in functions)]
    )


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    ends = [place for mark in (". ", "。") if (place := line.find(mark)) >= 0]
    return line[: min(ends) + 1 if ends else _DESCRIPTION_CHARS][:_DESCRIPTION_CHARS]
