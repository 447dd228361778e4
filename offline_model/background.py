"""A summary as it stands in a request, with what stands beside it, and what it says was done.

    [one line that says what it is]

    ## headings … - what the task has done so far

    [Word for word from the user's messages: …]
    - a demand of the user

    [Recently read files …]
    their text

Each bracketed line ends what stood above it. Knows nothing of statements.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from offline_model.chat import ChatRequest
from offline_model.deeds import Deed, read_deeds

TITLE = re.compile(r"^\[(?!…).{3,}\]$")
# As a client announces a text that it puts beside the summary.
NAMED = re.compile(r"^\[(?:Skill|File|技能|文件) `(?P<name>[^`\n]+)`")
DEMANDS = re.compile(r"word for word|verbatim|逐字|原话|原样", re.IGNORECASE)
BULLET = re.compile(r"^\s*[-*]\s+")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two bracketed lines. name: of the file or the skill that the first of them announces."""

    holds: Literal["summary", "demands", "texts"]
    text: str
    name: str = ""


def backgrounds(request: ChatRequest) -> list[str]:
    """Return the text of each summary in the request, without the line that says what it is."""
    return [turn.text.partition("\n\n")[2] for turn in request.turns if turn.background]


def blocks(text: str) -> Iterator[Block]:
    """Yield the summary itself, then what stands beside it."""
    holds: Literal["summary", "demands", "texts"] = "summary"
    lines: list[str] = []
    name = ""
    for line in text.splitlines():
        if TITLE.match(line.strip()):
            yield Block(holds, "\n".join(lines), name)
            holds, lines = "demands" if DEMANDS.search(line) else "texts", []
            named = NAMED.match(line.strip())
            name = named["name"] if named else ""
        else:
            lines.append(line)
    yield Block(holds, "\n".join(lines), name)


def bullets(text: str) -> list[str]:
    """Return the points of a list, each on one line; a line without a mark goes on with the point above."""
    points: list[str] = []
    for line in text.splitlines():
        if BULLET.match(line) or (line.strip() and not points):
            points.append(BULLET.sub("", line).strip())
        elif line.strip():
            points[-1] += " " + line.strip()
    return points


def deeds_in(text: str) -> list[Deed]:
    """Return the deeds that a summary names; what stands beside it names none."""
    return [deed for block in blocks(text) if block.holds == "summary" for deed in read_deeds(block.text)]


def told(request: ChatRequest) -> list[Deed]:
    """Return what a summary says was done for the task at hand.

    With an answer between the summary and the task, what it calls unfinished was another task.
    """
    start = request.task_start
    found: list[Deed] = []
    for place, turn in enumerate(request.turns):
        first, last = sorted((place, start))
        if turn.background and not any(each.role == "assistant" for each in request.turns[first:last]):
            found += [deed for deed in deeds_in(turn.text.partition("\n\n")[2]) if deed.running]
    return found
