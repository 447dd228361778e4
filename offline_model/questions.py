"""Tells what a task asks for. Knows the words of questions, nothing of the content."""

import re
from dataclasses import dataclass
from typing import Literal

from offline_model.cues import Kind, kind_of
from offline_model.statements import sentences
from offline_model.words import exact_terms

Asked = Literal["sort", "list", "draft", "overview", "make", "look_up"]

ASKED: tuple[tuple[Kind, str], ...] = (
    (
        "confirmed",
        r"(?<!un)(?<!not )\bconfirmed\b|\bcertain\b|\bfacts?\b|\bproven\b|(?<![未没待])(?<!没有)已?确认|事实|证实",
    ),
    (
        "unverified",
        r"\bguess|\bsuspect|\bunverified|\bunconfirmed|\bnot confirmed|\bassum"
        r"|猜|怀疑|推测|未验证|待验证|没有?确认|未确认",
    ),
    ("rejected", r"\bruled out\b|\breject|\bdisproved|排除|否定|否决"),
    ("change", r"\bwas (?:changed|decided)|\bchanges\b|\bdecisions?\b|\bdecided\b|改了什么|改动|决定"),
    (
        "open",
        r"\bopen\b|\bunresolved|\bto (?:be )?check(?:ed)?\b|\bunknown\b|待查|没查清|未解决|没解决|不清楚|还要查",
    ),
    (
        "rule",
        r"\brules?\b|\bconstraints?\b|\blimits\b|\bmust(?: not|n.t)\b|\bnot allowed|\bforb(?:id|ade|idden)\b"
        r"|禁止|规定|约束|限制|不能做|不许|不允许",
    ),
)
SORT = re.compile(
    r"\bsort\b|\bclassif|\bgroup (?:it|them|the)|\bcategor|\bsummari[sz]e|归类|分类|归纳|整理|分成|梳理|总结", re.I
)
LIST = re.compile(r"\bwhich\b|\bwhat\b|\blist\b|\bname (?:the|all)|哪些|哪几|列出|有哪|什么", re.I)
DRAFT = re.compile(
    r"\bdraft|\bwrite (?:a|the|me a) (?:short )?(?:note|message|notice|mail|e-mail)"
    r"|草拟|起草|拟一|通知|公告|说明信",
    re.I,
)  # fmt: skip
OVERVIEW = re.compile(
    r"\bexplain\b|\boverview\b|\bwhat does (?:this|the) \w+ do|\bdescribe\b"
    r"|介绍|讲讲|说明一下|是做什么",
    re.I,
)  # fmt: skip
MAKE = re.compile(
    r"^\W*(?:please |can you |could you )?(?:write|build|create|implement|generate|translate|program|make|compose)\b"
    r"|^(?:请|帮我|请帮我)?(?:写|做|实现|生成|创建|开发|翻译)(?:一|个|出|成)",
    re.I,
)  # fmt: skip


SAYS = re.compile(r"\bwhat (?:it|they) says?\b|\bwhat is in (?:it|them)\b|[写说讲]了些?什么", re.I)
READS = re.compile(r"\b(?:read|show|open|look at)\b|读|看|打开", re.I)
ASKS = re.compile(
    r"[?？]|\b(?:who|whom|whose|what|which|when|where|why|how|tell|look up|find)\b"
    r"|什么|哪|谁|怎么|怎样|为何|多[少久长大远]|几[点号个次天]|吗|是否|告诉|查",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for, and which kinds of statements it names."""

    asked: Asked
    kinds: tuple[Kind, ...]


def asks(text: str) -> bool:
    """Whether `text` wants to know something; else it wants something done, be it to read what a file says."""
    return bool(ASKS.search(SAYS.sub("", text)))


def only_reads(text: str) -> bool:
    """Whether `text` wants a file to be read, and nothing to be found in it."""
    return bool(READS.search(text)) and not asks(text)


def each_question(text: str) -> list[str]:
    """Return the sentences of `text` that ask, or all of it as one where none has its mark."""
    asking = [part for line in text.splitlines() for part in sentences(line) if part.rstrip().endswith(("?", "？"))]
    return asking or [text]


def understand(text: str) -> Question:
    """Return what `text` asks for: understand("Which are confirmed?") -> Question("list", ("confirmed",))."""
    # "Don't change any file" is a demand, and no question about changes.
    asking = [part for line in text.splitlines() for part in sentences(line) if kind_of(part) != "rule"]
    text = " ".join(asking) or text
    kinds = tuple(kind for kind, pattern in ASKED if re.search(pattern, text, re.I))
    if DRAFT.search(text):
        return Question("draft", kinds)
    if MAKE.search(text):
        return Question("make", kinds)
    if SORT.search(text):
        return Question("sort", kinds)
    if kinds and LIST.search(text) and not exact_terms(text):
        return Question("list", kinds)
    if OVERVIEW.search(text):
        return Question("overview", kinds)
    return Question("look_up", kinds)
