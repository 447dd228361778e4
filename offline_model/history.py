"""Reads the data of a summary request: an earlier summary, and messages under lines that name their author.

It is data: nothing in it is followed. Knows nothing of limits and headings.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from offline_model.background import deeds_in
from offline_model.chat import Call, ChatRequest, Step
from offline_model.deeds import Deed, deed_of, edit_line
from offline_model.outcome import denied, failed
from offline_model.phrases import PHRASES
from offline_model.sources import TABLE, Item, of_answer, of_result, of_summary, rules
from offline_model.statements import sentences
from offline_model.verdict import read_verdict
from offline_model.words import is_chinese

HISTORY = re.compile(r"<history>\n?(.*)\n?</history>", re.DOTALL)
EARLIER = re.compile(r"<earlier_summary>\n?(.*?)\n?</earlier_summary>", re.DOTALL)
AUTHOR = re.compile(
    r"^\[(?:task (?P<task>\d+) · )?"
    r"(?:(?P<author>user|assistant|harness)|result of (?P<tool>\S+?)(?P<failed>, failed)?)\]$"
)
CALLS = re.compile(r"^calls (\S+) with (\{.*)$")
LONGEST_GOAL = 220
# How what a failed check says is labelled: it stands in no tool's result.
CHECK = "check"
# How the label of an edit begins; that of what its tool said goes on with the path.
EDIT = "edit"


@dataclass(frozen=True, slots=True)
class History:
    """What the data holds, oldest first. `running`: its last task has no answer yet."""

    items: list[Item]
    deeds: list[Deed]
    running: bool


@dataclass(frozen=True, slots=True)
class _Segment:
    author: str
    tool: str
    task: str
    ok: bool
    text: str

    @property
    def calls(self) -> list[Call]:
        """Return the calls of an assistant's message."""
        found = (CALLS.match(line) for line in self.text.splitlines() if self.author == "assistant")
        return [Call("", *match.groups()) for match in found if match]


def data_of(request: ChatRequest) -> str:
    """Return the user message that holds the history, or ""."""
    return next((turn.text for turn in request.turns if turn.role == "user" and HISTORY.search(turn.text)), "")


def read_history(data: str) -> History:
    """Return what stands in the data; the statements of the earlier summary stand at the start."""
    earlier = EARLIER.findall(data)
    items = [item for text in earlier for item in of_summary(text) if item.kind not in ("file", "done", "failed")]
    found = HISTORY.search(data)
    segments = [each for each in _segments(found.group(1) if found else "") if each.author != "start"]
    now = segments[-1].task if segments else ""
    running = not segments or segments[-1].author != "assistant" or bool(segments[-1].calls)
    # What an earlier summary calls unfinished still is while nothing but that task stands after it.
    same = running and all(segment.task == now for segment in segments)
    told = [deed for text in earlier for deed in deeds_in(text)]
    deeds = [replace(deed, running=deed.running and same) for deed in told]
    calls: list[Call] = []
    for segment in segments:
        calls += segment.calls
        if not segment.tool:
            items += _said(segment)
            continue
        known = calls and calls[0].name == segment.tool
        call = calls.pop(0) if known else Call("", segment.tool, "{}")
        items += _returned(call, segment.text, ok=segment.ok)
        deed = deed_of(call, segment.text, ok=segment.ok, running=running and segment.task == now)
        deeds += [deed] if deed else []
    return History(items, deeds, running)


def _said(segment: _Segment) -> list[Item]:
    if segment.author == "user":
        return _asked(segment.text)
    if segment.author == "harness":
        return _sent_back(segment.text)
    if segment.author == "assistant":
        return of_answer("\n".join(line for line in segment.text.splitlines() if not CALLS.match(line)))
    return []


def _sent_back(text: str) -> list[Item]:
    """Return that a check failed, where a message of the harness says so; it asks for nothing of the user's."""
    if not (verdict := read_verdict(text)):
        return []
    line = PHRASES["zh" if is_chinese(verdict.told) else "en"]["sent_back"]
    return [Item(line.format(command=verdict.command, what=verdict.what), "change", "result", CHECK)]


def _returned(call: Call, text: str, *, ok: bool) -> list[Item]:
    step = Step(call, text)
    items = of_result(step, now=False)
    if call.name == "edit" and ok and not (failed(step) or denied(step)):
        # The call says what was changed; the tool says only where.
        return [Item(edit_line(call), "change", "result", EDIT), *items]
    # A row of a table says nothing on its own, so only the remarks of one can be kept.
    return [item for item in items if item.kind != "plain"] if TABLE.search(items[0].label if items else "") else items


def _asked(text: str) -> list[Item]:
    """Return what a user message demands: its limits word for word, and its first sentence as the goal."""
    limits = rules(text)
    first = next((part for line in text.splitlines() for part in sentences(line) if part not in limits), "")
    goal = [Item(first, "goal", "user")] if first and len(first) <= LONGEST_GOAL else []
    return [*goal, *(Item(limit, "rule", "user") for limit in limits)]


def _segments(history: str) -> Iterator[_Segment]:
    """Yield each message of the history; what stands before the first one has the author "start"."""
    head, lines = ("start", "", "", True), []
    for line in history.splitlines():
        if match := AUTHOR.match(line):
            yield _Segment(*head, "\n".join(lines).strip())
            head = (match["author"] or "result", match["tool"] or "", match["task"] or "", not match["failed"])
            lines = []
        else:
            lines.append(line)
    yield _Segment(*head, "\n".join(lines).strip())
