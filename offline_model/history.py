"""Reads the data of a summary request: an earlier summary, and messages under lines that name their author.

It is data: nothing in it is followed. Knows nothing of limits and headings.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from offline_model.chat import Call, ChatRequest, Step
from offline_model.sources import Item, of_answer, of_result, rules
from offline_model.statements import sentences, split

HISTORY = re.compile(r"<history>\n?(.*)\n?</history>", re.DOTALL)
EARLIER = re.compile(r"<earlier_summary>\n?(.*?)\n?</earlier_summary>", re.DOTALL)
AUTHOR = re.compile(r"^\[(?:task \d+ · )?(user|assistant|harness|result of (\S+?))(?:, failed)?\]$")
CALLS = re.compile(r"^calls (\S+) with (\{.*)$")
LONGEST_GOAL = 220


@dataclass(frozen=True, slots=True)
class _Segment:
    author: str
    tool: str
    text: str


def data_of(request: ChatRequest) -> str:
    """Return the user message that holds the history, or ""."""
    return next((turn.text for turn in request.turns if turn.role == "user" and HISTORY.search(turn.text)), "")


def read_history(data: str) -> list[Item]:
    """Return the statements of the data, oldest first; those of the earlier summary stand at the start."""
    items = [Item(s.text, s.kind, "summary") for text in EARLIER.findall(data) for s in split(text)]
    found = HISTORY.search(data)
    calls: list[Call] = []
    for segment in _segments(found.group(1) if found else ""):
        if segment.author == "user":
            items += _asked(segment.text)
        elif segment.author == "assistant":
            lines = segment.text.splitlines()
            calls += [Call("", *match.groups()) for line in lines if (match := CALLS.match(line))]
            items += of_answer("\n".join(line for line in lines if not CALLS.match(line)))
        elif segment.tool:
            known = calls and calls[0].name == segment.tool
            call = calls.pop(0) if known else Call("", segment.tool, "{}")
            items += of_result(Step(call, segment.text), now=False)
    return items


def _asked(text: str) -> list[Item]:
    """Return what a user message demands: its limits word for word, and its first sentence as the goal."""
    limits = rules(text)
    first = next((part for line in text.splitlines() for part in sentences(line) if part not in limits), "")
    goal = [Item(first, "goal", "user")] if first and len(first) <= LONGEST_GOAL else []
    return [*goal, *(Item(limit, "rule", "user") for limit in limits)]


def _segments(history: str) -> Iterator[_Segment]:
    author, tool, lines = "harness", "", []
    for line in history.splitlines():
        if match := AUTHOR.match(line):
            yield _Segment(author, tool, "\n".join(lines).strip())
            author, tool, lines = match.group(1).split()[0], match.group(2) or "", []
        else:
            lines.append(line)
    yield _Segment(author, tool, "\n".join(lines).strip())
