"""The list of the notes, `index.md`: made from the notes, and told apart from one that a person changed.

Its first line holds a digest of the rest. Where that is not right, a person wrote in it, and it is never written over.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.notes.note import Note

_HEAD = "<!-- Made from the notes beside it at every change; change the notes, not this list. {digest} -->"
_FIRST = re.compile(_HEAD.replace("{digest}", "(?P<digest>[0-9a-f]{16})"))
_LINE = re.compile(r"- \[(?P<title>[^\]\n]+)\]\((?P<name>[^)\n]+)\.md\)(?:: .*)?")


@dataclass(frozen=True, slots=True)
class Index:
    """A list as it was read. lines: those of its form. others: those of no form. ours: nobody changed it since."""

    lines: tuple[str, ...]
    others: tuple[str, ...]
    ours: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the notes that it lists."""
        return tuple(name for name in map(name_in, self.lines) if name)


def make_index(lines: Iterable[str]) -> str:
    """Return the file that holds these lines."""
    body = "".join(f"{line}\n" for line in lines)
    return f"{_HEAD.format(digest=_digest(body))}\n{body}"


def read_index(text: str) -> Index:
    """Return what a list says, whoever wrote it."""
    first, _, body = text.replace("\r\n", "\n").partition("\n")
    head = _FIRST.fullmatch(first)
    lines = [line.strip() for line in (body if head else text).splitlines() if line.strip()]
    good = tuple(line for line in lines if _LINE.fullmatch(line))
    others = tuple(line for line in lines if not _LINE.fullmatch(line))
    return Index(good, others, bool(head) and head["digest"] == _digest(body))  # type: ignore[index]


def name_in(line: str) -> str:
    """Return the name of the note that a line is about, or ""."""
    found = _LINE.fullmatch(line)
    return found["name"] if found else ""


def faults(index: Index, notes: Sequence[Note], there: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield what is wrong with a list, as (code, words for its line). there: the names of all files, read or not."""
    known, listed = {note.name: note.line for note in notes}, set(index.names)
    strange = [*index.others, *(each for each in index.lines if known.get(name_in(each), each) != each)]
    if not index.ours and strange:
        yield "notes_index_by_hand", _some(strange)
    if gone := sorted(listed.difference(known, there)):
        yield "notes_index_gone", _some(gone)
    if missing := [name for name in known if name not in listed]:
        yield "notes_index_no_line", _some(missing)


def _some(texts: Sequence[str]) -> str:
    shown = ", ".join(text[:60] for text in texts[:3])
    return f"{shown}, … ({len(texts)})" if len(texts) > 3 else shown


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:16]
