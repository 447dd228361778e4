"""Writes a summary: the headings that the request names, filled with whole statements of its history.

What nothing in the text marks as confirmed never stands under that heading. The limit is kept by leaving
statements out, so details are lost, as in any summary.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from offline_model.chat import Call, ChatRequest, Reply
from offline_model.cues import Kind
from offline_model.deeds import is_deed, on_files, write_deeds, write_failures
from offline_model.history import CHECK, EDIT, History, data_of, read_history
from offline_model.layout import HEADING_LINE, headings, of_work, write
from offline_model.outcome import FAIL
from offline_model.phrases import Language
from offline_model.sources import Item, plain_key
from offline_model.tokens import count_text, shorten
from offline_model.words import central, is_chinese

LIMIT = re.compile(r"(?:at most|不超过|最多)[^\d\n]{0,12}(\d[\d,]*)\s*(?:characters|个?字符)")
DEFAULT_LIMIT = 900
# Of the room for a reply, this share is used: a provider that counts otherwise must not cut it.
USED = 0.9
# How many statements of a kind are worth a place, in the order in which places are given.
MOST: dict[Kind, int] = {
    "confirmed": 4, "unverified": 3, "rejected": 2, "change": 4, "open": 3, "goal": 1,
}  # fmt: skip
# In the middle of a task more is still needed.
MOST_OF_WORK: dict[Kind, int] = {
    "confirmed": 12, "unverified": 4, "rejected": 4, "change": 6, "open": 6, "goal": 0,
}  # fmt: skip
MOST_FAILURES = 4
FEW = 3
FIRST = 8
KEPT = 10.0
# With less thinking than this a reply has room enough.
LITTLE = ("none", "minimal", "low")
# A line of an answer that tells of a call, which the history itself tells better.
ECHO = re.compile(r"`(?:read|write|edit|bash|search)` ")
LOOKED = re.compile(r"`(?:read|search)` ")


def is_summary(request: ChatRequest) -> bool:
    """Whether the request asks for a summary: headings in the system text, a history as data, no tools."""
    return not request.tools and bool(HEADING_LINE.search(request.system)) and bool(data_of(request))


def summarise(request: ChatRequest, without: Kind | None = None) -> str:
    """Return the summary, never longer than the limit that the request names, without statements of one kind.

    The limit is named in characters; where it isn't, the room for the reply counts, in tokens.
    """
    found = headings(request.system)
    language: Language = "zh" if is_chinese(request.system) else "en"
    history, fits = read_history(data_of(request)), _fits(request)
    items = _of_work(history, language) if of_work(found) else _of_tasks(history)
    chosen: list[Item] = []
    for item in items:
        if item.kind != without and fits(write(found, [*chosen, item], language)):
            chosen.append(item)
    # Places were given by worth; what has a place stands in the order in which it happened.
    known = [item for item in history.items if not (of_work(found) and item.label == EDIT)]
    order = {plain_key(item.text): place for place, item in reversed(list(enumerate(known)))}
    chosen.sort(key=lambda item: order.get(plain_key(item.text), len(order)))
    return write(found, chosen, language)


def spoiled(fault: str, request: ChatRequest) -> Reply:
    """Return a summary with a fault in it, for the tests of those who have to cope."""
    text, again = summarise(request), any(turn.role == "assistant" for turn in request.turns)
    match fault:
        case "summary_empty":
            return Reply("")
        case "summary_truncated":
            return Reply(shorten(text, count_text(text) // 2), finish="length")
        case "summary_thinking" if request.reasoning_effort not in LITTLE:
            return Reply(shorten(text, count_text(text) // 2), finish="length")
        case "summary_constraint":
            return Reply(summarise(request, without="rule"))
        case "summary_tools":
            return Reply("", (Call("call_summary", "read", '{"path": "README.md"}'),), "tool_calls")
        case "summary_bare":
            return Reply(HEADING_LINE.sub("", text).strip())
        case "summary_long" if again:
            return Reply(text)
        case "summary_slow" | "summary_thinking":
            return Reply(text)
    return Reply(text + "\n" + text * ((_limit(request) or DEFAULT_LIMIT) // max(1, len(text))))


def _limit(request: ChatRequest) -> int:
    """Return the limit in characters named last, 0 for none: a second try may name it again."""
    asked = [request.system, *(turn.text for turn in request.turns[2:] if turn.role == "user")]
    found = [int(number.replace(",", "")) for text in asked for number in LIMIT.findall(text)]
    return found[-1] if found else 0


def _fits(request: ChatRequest) -> Callable[[str], bool]:
    limit = _limit(request)
    if not limit and request.max_tokens:
        room = int(USED * request.max_tokens)
        return lambda text: count_text(text) <= room
    return lambda text: len(text) <= (limit or DEFAULT_LIMIT)


def _of_tasks(history: History) -> list[Item]:
    """Return what a summary of finished tasks keeps; a change is told once, and what only looked changed nothing."""
    kept = _worth_keeping(history.items)
    again = [
        item
        for item in kept
        if item.label.startswith(f"{EDIT} ") or (item.place == "answer" and LOOKED.match(item.text))
    ]
    return _in_turn([item for item in kept if item not in again], MOST)


def _of_work(history: History, language: Language) -> list[Item]:
    """Return what a summary in the middle of the work keeps: limits, the task, what was done, then what is known."""
    told = [item for item in history.items if not _is_told_by_deeds(item)]
    kept = _worth_keeping(told)
    goals = [item for item in told if item.kind == "goal"][-1:]
    doing = [replace(goal, kind="doing") for goal in goals if history.running]
    worked = [deed for deed in history.deeds if deed.ok]
    # A call that was made again counts by its last result.
    last = {deed.key: deed for deed in history.deeds}.values()
    failures = [deed for deed in last if not deed.ok or (deed.tool == "bash" and FAIL.search(deed.outcome))]
    lines = [Item(line, _kind_of_deed(line), "summary") for line in write_deeds(worked, language)]
    lines += [Item(line, "failed", "summary") for line in write_failures(failures, language)[-MOST_FAILURES:]]
    lines += [replace(item, kind="failed") for item in kept if item.label == CHECK][-MOST_FAILURES:]
    kept = [item for item in kept if item.label != CHECK]
    limits = [item for item in kept if item.kind == "rule"]
    facts = _in_turn([item for item in kept if item.kind != "rule"], MOST_OF_WORK)
    return [*limits, *goals, *doing, *lines, *facts]


def _is_told_by_deeds(item: Item) -> bool:
    # What a tool says of a change or prints of a run stands in the list of what was done.
    tool = item.label.partition(" ")[0]
    echo = item.place == "answer" and (bool(ECHO.match(item.text)) or is_deed(item.text))
    return echo or tool in ("edit", "write") or (tool == "bash" and item.kind == "plain")


def _kind_of_deed(line: str) -> Kind:
    return "file" if on_files(line) else "done"


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


def _in_turn(items: Sequence[Item], mosts: dict[Kind, int]) -> list[Item]:
    """Return the items in the order in which they get a place: limits set by the user, then kinds by turns."""
    limits = [item for item in items if item.kind == "rule" and item.place in ("user", "summary")]
    centres = central([item.text for item in items])
    scores = [centre + (item.place == "summary") * KEPT for item, centre in zip(items, centres, strict=True)]
    ranks: dict[Kind, list[Item]] = {}
    for kind, most in mosts.items():
        of_kind = [i for i, item in enumerate(items) if item.kind == kind and item not in limits]
        best = sorted(of_kind, key=lambda i: (-scores[i], i))[:most]
        ranks[kind] = [items[i] for i in best]
    rounds = range(max(mosts.values()))
    facts = [ranks[kind][turn] for turn in rounds for kind in mosts if turn < len(ranks[kind]) and kind != "goal"]
    # The goal of a finished task is worth less than the first facts, and more than the last ones.
    return limits + facts[:FIRST] + ranks["goal"] + facts[FIRST:]
