"""Keeps and forgets notes: one writer at a time, whichever process it belongs to, and never over a person's words.

Blocking, so callers use a thread.
"""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from harness.coding_tools.text_file import NotText, why
from harness.copies.contents import new_file
from harness.notes.folder import MOST_NOTES, Found, load_index, look
from harness.notes.index import make_index, read_index
from harness.notes.note import LIST, Note, name_of

_LOCK, _DRAFT = ".lock.db", ".draft"
_SECONDS = 30  # that a writer waits for another one


class Full(Exception):
    """There are as many notes as there may be."""


class Changed(Exception):
    """The note is no longer the one that a person saw."""


class Unlisted(Exception):
    """A note was kept or removed, but the list of the notes could not be written: the next change makes it anew."""

    def __init__(self, note: Note, reason: str) -> None:
        super().__init__(reason)
        self.note, self.reason = note, reason


def keep(folder: Path, title: str, text: str) -> Note:
    """Keep a new note and return it; one with this very title and text is there already and is returned.

    Raises Full; Unlisted: it is kept; or OSError: it cannot be written. No other note changes.
    """
    with _alone(folder):
        found = look(folder)
        if same := twin(found, title, text):
            return same
        if len(found.notes) >= MOST_NOTES:
            raise Full
        while True:
            note = Note(new_name(folder, title), title, text)
            with contextlib.suppress(FileExistsError):
                _put(folder, note)
                break
        _list_again(folder, note)
        return note


def forget(folder: Path, name: str, digest: str = "") -> Note:
    """Remove a note and return what it was. digest: of the note that a person saw, "" where nobody did.

    Raises KeyError: there is none of this name; Changed; Unlisted: it is gone; or OSError: it cannot be removed.
    """
    with _alone(folder):
        note = look(folder).note(name)
        if not note:
            raise KeyError(name)
        if digest and note.digest != digest:
            raise Changed
        (folder / f"{note.name}.md").unlink()
        _list_again(folder, note)
        return note


def twin(found: Found, title: str, text: str) -> Note | None:
    """Return the note that says this already."""
    return next((note for note in found.notes if (note.title, note.text) == (title, text)), None)


def new_name(folder: Path, title: str) -> str:
    """Return the name that a new note of this title gets now; whatever lies in the folder keeps its own."""
    taken: set[str] = set()
    with contextlib.suppress(FileNotFoundError):
        taken = {path.casefold().removesuffix(".md") for path in os.listdir(folder)}
    return name_of(title, taken)


def check_place(folder: Path) -> None:
    """Raise OSError where a folder is in the way of its own notes; one that is not there yet is not."""
    if folder.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "the folder of the notes is a link")
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "a file stands where the folder of the notes should be")
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, "the folder of the notes is read-only")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let nobody else write to the folder meanwhile. The system lets go of the lock, however the process ends."""
    check_place(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with contextlib.closing(sqlite3.connect(folder / _LOCK, timeout=_SECONDS)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            yield
    except sqlite3.Error as error:
        raise OSError(errno.EAGAIN, f"the lock cannot be had: {error}") from error


def _put(folder: Path, note: Note) -> None:
    """Let the whole note stand in its file at once. FileExistsError: a person was faster."""
    draft, place = folder / _DRAFT, folder / f"{note.name}.md"
    with new_file(draft) as writer:
        writer.write(note.content.encode())
    try:
        os.link(draft, place)
    except FileExistsError:
        raise
    except OSError:
        # Not every file system has hard links.
        os.replace(draft, place)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def _list_again(folder: Path, note: Note) -> None:
    try:
        _write_index(folder)
    except OSError as error:
        raise Unlisted(note, why(error)) from error


def _write_index(folder: Path) -> None:
    """Make the list from the notes as they are now; one that a person changed is put aside and not lost."""
    place = folder / f"{LIST}.md"
    try:
        ours = read_index(load_index(place).text).ours
    except FileNotFoundError:
        # There is nothing to put aside.
        ours = True
    except (OSError, NotText):
        ours = False
    if not ours:
        with contextlib.suppress(FileNotFoundError):
            place.rename(folder / _aside(folder))
    with new_file(place) as writer:
        writer.write(make_index(note.line for note in look(folder).notes).encode())


def _aside(folder: Path) -> str:
    taken = {name.casefold() for name in os.listdir(folder)}
    names = (f"{LIST}-by-hand-{number}.txt" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)
