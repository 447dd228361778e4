"""One note, how it stands in its file, its name and its line in the list. Touches no file.

# Release day                     release-day.md

Releases go out on Thursdays.

- [Release day](release-day.md): Releases go out on Thursdays.
"""

import hashlib
import re
import unicodedata
from collections.abc import Container
from dataclasses import dataclass

from harness.messages import clean

TITLE_CHARS = 80
TEXT_CHARS = 4_000
# How wide the beginning of a note is that its line shows: a Chinese character takes two columns.
LINE_COLUMNS = 40
NAME_CHARS = 50
# The list itself has this name, so no note may.
LIST = "index"
# What a file must be called to be a note; also one that a person made. Nothing of it means anything in Markdown.
NAME = re.compile(r"[^\W_][\w .-]{0,99}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# With these words no beginning ends: "…every Thursday at…".
_NEEDS_MORE = re.compile(
    r"(?: (?:an?|the|of|in|on|at|to|by|for|from|with|and|or|but|that|which|is|are|was|were|as|than|its|this|every))+$",
    re.IGNORECASE,
)
# Windows keeps these for devices.
_DEVICE = re.compile(r"con|prn|aux|nul|(?:com|lpt)\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Note:
    """A note. name: of its file, without `.md`. text: all that stands below the title."""

    name: str
    title: str
    text: str

    @property
    def digest(self) -> str:
        """Return what tells whether the note is still the one that somebody saw."""
        return hashlib.sha256(self.content.encode()).hexdigest()[:16]

    @property
    def content(self) -> str:
        """Return the note as its file holds it."""
        return f"# {self.title}\n\n{self.text}\n"

    @property
    def line(self) -> str:
        """Return its line in the list: what it is called, and how it begins, or goes on where the title begins it."""
        title = self.title.translate(str.maketrans("[]", "()"))
        words = beginning(_without(self.title, self.text))
        return f"- [{title}]({self.name}.md)" + (f": {words}" if words else "")


def read_note(name: str, content: str) -> Note:
    """Return the note that a file holds; where its first line is no title, the name is."""
    lines = tidy(content).strip().split("\n")
    titled = lines[0].startswith("# ")
    title = one_line(lines[0][2:]) if titled else ""
    title = title if len(title) <= TITLE_CHARS else beginning(title, TITLE_CHARS - 1)
    return Note(name, title or name, "\n".join(lines[1 if titled else 0 :]).strip())


def tidy(text: str) -> str:
    """Return `text` with plain line ends and without control characters, which no reader could see."""
    return _CONTROL.sub("", clean(text).replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """Return `text` on one line."""
    return " ".join(tidy(text).split())


def beginning(text: str, columns: int = LINE_COLUMNS) -> str:
    """Return how a text begins, on one line: beginning("One two " * 9) -> "One two One two One two One two One…"."""
    words, width = one_line(text[: 4 * columns]), 0
    for place, char in enumerate(words):
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if width > columns:
            whole = words[:place].rpartition(" ")[0] if words[place] != " " else words[:place]
            whole = _NEEDS_MORE.sub("", whole)
            # A text without blanks, such as a Chinese one, is cut where it has to be.
            return (whole if len(whole) * 2 > place else words[:place]).rstrip() + "…"
    return words


def _without(title: str, text: str) -> str:
    """Return `text` without the title that it begins with: _without("The bell", "The bell is broken.") ->
    "is broken."; only whole words are left out.
    """
    rest = text[len(title) :]
    if not text.startswith(title) or re.match(r"[a-zA-Z0-9]", rest):
        return text
    return rest.lstrip(" \t\n,.:;，。：；")


def name_of(title: str, taken: Container[str]) -> str:
    """Return a safe name for a note of this title that is not `taken`, which holds names in lower case.

    name_of("Release day?", {"release-day"}) -> "release-day-2"; a title of any script keeps its letters.
    """
    plain = unicodedata.normalize("NFKC", title).casefold()
    base = re.sub(r"[\W_]+", "-", plain).strip("-")[:NAME_CHARS].strip("-") or "note"
    if base == LIST or _DEVICE.fullmatch(base):
        base += "-note"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name
