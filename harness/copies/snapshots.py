"""The workspace as it was at the end of a task, kept beside it: each content once, by its SHA-256, and a manifest.

Knows nothing of sessions. Blocking, so callers use a thread; and nothing else may write to the workspace meanwhile.
"""

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.coding_tools.workspace_copy import MAX_BYTES, MAX_FILES
from harness.copies import contents
from harness.copies.manifest import Entry, Kind, Manifest, forget, load, save, tasks
from harness.messages import clean
from harness.problems import Problem

# A change soon after another may leave the very same times. The coarsest file systems count in steps of 2 seconds.
_SETTLED = 2_000_000_000  # nanoseconds
_TOO_BIG = "too big"
_JUNCTION = 0xA0000003  # Windows: a folder that leads elsewhere


class _TooBig(Exception):
    """There is more than a snapshot may hold."""


def store_of(workspace: Path) -> Path:
    """Return the folder of a workspace's snapshots, which no command can reach: it lies beside the workspace."""
    return workspace.with_name("snapshots")


def take(store: Path, workspace: Path, task: int) -> None:
    """Keep `workspace` in the folder `store` as it is now, at the end of `task`; 0 is before the first one.

    Costs a walk and the reading of what changed. Pipes, sockets and devices are left out, hard links become files of
    their own. Where it cannot be kept whole, why not is kept, for `restore` to say; nothing is raised.
    """
    root, began = str(workspace.resolve()), time.time_ns()
    before = next((found for each in tasks(store) if (found := load(store, each)) and not found.failed), None)
    try:
        manifest = Manifest(root, began, tuple(_entries(store, workspace, before)))
    except _TooBig:
        manifest = Manifest(root, began, failed=_TOO_BIG)
    except OSError as error:
        manifest = Manifest(root, began, failed=_why(error))
    try:
        save(store, task, manifest)
    except OSError:
        # What stands there from an earlier try would be wrong.
        with suppress(OSError):
            forget(store, task)


def restore(store: Path, task: int, target: Path) -> None:
    """Write the snapshot of the end of `task` to `target`, a new folder.

    Permissions are kept, but a folder stays open for its owner, so that it can be removed. An absolute link into the
    old workspace leads into the new one. Problem: there is no snapshot. OSError: it is damaged, or `target` cannot
    be written; what was written stays.
    """
    manifest = _whole(store, task)
    target.mkdir(parents=True, mode=0o700)
    root = str(target.resolve())
    for entry in manifest.entries:
        place = target / entry.path
        match entry.kind:
            case "link":
                place.symlink_to(_moved(entry.value, manifest.root, root))
            case "folder":
                place.mkdir(mode=0o700)
            case "file":
                with place.open("xb") as writer:
                    contents.get(store, entry.value, writer)
                _finish(place, entry, 0)
    for entry in reversed(manifest.entries):
        if entry.kind == "folder":
            _finish(target / entry.path, entry, 0o700)


def share(store: Path, other: Path, task: int) -> None:
    """Give the new store `other` the snapshots up to the end of `task`. OSError: it cannot be written."""
    wanted: set[str] = set()
    for each in tasks(store):
        if each <= task and (manifest := load(store, each)):
            save(other, each, manifest)
            wanted |= {entry.value for entry in manifest.entries if entry.kind == "file"}
    for content in wanted:
        # What one store has lost, the other cannot have; `restore` says so.
        with suppress(FileNotFoundError):
            contents.share(store, other, content)


def _entries(store: Path, root: Path, before: Manifest | None) -> Iterator[Entry]:
    if root.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "the workspace is a link")
    known = {entry.path: entry for entry in before.entries} if before else {}
    count = size = 0
    for path, found in _walk(root):
        status = found.stat(follow_symlinks=False)
        kind, count = _kind(status), count + 1
        size += status.st_size if kind == "file" else 0
        if count > MAX_FILES or size > MAX_BYTES:
            raise _TooBig
        old = known.get(path)
        if kind == "link":
            yield _entry(path, kind, status, os.readlink(found.path))
        elif kind == "folder":
            yield _entry(path, kind, status)
        elif kind and old and before and _unchanged(old, _entry(path, kind, status, old.value), before.taken):
            yield old
        elif kind:
            yield _keep(store, path, found.path)


def _walk(root: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what lies in `root`, with its path, each folder before what it holds. No link is followed."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with os.scandir(root / inside) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            path = f"{inside}/{entry.name}" if inside else entry.name
            yield path, entry
            if _kind(entry.stat(follow_symlinks=False)) == "folder":
                waiting.append(path)


def _kind(status: os.stat_result) -> Kind | None:
    if stat.S_ISLNK(status.st_mode):
        return "link"
    if stat.S_ISREG(status.st_mode):
        return "file"
    junction = getattr(status, "st_reparse_tag", 0) == _JUNCTION
    return "folder" if stat.S_ISDIR(status.st_mode) and not junction else None


def _entry(path: str, kind: Kind, status: os.stat_result, value: str = "") -> Entry:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return Entry(path, kind, stat.S_IMODE(status.st_mode) & 0o777, status.st_size, *times, status.st_ino, value)


def _unchanged(old: Entry, now: Entry, taken: int) -> bool:
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
        if _kind(status) != "file":
            raise OSError(errno.EBUSY, "a file changed while it was read")
        return _entry(path, "file", status, contents.put(store, reader))


def _whole(store: Path, task: int) -> Manifest:
    manifest = load(store, task)
    if manifest is None:
        raise Problem("snapshot_missing")
    if manifest.failed == _TOO_BIG:
        raise Problem("snapshot_too_big", files=MAX_FILES, megabytes=MAX_BYTES // 10**6)
    if manifest.failed:
        raise Problem("snapshot_failed", reason=manifest.failed)
    return manifest


def _why(error: OSError) -> str:
    name, reason = os.path.basename(error.filename or ""), error.strerror or str(error)
    return clean(f"{name}: {reason}" if name else reason)


def _finish(place: Path, entry: Entry, least: int) -> None:
    place.chmod(entry.mode | least)
    os.utime(place, ns=(entry.mtime, entry.mtime))


def _moved(text: str, old: str, new: str) -> str:
    return new + text[len(old) :] if text == old or text.startswith(old + os.sep) else text
