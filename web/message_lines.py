"""Messages in one line each: what they begin with, and where they stand."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.context import Entry
from harness.request_diff import Piece
from web.details import first_line
from web.links import Links


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One part of a request: its first line, or the tools that it calls; `link` is "" for what has no row."""

    part: Entry | Piece
    first: str
    link: str


@dataclass(frozen=True, slots=True)
class MessageLines:
    """The newest of some parts, and how many there are before them."""

    lines: tuple[MessageLine, ...]
    more: int


def message_lines(parts: Sequence[Entry | Piece], links: Links, most: int) -> MessageLines:
    """Return the newest `most` of `parts` as lines, in order."""
    shown = parts[-most:]
    return MessageLines(tuple(message_line(part, links) for part in shown), len(parts) - len(shown))


def message_line(part: Entry | Piece, links: Links) -> MessageLine:
    """Return one part as a line."""
    calls = ", ".join(call["function"]["name"] for call in part.wire.get("tool_calls", ()))
    text = "" if part.category == "tools" else str(part.wire["content"])
    fixed = part.category in ("system", "tools")
    return MessageLine(part, first_line(text) or calls, "" if fixed or part.seq < 1 else links.to(part.seq))
