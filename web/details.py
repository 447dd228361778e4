"""What single rows show beyond their event: a call's arguments and diff, a compaction's originals."""

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness import events as e
from harness.context import Entry
from harness.journal import Recorded
from harness.messages import clean
from harness.records import Compaction
from harness.replay import State
from harness.stages import TRIGGER as STAGE

Kind = Literal["add", "del", "hunk", "same"]
# The argument that says most about a call, by the names that the tools use.
KEY_ARGUMENTS = ("path", "command", "pattern")
KEY_CHARS = 160
# Messages that a compaction's row repeats; those before them stand in the feed above it.
MOST_ORIGINALS = 100
# What is said of a compaction of the whole request, by its trigger.
_WHY = {"by hand": "by_hand_request", "overflow": "why_overflow", STAGE: "why_stage"}
# Unicode's controls of the writing direction.
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class CallDetail:
    """A tool call as a person reads it.

    key: the argument that says most. raw: the arguments where they are no JSON object. diff: empty where
    the call changes no file. result: the line of the result that says most. lines: of the result.
    answer: what a person said, if asked.
    """

    key: str
    arguments: tuple[tuple[str, str], ...]
    raw: str
    diff: tuple[DiffLine, ...]
    preview: str
    result: str
    lines: int
    answer: e.ApprovalAnswered | None


@dataclass(frozen=True, slots=True)
class CompactionDetail:
    """The messages that a summary stands for, whole and in order: the newest of them, and how many there are.

    earlier: characters of JSON of the summary that it replaced; 0 without one.
    undone: it was taken back, by a person or (`left`) because the task went on from a checkpoint before it.
    undoable: it is the newest in force, so that it can be taken back.
    until: the number of the one in force that replaced it, or 0.
    changed: what a person changed in the summary before it took effect; empty where nobody did.
    content: the whole message as the model reads it. system: it is sent as a system message now.
    why: a code, for what triggered it. request: the running task's request stands before the cut and stays.
    waiting: messages that stay because their calls have no result yet.
    """

    originals: tuple[Entry, ...]
    count: int
    earlier: int
    undone: bool
    left: bool
    undoable: bool
    until: int
    changed: tuple[DiffLine, ...]
    content: str
    system: bool
    why: str
    request: bool
    waiting: int


@dataclass(frozen=True, slots=True)
class PartialDetail:
    """As much of a reply as has come so far."""

    text: str
    reasoning: str


CallEvent = e.ApprovalRequested | e.ApprovalAnswered | e.ToolStarted | e.ToolEnded


def call_detail(event: CallEvent, before: Sequence[e.Event]) -> CallDetail:
    """Build what a call's row shows; `before` are the earlier events of the same call."""
    arguments = {visible(name): visible(value) for name, value in _arguments(event.arguments).items()}
    seen = [event, *before]
    preview = visible(next((each.preview for each in seen if isinstance(each, e.ApprovalRequested)), ""))
    result = event.text if isinstance(event, e.ToolEnded) else ""
    return CallDetail(
        key=key_of(event.arguments),
        arguments=tuple(arguments.items()),
        raw="" if arguments else visible(event.arguments),
        diff=_diff(event.name, arguments, preview),
        preview=preview,
        result=telling_line(result),
        lines=len(result.splitlines()),
        answer=next((each for each in seen if isinstance(each, e.ApprovalAnswered)), None),
    )


def key_of(text: str) -> str:
    """Return the argument that says most about a call, in one line: key_of('{"path": "a.md"}') -> "a.md"."""
    arguments = {name: visible(value) for name, value in _arguments(text).items()}
    key = next((arguments[name] for name in KEY_ARGUMENTS if name in arguments), "")
    return first_line(key or next(iter(arguments.values()), "" if arguments else text))


def visible(text: str) -> str:
    """Return `text` with signs that turn the writing around spelled out: what is allowed must be what is read."""
    return _TURNS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def compaction_detail(made: Compaction, state: State, records: Sequence[Recorded]) -> CompactionDetail:
    """Build what a compaction's row shows beside its summary."""
    removed, event = made.removed, made.event
    later = next((each.event.number for each in state.compactions[event.number :] if not each.undone), 0)
    newest = not made.undone and not later
    now = next((entry for entry in state.context.entries if entry.seq == made.seq), made.summary) if newest else None
    past = "why_request" if event.measured > event.budget else "why_other"
    # While a task runs, its request at least stays.
    alone = event.trigger == STAGE and not event.kept and not event.pinned
    request = bool(event.pinned) and state.tasks[event.task - 1].seq in event.pinned
    return CompactionDetail(
        originals=tuple(removed[-MOST_ORIGINALS:]),
        count=len(removed),
        earlier=sum(entry.size.chars for entry in removed if entry.category == "summary"),
        undone=bool(made.undone),
        left=bool(made.undone) and isinstance(records[made.undone - 1].event, e.TaskResumed),
        undoable=newest,
        until=0 if made.undone else later,
        changed=text_diff(event.written, event.summary) if event.written else (),
        content=str(made.summary.wire["content"]),
        system=now is not None and now.wire["role"] == "system",
        why="why_stage_idle" if alone else _WHY.get(event.trigger, past),
        request=request,
        waiting=len(event.pinned) - request,
    )


def text_diff(old: str, new: str) -> tuple[DiffLine, ...]:
    """Return what makes `new` of `old`, line by line."""
    return diff_lines(list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)))


def first_line(text: str) -> str:
    """Return the first line of a text, with a sign when there is more: first_line("a\\nb") -> "a …"."""
    line, _, rest = text.strip().partition("\n")
    return line[:KEY_CHARS] + (" …" if rest or len(line) > KEY_CHARS else "")


def telling_line(result: str) -> str:
    """Return a bracketed last line, where the tools say how it ended or what was left out, else the first line."""
    last = result.strip().rpartition("\n")[2]
    return last[:KEY_CHARS] if last.startswith("[") and last.endswith("]") else first_line(result)


def diff_lines(lines: Sequence[str]) -> tuple[DiffLine, ...]:
    """Mark the lines of a unified diff; what stands before its first hunk is left out, the row names the file."""
    start = next((number for number, line in enumerate(lines) if line.startswith("@@")), 0)
    body = lines[start:]
    kinds: dict[str, Kind] = {"+": "add", "-": "del", "@": "hunk"}
    return tuple(DiffLine(kinds.get(line[:1], "same"), line) for line in body)


def _arguments(text: str) -> dict[str, str]:
    """Return the arguments by name, each as text; broken JSON has none."""
    try:
        value = json.loads(text)
        named = value.items() if isinstance(value, dict) else ()
        return {clean(k): clean(v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for k, v in named}
    except (ValueError, RecursionError):
        return {}


def _diff(name: str, arguments: dict[str, str], preview: str) -> tuple[DiffLine, ...]:
    """Return the approval's own diff, or for an edit one of its two texts."""
    lines = preview.splitlines()
    if name in ("write", "edit") and any(line.startswith("@@") for line in lines):
        return diff_lines(lines)
    if name == "edit" and {"old", "new"} <= set(arguments):
        return text_diff(arguments["old"], arguments["new"])
    return ()
