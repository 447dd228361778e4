"""Copies a folder for one session, so that nothing the agent does reaches the original.

Knows nothing of sessions. Blocking: callers run it in a thread.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.messages import clean
from harness.problems import Problem
from harness.sandbox.detect import NOT_DETECTED, Sandbox
from harness.workspace import Workspace, is_protected

MAX_FILES = 20_000
MAX_BYTES = 200_000_000
_LEFT_OUT = frozenset({".venv", "node_modules", "__pycache__"})
_CHUNK = 1 << 20


class WorkspaceError(Problem):
    """A folder could not be copied; nothing is left of the copy, and the folder is unchanged."""


@dataclass(slots=True)
class _Budget:
    """What may still be copied."""

    files: int
    size: int

    def take(self, source: Path, *, files: int = 0, size: int = 0) -> None:
        self.files -= files
        self.size -= size
        if self.files < 0 or self.size < 0:
            megabytes = MAX_BYTES // 10**6
            raise WorkspaceError("folder_too_big", folder=clean(str(source)), files=MAX_FILES, megabytes=megabytes)


def copy_workspace(source: Path, target: Path, label: str, *, sandbox: Sandbox = NOT_DETECTED) -> Workspace:
    """Copy `source` to the new folder `target` and return it as a workspace.

    Left out: `.git`, environments and caches, `.env*`, keys, links that lead outside, sockets, devices, and
    the part of `source` that holds `target`. Raises WorkspaceError; a partial copy is removed.
    """
    if not source.is_dir():
        raise WorkspaceError("no_folder", folder=clean(str(source)))
    if target.exists():
        raise WorkspaceError("folder_in_the_way", folder=clean(str(target)))
    source, target = source.resolve(), target.resolve()
    budget = _Budget(MAX_FILES, MAX_BYTES)
    try:
        target.mkdir(parents=True, mode=0o700)
        for entry in _entries(source, target):
            _copy_entry(entry, source, target / Path(entry.path).relative_to(source), budget)
    except OSError as error:
        _remove(target)
        name = clean(str(error.filename or source))
        raise WorkspaceError("folder_not_copied", name=name, reason=error.strerror) from error
    except WorkspaceError:
        _remove(target)
        raise
    return Workspace(target, label, sandbox)


def _entries(source: Path, target: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what is to be copied, each folder before what it holds, in a stable order."""
    waiting = [source]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            if entry.name in _LEFT_OUT or is_protected(entry.name) or target.is_relative_to(entry.path):
                continue
            if entry.is_dir(follow_symlinks=False):
                if Path(entry.path, "pyvenv.cfg").exists():
                    continue
                waiting.append(Path(entry.path))
            yield entry


def _copy_entry(entry: os.DirEntry[str], source: Path, place: Path, budget: _Budget) -> None:
    budget.take(source, files=1)
    if entry.is_symlink():
        _copy_link(Path(entry.path), source, place)
    elif entry.is_dir(follow_symlinks=False):
        place.mkdir()
    elif entry.is_file(follow_symlinks=False):
        _copy_file(entry.path, source, place, budget)


def _copy_link(link: Path, source: Path, place: Path) -> None:
    """Copy a relative link that stays inside; any other is left out."""
    text = os.readlink(link)
    try:
        inside = link.resolve().is_relative_to(source)
    except (OSError, RuntimeError):
        return
    if inside and not os.path.isabs(text) and not any(is_protected(part) for part in Path(text).parts):
        place.symlink_to(text)


def _copy_file(path: str, source: Path, place: Path, budget: _Budget) -> None:
    # No link is followed and no pipe is waited for, even if the entry changed since it was listed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as reader:
        status = os.fstat(reader.fileno())
        if not stat.S_ISREG(status.st_mode):
            return
        if status.st_size > budget.size:
            budget.take(source, size=status.st_size)
        with place.open("xb") as writer:
            while piece := reader.read(_CHUNK):
                budget.take(source, size=len(piece))
                writer.write(piece)
    place.chmod(stat.S_IMODE(status.st_mode) & 0o755 | 0o600)
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))


def _remove(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
