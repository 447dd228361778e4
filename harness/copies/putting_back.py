"""Puts a workspace back to what it was at a checkpoint, in place: what changed since is replaced, what is new goes.

May be done again from wherever it was cut short. Blocking, so callers use a thread; and nothing else may write to the
workspace meanwhile.
"""

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from harness.copies import contents, snapshots
from harness.copies.manifest import Entry, Manifest
from harness.copies.reading import entry_of, kind_of, unchanged
from harness.result_events import FOLDER


def put_back(store: Path, workspace: Path, number: int) -> bool:
    """Let `workspace` be what the snapshot of checkpoint `number` holds; True once it is. No link is followed.

    The files of large results stay: the events that name them stay too. Problem: there is no such snapshot.
    OSError: it is damaged, or the workspace cannot be written.
    """
    manifest = snapshots.whole(store, snapshots.step(number))
    root, there = str(workspace.resolve()), _opened(workspace)
    kinds = {entry.path: entry.kind for entry in manifest.entries}
    for path, status in reversed(there.items()):
        # Children come before their folder; those of a folder that goes are not in the snapshot either.
        if kinds.get(path) != kind_of(status) and not (path not in kinds and _spared(path, there)):
            _remove(workspace / path, status)
    for entry in manifest.entries:
        now = there.get(entry.path)
        if now is None or kind_of(now) != entry.kind or not (_same(entry, now, manifest) or _spared(entry.path, there)):
            _put(store, workspace / entry.path, entry, snapshots.moved(entry.value, manifest.root, root))
    for entry in reversed(manifest.entries):
        if entry.kind == "folder":
            snapshots.finish(workspace / entry.path, entry, 0o700)
    return True


def _opened(root: Path) -> dict[str, os.stat_result]:
    """Return what lies in `root`, each folder before what it holds; a folder that was closed to its owner is opened."""
    found: dict[str, os.stat_result] = {}
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with os.scandir(root / inside) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        for entry in listed:
            path, status = f"{inside}/{entry.name}" if inside else entry.name, entry.stat(follow_symlinks=False)
            found[path] = status
            if kind_of(status) == "folder":
                if stat.S_IMODE(status.st_mode) & 0o700 != 0o700:
                    os.chmod(entry.path, stat.S_IMODE(status.st_mode) | 0o700)
                waiting.append(path)
    return found


def _spared(path: str, there: Mapping[str, os.stat_result]) -> bool:
    """Whether this belongs to the results' own folder, and that is a folder."""
    return path.split("/")[0] == FOLDER and FOLDER in there and kind_of(there[FOLDER]) == "folder"


def _same(entry: Entry, now: os.stat_result, manifest: Manifest) -> bool:
    """Whether what lies there needs no writing. A link is always written anew."""
    if entry.kind == "folder":
        return True
    return entry.kind == "file" and unchanged(entry, entry_of(entry.path, "file", now, entry.value), manifest.taken)


def _remove(place: Path, status: os.stat_result) -> None:
    (place.rmdir if kind_of(status) == "folder" else place.unlink)()


def _put(store: Path, place: Path, entry: Entry, leads: str) -> None:
    match entry.kind:
        case "folder":
            place.mkdir(mode=0o700)
        case "link":
            with suppress(FileNotFoundError):
                place.unlink()
            place.symlink_to(leads)
        case "file":
            with contents.new_file(place) as writer:
                contents.get(store, entry.value, writer)
            snapshots.finish(place, entry, 0)
