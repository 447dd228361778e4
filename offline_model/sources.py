"""Collects what the request says, statement by statement, each with the place where it stands.

Knows the shape of a request; knows nothing of questions.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from offline_model.background import backgrounds, blocks, bullets, told
from offline_model.calls import HANDS_ON, argument, label_of
from offline_model.chat import BACKGROUND, Call, ChatRequest, Step, pair
from offline_model.cues import FAR_TOO_LONG, Kind, kind_of
from offline_model.deeds import is_deed, read_deeds
from offline_model.fitting import NOTE
from offline_model.statements import CUT_MARK, Statement, sentences, split

Place = Literal["result", "summary", "answer", "user"]
PROSE = re.compile(r"\.(?:md|markdown|txt|rst)$", re.IGNORECASE)
CODE = re.compile(r"\.(?:py|js|ts|toml|json|ya?ml|sql|cfg|ini|sh|html|css)$", re.IGNORECASE)
# The whole result of another tool, kept in a file.
KEPT_LINES = re.compile(r"^\.tool-results/(?:agent-\d+-)?\d+-(?!read\.)")
TABLE = re.compile(r"\.(?:csv|tsv)$", re.IGNORECASE)
LEFT_OUT = re.compile(r"\bshown\b|left out|\bmore\b")
# What these return says that the call was taken, and nothing about what is worked on.
SAYS_NOTHING = ("end_stage", "remember", "forget")
# With these words a user tells something; "remember" alone may be a wish.
TELLS = re.compile(
    r"^(?:please )?(?:(?:remember|note|keep in mind) that"
    r"|by the way,|for your information[,:]|only for (?:today|now)[,:])\s*"
    r"|^(?:请|请你)?(?:记住|记下)[：:，,]|^(?:顺便说一下|只是今天|今天临时)[：:，,]",
    re.IGNORECASE,
)
# How what a file or a skill beside a summary says is labelled, before its name.
BESIDE = "beside "
LETTERS = re.compile(r"[^\w\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Item:
    """A statement and where it stands. `label` names the call of a result, or a text beside a summary.

    `now`: it came in this task.
    """

    text: str
    kind: Kind
    place: Place
    label: str = ""
    now: bool = False


def gather(request: ChatRequest) -> tuple[Item, ...]:
    """Return what the request says, without doubles: results of this task first, then the older context."""
    start = request.task_start
    # A summary that tells what of this task is done speaks of this task, and of its beginning.
    now = bool(told(request))
    known = [item for text in backgrounds(request) for item in of_summary(text, now=now)]
    known = [item for item in known if not (now and _is_the_task(item, request.question))]
    items = known if now else []
    items += [item for step in request.steps for item in of_result(step, now=True)]
    items += [item for step in pair(request.turns[: max(0, start)]) for item in of_result(step, now=False)]
    for turn in request.turns[: max(0, start)]:
        if turn.role == "assistant":
            items += of_answer(turn.text)
    items += [] if now else known
    users = [turn.text for turn in request.turns if turn.role == "user" and not turn.background]
    items += [Item(rule, "rule", "user") for text in users for rule in rules(text)]
    return unique(items)


def summary_of(request: ChatRequest) -> str:
    """Return the summaries that stand for what came before, or "": a bracketed first line, then headings."""
    return "\n\n".join(backgrounds(request))


def of_summary(text: str, *, now: bool = False) -> list[Item]:
    """Return the statements of a summary and of what stands beside it; what the user demanded is a rule."""
    items: list[Item] = []
    for block in blocks(text):
        match block.holds:
            case "summary":
                lines = block.text.splitlines()
                done = [line.strip().lstrip("-* ") for line in lines if is_deed(line)]
                items += [Item(line, _deed_kind(line), "summary", now=now) for line in done]
                rest = "\n".join(line for line in lines if not is_deed(line))
                items += [Item(s.text, s.kind, "summary", now=now) for s in split(rest)]
            case "demands":
                items += [Item(demand, "rule", "summary", now=now) for demand in bullets(block.text)]
            case "texts":
                # A file may hold rules, but nobody may take them for demands of the user. What a note says is known
                # once it was read, and not from its line in a list.
                lines = [line.removeprefix("> ") for line in block.text.splitlines() if not NOTE.match(line)]
                found = [s for line in lines for s in split(line)]
                label = f"{BESIDE}{block.name}" if block.name else ""
                items += [Item(s.text, "plain" if s.kind == "rule" else s.kind, "summary", label, now) for s in found]
    return items


def of_result(step: Step, *, now: bool) -> list[Item]:
    """Return the statements of one tool result. Code and command output are taken line by line."""
    if step.call.name in SAYS_NOTHING:
        return []
    label = label_of(step.call)
    if step.call.name == HANDS_ON:
        # As of an answer: its points are what it says, the sentences around them only lead in.
        return [Item(s.text, s.kind, "result", label, now) for s in split(step.result) if s.listed]
    return [Item(s.text, s.kind, "result", label, now) for s in _read(step.call, step.result)]


def of_answer(text: str) -> list[Item]:
    """Return the statements of an earlier answer: its bullets, since the sentences around them only lead in."""
    return [Item(s.text, s.kind, "answer") for s in split(text) if s.listed]


def rules(text: str) -> list[str]:
    """Return the sentences of a user's message that forbid or demand, word for word."""
    lines = (line for line in text.splitlines() if line.strip())
    return [part for line in lines for part in sentences(line) if kind_of(part) == "rule"]


