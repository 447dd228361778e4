"""What a summariser reads: the removed messages as data, each under a line that names its author.

They stand inside a tag that their text cannot close. Knows no model and no cut.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.context import Entry
from harness.messages import AssistantMessage, SummaryMessage, ToolResult, UserMessage

_AUTHOR_LINE = re.compile(r"^\[(?=task \d)", re.MULTILINE)
_OWN_TAGS = re.compile(r"<(?=/?\s*(?:history|earlier_summary)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """How much of the history is read, in characters: of a message, of a call's arguments, of the whole. 0: all."""

    message: int = 0
    arguments: int = 0
    whole: int = 0


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, its start and its end, with a mark for what is missing.

    clip("a" * 5000, 4000) keeps 2,000 from each end around "[… 1000 characters left out …]". A limit of 0 is none.
    """
    if not limit or len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[len(text) - half :]}"


def render(entries: Sequence[Entry], reading: Reading, dropped: int = 0) -> tuple[str, int]:
    """Return (what the summariser reads, characters left out of it); the newest part is never left out.

    dropped: how many of the oldest messages are left out, because with them the request was too long.
    """
    earlier = [entry.message.text for entry in entries if isinstance(entry.message, SummaryMessage)]
    rest = [entry for entry in entries if entry.category != "summary"]
    gone, rest = rest[:dropped], rest[dropped:]
    text = "\n\n".join(_render(entry, reading) for entry in rest)
    left_out = sum(_left_out(entry, reading) for entry in rest) + sum(map(_length, gone))
    if gone:
        text = f"[… the oldest {len(gone)} messages left out …]\n\n{text}"
    if reading.whole and (missing := len(text) - reading.whole) > 0:
        text = f"[… the first {missing} characters left out …]\n{text[missing:]}"
        left_out += missing
    before = "".join(f"<earlier_summary>\n{_quote(text)}\n</earlier_summary>\n\n" for text in earlier)
    return f"{before}<history>\n{text}\n</history>", left_out


def drop_rounds(entries: Sequence[Entry], dropped: int) -> int:
    """Return how many of the oldest messages to leave out next: about half of what is left, in whole rounds.

    A round begins with a user's or an assistant's message. The newest round is never dropped.
    """
    rest = [entry for entry in entries if entry.category != "summary"]
    starts = [place for place, entry in enumerate(rest) if entry.category in ("user", "assistant") and place > dropped]
    half = dropped + (len(rest) - dropped) // 2
    return next((place for place in starts if place >= half), starts[-1] if starts else dropped)


def _render(entry: Entry, reading: Reading) -> str:
    text = clip(entry.message.text, reading.message)
    match entry.message:
        case UserMessage(author="user"):
            who = "user"
        case ToolResult(name=name, ok=ok):
            who = f"result of {name}" + ("" if ok else ", failed")
        case AssistantMessage(calls=calls):
            who = "assistant"
            asked = [f"calls {call.name} with {clip(call.arguments, reading.arguments)}" for call in calls]
            text = "\n".join([text, *asked]).strip()
        case _:
            who = "harness"
    return f"[task {entry.task} · {who}]\n{_quote(text)}"


def _length(entry: Entry) -> int:
    """Return the characters of a message's text and of what its calls pass."""
    calls = entry.message.calls if isinstance(entry.message, AssistantMessage) else ()
    return len(entry.message.text) + sum(len(call.arguments) for call in calls)


def _left_out(entry: Entry, reading: Reading) -> int:
    calls = entry.message.calls if isinstance(entry.message, AssistantMessage) else ()
    over = [len(call.arguments) - reading.arguments for call in calls] if reading.arguments else []
    if reading.message:
        over.append(len(entry.message.text) - reading.message)
    return sum(max(0, each) for each in over)


def _quote(text: str) -> str:
    # Neither the tags nor the lines that name an author can be forged by what a message says.
    return _AUTHOR_LINE.sub(r"\\[", _OWN_TAGS.sub("&lt;", text))
