"""Reads a folder for a snapshot: what lies in it, and the contents of what changed since the one before. Blocking."""

import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from harness.coding_tools.workspace_copy import MAX_BYTES, MAX_FILES
from harness.copies import contents
from harness.copies.manifest import Entry, Kind, Manifest
from harness.messages import clean

# A change soon after another may leave the very same times. The coarsest file systems count in steps of 2 seconds.
_SETTLED = 2_000_000_000  # nanoseconds
TOO_BIG = "too big"
_JUNCTION = 0xA0000003  # Windows: a folder that leads elsewhere


class _TooBig(Exception):
    """There is more than a snapshot may hold."""


def read(store: Path, workspace: Path, before: Manifest | None) -> Manifest:
    """Keep the contents of `workspace`, and return what it holds, or why it cannot be kept whole.

    before: an earlier snapshot; what did not change since then is not read again.
    """
    root, began = str(workspace.resolve()), time.time_ns()
    try:
        return Manifest(root, began, tuple(_entries(store, workspace, before)))
    except _TooBig:
        return Manifest(root, began, failed=TOO_BIG)
    except OSError as error:
        return Manifest(root, began, failed=_why(error))


def _entries(store: Path, root: Path, before: Manifest | None) -> Iterator[Entry]:
    if root.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "the workspace is a link")
    known = {entry.path: entry for entry in before.entries} if before else {}
    count = size = 0
    for path, found in walk(root):
        status = found.stat(follow_symlinks=False)
        kind, count = kind_of(status), count + 1
        size += status.st_size if kind == "file" else 0
        if count > MAX_FILES or size > MAX_BYTES:
            raise _TooBig
        old = known.get(path)
        if kind == "link":
            yield entry_of(path, kind, status, os.readlink(found.path))
        elif kind == "folder":
            yield entry_of(path, kind, status)
        elif kind and old and before and unchanged(old, entry_of(path, kind, status, old.value), before.taken):
            yield old
        elif kind:
            yield _keep(store, path, found.path)


def walk(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what lies in `root`, with its path, each folder before what it holds. No link is followed."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with os.scandir(root / inside) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            path = f"{inside}/{entry.name}" if inside else entry.name
            yield path, entry
            if kind_of(entry.stat(follow_symlinks=False)) == "folder":
                waiting.append(path)


def kind_of(status: os.stat_result) -> Kind | None:
    """Return what something is, or None for what a snapshot leaves out."""
    if stat.S_ISLNK(status.st_mode):
        return "link"
    if stat.S_ISREG(status.st_mode):
        return "file"
    junction = getattr(status, "st_reparse_tag", 0) == _JUNCTION
    return "folder" if stat.S_ISDIR(status.st_mode) and not junction else None


def entry_of(path: str, kind: Kind, status: os.stat_result, value: str = "") -> Entry:
    """Return the entry of something that has this status."""
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return Entry(path, kind, stat.S_IMODE(status.st_mode) & 0o777, status.st_size, *times, status.st_ino, value)


def unchanged(old: Entry, now: Entry, taken: int) -> bool:
    """Whether a file holds what it held when it was read.

    A command can set a file's mtime, but not its ctime, which changes with every write; Windows has none.
    """
    return os.name == "posix" and old == now and old.ctime + _SETTLED < taken


def _keep(store: Path, path: str, place: str) -> Entry:
    """Keep a file's content, where it is not kept yet, and return its entry. OSError: it cannot be read or kept."""
    # No link is followed and no pipe is waited for, even if the entry changed since it was listed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(place, flags), "rb") as reader:
        status = os.fstat(reader.fileno())
        if kind_of(status) != "file":
            raise OSError(errno.EBUSY, "a file changed while it was read")
        return entry_of(path, "file", status, contents.put(store, reader))


def _why(error: OSError) -> str:
    name, reason = os.path.basename(error.filename or ""), error.strerror or str(error)
    return clean(f"{name}: {reason}" if name else reason)
