"""Writes a summary: the headings that the request names, filled with whole statements of its history.

What nothing in the text marks as confirmed never stands under that heading. The limit is kept by leaving
statements out, so details are lost, as in any summary.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from offline_model.chat import Call, ChatRequest, Reply
from offline_model.cues import Kind, kind_of_heading
from offline_model.history import data_of, read_history
from offline_model.sources import Item, plain_key
from offline_model.tokens import count_text, shorten
from offline_model.words import central, is_chinese

HEADING_LINE = re.compile(r"^## +(.+?)\s*$", re.MULTILINE)
LIMIT = re.compile(r"(?:at most|不超过|最多)[^\d\n]{0,12}(\d[\d,]*)\s*(?:characters|个?字符)")
DEFAULT_LIMIT = 900
# How many statements of a kind are worth a place, in the order in which places are given.
MOST: dict[Kind, int] = {
    "confirmed": 4, "unverified": 3, "rejected": 2, "change": 4, "open": 3, "goal": 1,
}  # fmt: skip
FEW = 3
FIRST = 8
KEPT = 10.0


def is_summary(request: ChatRequest) -> bool:
    """Whether the request asks for a summary: headings in the system text, a history as data, no tools."""
    return not request.tools and bool(HEADING_LINE.search(request.system)) and bool(data_of(request))


def summarise(request: ChatRequest) -> str:
    """Return the summary, never longer than the limit in characters that the request names."""
    titles = HEADING_LINE.findall(request.system)
    none = "无" if is_chinese(request.system) else "none"
    limit = _limit(request)
    chosen: list[Item] = []
    for item in _in_turn(_worth_keeping(read_history(data_of(request)))):
        if len(_write(titles, [*chosen, item], none)) <= limit:
            chosen.append(item)
    return _write(titles, chosen, none)


def spoiled(fault: str, request: ChatRequest) -> Reply:
    """Return a summary with a fault in it, for the tests of those who have to cope."""
    text, again = summarise(request), any(turn.role == "assistant" for turn in request.turns)
    match fault:
        case "summary_empty":
            return Reply("")
        case "summary_truncated":
            return Reply(shorten(text, count_text(text) // 2), finish="length")
        case "summary_tools":
            return Reply("", (Call("call_summary", "read", '{"path": "README.md"}'),), "tool_calls")
        case "summary_bare":
            return Reply(HEADING_LINE.sub("", text).strip())
        case "summary_long" if again:
            return Reply(text)
        case "summary_slow":
            return Reply(text)
    return Reply(text + "\n" + text * (_limit(request) // max(1, len(text))))


def _limit(request: ChatRequest) -> int:
    """Return the limit named last: a second try may name it again."""
    asked = [request.system, *(turn.text for turn in request.turns[2:] if turn.role == "user")]
    found = [int(number.replace(",", "")) for text in asked for number in LIMIT.findall(text)]
    return found[-1] if found else DEFAULT_LIMIT


def _worth_keeping(items: Sequence[Item]) -> list[Item]:
    """Return the items without doubles; of two with the same words, the later one's kind stands."""
    latest: dict[str, Item] = {}
    for item in items:
        key = plain_key(item.text)
        known = latest.get(key)
        if not key:
            continue
        # An answer repeats what a result said, so it must not undo what the user or a result marked.
        keeps = known and (item.kind == "plain" or known.kind == "rule")
        now = known if known and keeps else replace(item, text=" ".join(item.text.split()))
        # What an earlier summary kept goes on being kept, so that an update does not drift.
        latest[key] = replace(now, place="summary") if known and known.place == "summary" else now
    kept = list(latest.values())
    if sum(item.kind not in ("plain", "goal", "rule") for item in kept) < FEW:
        # Nothing marks these as checked, so the careful place for them is among the unverified.
        kept = [replace(item, kind="unverified") if item.kind == "plain" else item for item in kept]
    # A rule that a file names is on record, but nobody may take it for a demand of the user.
    kept = [replace(i, kind="change") if i.kind == "rule" and i.place in ("result", "answer") else i for i in kept]
    return [item for item in kept if item.kind != "plain"]


def _in_turn(items: Sequence[Item]) -> list[Item]:
    """Return the items in the order in which they get a place: limits set by the user, then kinds by turns."""
    limits = [item for item in items if item.kind == "rule" and item.place in ("user", "summary")]
    centres = central([item.text for item in items])
    scores = [centre + (item.place == "summary") * KEPT for item, centre in zip(items, centres, strict=True)]
    ranks: dict[Kind, list[Item]] = {}
    for kind, most in MOST.items():
        of_kind = [i for i, item in enumerate(items) if item.kind == kind and item not in limits]
        best = sorted(of_kind, key=lambda i: (-scores[i], i))[:most]
        ranks[kind] = [items[i] for i in best]
    rounds = range(max(MOST.values()))
    facts = [ranks[kind][turn] for turn in rounds for kind in MOST if turn < len(ranks[kind]) and kind != "goal"]
    # The goal of a finished task is worth less than the first facts, and more than the last ones.
    return limits + facts[:FIRST] + ranks["goal"] + facts[FIRST:]


def _write(titles: Sequence[str], chosen: Sequence[Item], none: str) -> str:
    """Return the summary's text. Under the heading of the goal its limits stand too."""
    blocks = []
    for title in titles:
        kind = kind_of_heading(title)
        wanted = ("goal", "rule") if kind == "goal" else (kind,)
        lines = [f"- {item.text}" for item in sorted(chosen, key=_when) if item.kind in wanted]
        blocks.append("\n".join([f"## {title}", *(lines or [f"- {none}"])]))
    return "\n".join(blocks)


def _when(item: Item) -> str:
    """Return the time in front of a statement, so that a section reads in the order of events."""
    found = re.match(r"(?:\d{4}-\d{2}-\d{2}[ T])?\d{1,2}:\d{2}", item.text)
    return found.group(0).rjust(16) if found else ""
