"""Which statements stand under which heading of a summary, and how it is written down.

A heading has a part to play; a kind of statement goes to the first part on its list that the headings offer.
A heading that takes several kinds names the kind in front, so that it is read back as what it was.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from offline_model.cues import Kind
from offline_model.phrases import Language
from offline_model.sources import Item

Role = Literal[
    "goal", "rule", "done", "doing", "failed", "file", "context",
    "confirmed", "unverified", "rejected", "change", "open",
]  # fmt: skip

HEADING_LINE = re.compile(r"^(#{2,3}) +(.+?)\s*$", re.MULTILINE)
ROLES: tuple[tuple[Role, str], ...] = (
    ("goal", r"goal|目标"),
    ("rule", r"constraint|约束"),
    ("doing", r"in progress|current work|进行中|当前工作"),
    ("done", r"^done\b|completed|已完成"),
    ("failed", r"blocked|\berrors?\b|受阻|错误"),
    ("file", r"^files\b|文件"),
    ("context", r"critical context|key (?:information|technical)|必要信息|关键信息|技术要点"),
    ("unverified", r"unverified|suspect|待验证|怀疑"),
    ("rejected", r"reject|ruled out|否定|否决|排除"),
    ("change", r"change|decision|改动|变更|决定|决策"),
    ("open", r"\bopen\b|next steps?\b|\bto do\b|未解决|待办|下一步|待查"),
    ("confirmed", r"confirmed|已确认"),
)
# A summary with one of these says how far the work is; one without them only what is known.
OF_WORK: frozenset[Role] = frozenset({"rule", "doing", "done", "failed", "file", "context"})
GOES_TO: dict[Kind, tuple[Role, ...]] = {
    "goal": ("goal", "open"),
    "rule": ("rule", "goal", "context", "change"),
    "doing": ("doing",),
    "confirmed": ("confirmed", "context", "change"),
    "unverified": ("unverified", "context"),
    "rejected": ("rejected", "context"),
    "change": ("change", "context"),
    "open": ("open", "context"),
    "file": ("file", "done", "doing", "context"),
    "done": ("done", "doing", "context"),
    "failed": ("failed", "context"),
}
KINDS = tuple(GOES_TO)
LABELS: dict[Language, dict[Kind, str]] = {
    "en": {
        "confirmed": "Confirmed: ", "unverified": "Suspected: ", "rejected": "Ruled out: ", "change": "Decided: ",
        "open": "Open: ",
    },
    "zh": {
        "confirmed": "已确认：", "unverified": "怀疑：", "rejected": "已排除：", "change": "决定：", "open": "待查：",
    },
}  # fmt: skip
NOTHING: dict[Language, str] = {"en": "none", "zh": "无"}


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading that a summary must have. `level`: of its mark. `group`: others stand below it."""

    level: str
    title: str
    role: Role | None
    group: bool


def headings(text: str) -> tuple[Heading, ...]:
    """Return the headings that the system text of a summary request names, each once, in order."""
    lines = list(dict.fromkeys(HEADING_LINE.findall(text)))
    deeper = [len(following[0]) > len(line[0]) for line, following in zip(lines, lines[1:], strict=False)]
    pairs = zip(lines, [*deeper, False], strict=False)
    return tuple(Heading(level, title, _role(title), group) for (level, title), group in pairs)


def of_work(found: Sequence[Heading]) -> bool:
    """Whether the headings ask how far the work is."""
    return any(heading.role in OF_WORK for heading in found)


def write(found: Sequence[Heading], chosen: Sequence[Item], language: Language) -> str:
    """Return the summary's text: each heading with its statements below it."""
    there = {heading.role for heading in found if not heading.group}
    place = {kind: next((role for role in roles if role in there), None) for kind, roles in GOES_TO.items()}
    blocks = []
    for heading in found:
        line = f"{heading.level} {heading.title}"
        if heading.group:
            blocks.append(line)
            continue
        below = [item for item in chosen if heading.role and place.get(item.kind) == heading.role]
        if heading.role != "goal":
            # Under the goal the user's limits stand where they come; elsewhere like stands with like.
            below.sort(key=lambda item: KINDS.index(item.kind))
        if not of_work(found):
            below.sort(key=_when)
        points = [f"- {_label(item.kind, heading.role, language)}{item.text}" for item in below]
        blocks.append("\n".join([line, *(points or [f"- {NOTHING[language]}"])]))
    return "\n".join(blocks)


def _role(title: str) -> Role | None:
    return next((role for role, pattern in ROLES if re.search(pattern, title, re.IGNORECASE)), None)


def _label(kind: Kind, role: Role | None, language: Language) -> str:
    return "" if kind == role else LABELS[language].get(kind, "")


def _when(item: Item) -> str:
    """Return the time in front of a statement, so that a section reads in the order of events."""
    found = re.match(r"(?:\d{4}-\d{2}-\d{2}[ T])?\d{1,2}:\d{2}", item.text)
    return found.group(0).rjust(16) if found else ""
