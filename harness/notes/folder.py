"""Reads the folder of the notes, which a person may have changed in any way: what can be offered, and what is wrong.

Bounded, whatever lies there; follows no link and waits for no pipe. Blocking, so callers use a thread.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harness.coding_tools.text_file import NotText, TextFile, load, why
from harness.messages import clean
from harness.notes.index import faults, read_index
from harness.notes.note import LIST, NAME, TEXT_CHARS, Note, read_note
from harness.sources import Source

MOST_NOTES = 200
MOST_BYTES = 64_000  # of one note
_INDEX_BYTES = 256_000
_ENTRIES = 5_000
_PROBLEMS = 20
_DETAIL = 200


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in the folder: the notes, by name in order, and a source without text for each thing that is wrong."""

    notes: tuple[Note, ...] = ()
    problems: tuple[Source, ...] = ()

    def note(self, name: str) -> Note | None:
        """Return the note of this name, with or without `.md`."""
        return next((note for note in self.notes if note.name == name.removesuffix(".md")), None)


def look(folder: Path) -> Found:
    """Return all that can be offered of a folder; one that is not there has nothing wrong with it."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            wrong = (problem(place(folder), "notes_folder"),) if os.path.lexists(folder) else ()
            return Found((), wrong)
        with os.scandir(folder) as entries:
            files = [entry for entry in islice(entries, _ENTRIES) if _is_meant(entry.name)]
    except OSError as error:
        return Found((), (problem(place(folder), "unreadable", why(error)),))
    files.sort(key=lambda entry: entry.name)
    notes, problems = [], []
    for entry in files[:MOST_NOTES]:
        note, wrong = _read(Path(entry.path))
        notes += [note] if note else []
        problems += [problem(place(folder, entry.name), *wrong)] if wrong else []
    if len(files) > MOST_NOTES:
        problems.append(problem(place(folder), "notes_many", str(len(files) - MOST_NOTES)))
    problems += _index_problems(folder / f"{LIST}.md", notes, [clean(entry.name[:-3]) for entry in files])
    if more := problems[_PROBLEMS:]:
        problems = [*problems[:_PROBLEMS], problem(place(folder), "notes_more", str(len(more)))]
    return Found(tuple(notes), tuple(problems))


def place(folder: Path, *names: str) -> str:
    """Return how the folder of the notes, or a file in it, is called in a session's journal.

    Where on this machine that lies is for the page alone to say: a session may be handed on.
    """
    return clean("/".join((folder.parent.name, folder.name, *names)))


def problem(name: str, code: str, detail: str = "") -> Source:
    """Return a source that adds nothing and says what is wrong with the thing of this name."""
    return Source("memory", name, "", code, clean(detail)[:_DETAIL])


def load_index(path: Path) -> TextFile:
    """Read a list. OSError, NotText: it cannot be."""
    return load(path, _INDEX_BYTES)


def _is_meant(name: str) -> bool:
    """Whether a file of this name is meant to be a note."""
    plain = name.casefold()
    return plain.endswith(".md") and not plain.startswith(".") and name != f"{LIST}.md"


def _read(path: Path) -> tuple[Note | None, tuple[str, ...]]:
    """Return the note in a file, if it can be read, and a code with its words where something is wrong with it."""
    name = clean(path.name[:-3])
    try:
        # Of `x.md.md` nobody could tell whether `x.md` means this file or another one.
        # `INDEX.md` is another file than the list on one disk, and the same one on the next.
        taken = name.casefold() == LIST or name.casefold().endswith(".md")
        if taken or not NAME.fullmatch(name) or not path.name.endswith(".md"):
            return None, ("notes_name",)
        if path.is_symlink():
            return None, ("notes_link",)
        if not path.is_file():
            return None, ("no_file",)
        if (size := path.stat().st_size) > MOST_BYTES:
            return None, ("notes_large", f"{size:,}")
        file = load(path, MOST_BYTES)
    except NotText:
        return None, ("encoding",)
    except OSError as error:
        return None, ("unreadable", why(error))
    note = read_note(name, file.text)
    if file.encoding.name != "utf-8":
        return note, ("notes_encoding", file.encoding.name)
    return note, ("notes_long", f"{len(note.text):,}") if len(note.text) > TEXT_CHARS else ()


def _index_problems(path: Path, notes: list[Note], names: list[str]) -> Iterator[Source]:
    """Yield what is wrong with the list. names: of all files that are meant to be notes."""
    if not notes and not os.path.lexists(path):
        return
    where = place(path.parent, path.name)
    try:
        index = read_index(load_index(path).text)
    except FileNotFoundError:
        index = read_index("")
    except NotText as error:
        yield problem(where, "notes_index_unreadable", str(error))
        return
    except OSError as error:
        yield problem(where, "notes_index_unreadable", why(error))
        return
    yield from (problem(where, *fault) for fault in faults(index, notes, names))
