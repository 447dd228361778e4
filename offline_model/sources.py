"""Collects what the request says, statement by statement, each with the place where it stands.

Knows the shape of a request; knows nothing of questions.
"""

import json
import re
from dataclasses import dataclass
from typing import Literal

from offline_model.chat import Call, ChatRequest, Step, pair
from offline_model.cues import FAR_TOO_LONG, Kind, kind_of
from offline_model.statements import CUT_MARK, Statement, sentences, split

Place = Literal["result", "summary", "answer", "user"]
PROSE = re.compile(r"\.(?:md|markdown|txt|rst)$", re.IGNORECASE)
CODE = re.compile(r"\.(?:py|js|ts|toml|json|ya?ml|sql|cfg|ini|sh|html|css)$", re.IGNORECASE)
LEFT_OUT = re.compile(r"\bshown\b|left out|\bmore\b")
LETTERS = re.compile(r"[^\w\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Item:
    """A statement and where it stands. `label` names the call of a result; `now`: it came in this task."""

    text: str
    kind: Kind
    place: Place
    label: str = ""
    now: bool = False


def gather(request: ChatRequest) -> tuple[Item, ...]:
    """Return what the request says, without doubles: results of this task first, then the older context."""
    start = request.task_start
    items = [item for step in request.steps for item in of_result(step, now=True)]
    items += [item for step in pair(request.turns[:start]) for item in of_result(step, now=False)]
    for turn in request.turns[: max(0, start)]:
        if turn.role == "assistant":
            items += of_answer(turn.text)
    summary = summary_of(request)
    items += [Item(s.text, s.kind, "summary") for s in split(summary)]
    users = [t.text for i, t in enumerate(request.turns) if t.role == "user" and not (i == 1 and summary)]
    items += [Item(rule, "rule", "user") for text in users for rule in rules(text)]
    return unique(items)


def summary_of(request: ChatRequest) -> str:
    """Return the summary that stands for earlier tasks, or "": a bracketed first line, then headings."""
    if request.task_start <= 1 or request.turns[1].role != "user":
        return ""
    preface, _, body = request.turns[1].text.partition("\n\n")
    return body if preface.startswith("[") and re.search(r"^#+ ", body, re.MULTILINE) else ""


def of_result(step: Step, *, now: bool) -> list[Item]:
    """Return the statements of one tool result. Code and command output are taken line by line."""
    label = label_of(step.call)
    return [Item(s.text, s.kind, "result", label, now) for s in _read(step.call, step.result)]


def of_answer(text: str) -> list[Item]:
    """Return the statements of an earlier answer: its bullets, since the sentences around them only lead in."""
    return [Item(s.text, s.kind, "answer") for s in split(text) if s.listed]


def rules(text: str) -> list[str]:
    """Return the sentences of a user's message that forbid or demand, word for word."""
    lines = (line for line in text.splitlines() if line.strip())
    return [part for line in lines for part in sentences(line) if kind_of(part) == "rule"]


def label_of(call: Call) -> str:
    """Return how a call is named in an answer: its tool and the argument that matters."""
    return f"{call.name} {argument(call)}".strip()


def argument(call: Call) -> str:
    """Return the path, command or pattern of a call, or "" when its arguments can't be read."""
    values = arguments(call)
    return next((str(values[name]) for name in ("path", "command", "pattern") if values.get(name)), "")


def arguments(call: Call) -> dict[str, object]:
    """Return the arguments of a call; broken JSON gives none."""
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def cut_note(step: Step) -> str:
    """Return the bracketed last line with which a tool says that it left something out, or ""."""
    lines = step.result.strip().splitlines()
    marked = step.call.name == "read" and len(lines) > 1 and CUT_MARK.match(lines[-1])
    return lines[-1] if marked and LEFT_OUT.search(lines[-1]) else ""


def plain_key(text: str) -> str:
    """Return what two statements are compared by: their letters, digits and Chinese characters."""
    return LETTERS.sub("", text).lower()


def unique(items: list[Item]) -> tuple[Item, ...]:
    """Return `items` without those that say what an earlier one says."""
    seen: dict[str, Item] = {}
    for item in items:
        key = plain_key(item.text)
        if key:
            seen.setdefault(key, item)
    return tuple(seen.values())


def _read(call: Call, text: str) -> tuple[Statement, ...]:
    path = argument(call) if call.name == "read" else ""
    if call.name == "read" and (PROSE.search(path) or "." not in path.rsplit("/", 1)[-1]):
        return split(text)
    code = bool(CODE.search(path)) or call.name == "search"
    lines = (line.strip() for line in text.splitlines())
    kept = (line for line in lines if line and not CUT_MARK.match(line))
    return tuple(Statement(line[:FAR_TOO_LONG], "plain" if code else kind_of(line), True) for line in kept)