def facts_told(request: ChatRequest) -> list[Item]:
    """Return what the user told in earlier messages, in so many words; a question or a wish tells nothing."""
    users = [turn.text for turn in request.turns[: max(0, request.task_start)] if turn.role == "user"]
    lines = [line for text in users if not BACKGROUND.match(text) for line in text.splitlines()]
    told = [(part, TELLS.match(part)) for line in lines for part in sentences(line)]
    return [Item(part[words.end() :], "plain", "user") for part, words in told if words]


def cut_note(step: Step) -> str:
    """Return the bracketed last line with which a tool says that it left something out, or ""."""
    lines = step.result.strip().splitlines()
    marked = step.call.name == "read" and len(lines) > 1 and CUT_MARK.match(lines[-1])
    return lines[-1] if marked and LEFT_OUT.search(lines[-1]) else ""


def plain_key(text: str) -> str:
    """Return what two statements are compared by: their letters, digits and Chinese characters."""
    return LETTERS.sub("", text).lower()


def unique(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return `items` without those that say what an earlier one says."""
    seen: dict[str, Item] = {}
    for item in items:
        key = plain_key(item.text)
        if key:
            seen.setdefault(key, item)
    return tuple(seen.values())


def _is_the_task(item: Item, question: str) -> bool:
    # What is to do is the task itself until it is answered, so the answer must not call it open.
    return item.kind == "open" and bool(key := plain_key(item.text)) and key in plain_key(question)


def _deed_kind(line: str) -> Kind:
    return "done" if read_deeds(line) else "failed"


def _read(call: Call, text: str) -> tuple[Statement, ...]:
    path = argument(call) if call.name == "read" else ""
    prose = PROSE.search(path) and not KEPT_LINES.search(path)
    if call.name in ("recall", "skill") or (call.name == "read" and (prose or "." not in path.rsplit("/", 1)[-1])):
        return split(text)
    code = bool(CODE.search(path) or KEPT_LINES.search(path)) or call.name == "search"
    lines = (line.strip() for line in text.splitlines())
    if TABLE.search(path):
        return tuple(statement for line in lines if line for statement in _row(line))
    kept = (line for line in lines if line and not CUT_MARK.match(line))
    return tuple(Statement(line[:FAR_TOO_LONG], "plain" if code else kind_of(line), True) for line in kept)


def _row(line: str) -> tuple[Statement, ...]:
    """Return one line of a table: a remark is text, a row is data that nothing can mark."""
    if line.startswith("#"):
        return split(line.lstrip("# "))
    return () if CUT_MARK.match(line) else (Statement(line[:FAR_TOO_LONG], "plain", False),)
