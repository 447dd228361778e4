"""Splits a text into statements: one entry of a log, one bullet, or one sentence, each with its kind.

Knows nothing of where the text came from. The words of a statement are those of the text; only the label in
front ("Confirmed:") is taken off, since the kind says the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from offline_model.cues import FAR_TOO_LONG, LABEL, Kind, kind_of, kind_of_heading, without_label

LONGEST = 260
LONGEST_LINE = 20_000
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$")
BULLET = re.compile(r"^\s*(?:[-*+•·]|\d{1,3}[.)、])\s+")
STAMP = re.compile(
    r"^(?:\*\*|\[)?((?:\d{4}[-/]\d{1,2}[-/]\d{1,2}[ T])?\d{1,2}:\d{2}(?::\d{2})?|\d{4}[-/]\d{1,2}[-/]\d{1,2})"
    r"(?:\*\*|\])?\s*[-–—|·:：,，]?\s*(?=\S)"
)
SENTENCE = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[A-Z\"“‘(`*\d])|(?<=[。！？])(?![”’）」』])|(?<=[。！？][”’）」』])")
NOTHING = ("none", "无")
CUT_MARK = re.compile(r"^\[.{10,}\]$")


@dataclass(frozen=True, slots=True)
class Statement:
    """What one entry says. `text` holds its time in front, when the entry has one."""

    text: str
    kind: Kind
    listed: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    text: str
    heading: str
    listed: bool


def split(text: str) -> tuple[Statement, ...]:
    """Return the statements of `text`, in order."""
    return tuple(statement for entry in _entries(text) for statement in _statements(entry))


def sentences(text: str) -> list[str]:
    """Return the sentences of one paragraph: sentences("One. Two 0.5 s.") -> ["One.", "Two 0.5 s."]."""
    return [part.strip() for part in SENTENCE.split(text) if part and part.strip()]


def _entries(text: str) -> Iterator[_Entry]:
    """Yield paragraphs and list items; a line without a mark of its own belongs to the entry before it."""
    heading, lines, listed = "", [], False
    for line in [*(line[:LONGEST_LINE] for line in text.splitlines()), ""]:
        title = HEADING.match(line)
        starts = bool(BULLET.match(line) or STAMP.match(line.strip()))
        if (not line.strip() or title or starts or CUT_MARK.match(line.strip())) and lines:
            yield _Entry(" ".join(lines), heading, listed)
            lines, listed = [], False
        if title:
            heading = title.group(1)
        elif line.strip() and not CUT_MARK.match(line.strip()):
            listed = listed or starts
            lines.append(BULLET.sub("", line).strip())


def _statements(entry: _Entry) -> Iterator[Statement]:
    stamp = STAMP.match(entry.text)
    body = entry.text[stamp.end() :] if stamp else entry.text
    given = kind_of_heading(entry.heading) if entry.heading else None
    for part, kind in _parts(body):
        # Under the heading of limits the goal stands too; there each sentence speaks for itself.
        if given == "goal":
            kind = "rule" if kind == "rule" else "goal"
        elif given:
            kind = given
        words = without_label(part)
        words = words if len(words) <= FAR_TOO_LONG else words[:FAR_TOO_LONG] + "…"
        if words and words.strip(" .。").lower() not in NOTHING:
            yield Statement(f"{stamp.group(1)} {words}" if stamp else words, kind, entry.listed)


def _parts(body: str) -> Iterator[tuple[str, Kind]]:
    """Yield the parts of an entry: a sentence joins the one before it unless it has a kind of its own."""
    text, kind = "", "plain"
    for sentence in sentences(body):
        own = kind_of(sentence)
        joins = own in ("plain", kind) and not LABEL.match(sentence)
        if text and (not joins or len(text) + len(sentence) > LONGEST):
            yield text, kind
            # What follows a long part without a cue of its own is not known to be of its kind.
            text, kind = sentence, own
        else:
            gap = " " if text and text[-1].isascii() else ""
            text, kind = text + gap + sentence, own if not text else kind
    if text:
        yield text, kind
