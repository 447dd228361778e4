"""The workspace as it was at the end of a task, or at a checkpoint, kept beside it: each content once, by its SHA-256,
and a manifest.

Knows nothing of sessions. Blocking, so callers use a thread; and nothing else may write to the workspace meanwhile.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from harness.coding_tools.workspace_copy import MAX_BYTES, MAX_FILES
from harness.copies import contents
from harness.copies.manifest import Entry, Manifest, Name, forget, load, save, tasks
from harness.copies.reading import TOO_BIG, read
from harness.problems import Problem


def store_of(workspace: Path) -> Path:
    """Return the folder of a workspace's snapshots, which no command can reach: it lies beside the workspace."""
    return workspace.with_name("snapshots")


def take(store: Path, workspace: Path, task: int) -> None:
    """Keep `workspace` in the folder `store` as it is now, at the end of `task`; 0 is before the first one.

    Costs a walk and the reading of what changed. Pipes, sockets and devices are left out, hard links become files of
    their own. Where it cannot be kept whole, why not is kept, for `restore` to say; nothing is raised.
    """
    _write(store, task, read(store, workspace, _newest(store)))


def take_step(store: Path, workspace: Path, number: int, like: int) -> int:
    """Keep `workspace` for the checkpoint `number`; return the number of the snapshot that holds it, 0 where none does.

    like: the snapshot of the checkpoint before, 0 for none. Where nothing has changed since, it holds this one too, so
    that a step that only reads costs a walk and no more.
    """
    before = load(store, step(like)) if like else None
    manifest = read(store, workspace, before or _newest(store))
    if before and manifest.entries == before.entries:
        return like
    return number if not manifest.failed and _write(store, step(number), manifest) else 0


def step(number: int) -> Name:
    """Return the name of the snapshot of a checkpoint; no task has such a one."""
    return f"checkpoint-{number}"


def restore(store: Path, task: int, target: Path) -> None:
    """Write the snapshot of the end of `task` to `target`, a new folder.

    Permissions are kept, but a folder stays open for its owner, so that it can be removed. An absolute link into the
    old workspace leads into the new one. Problem: there is no snapshot. OSError: it is damaged, or `target` cannot
    be written; what was written stays.
    """
    manifest = whole(store, task)
    target.mkdir(parents=True, mode=0o700)
    root = str(target.resolve())
    for entry in manifest.entries:
        place = target / entry.path
        match entry.kind:
            case "link":
                place.symlink_to(moved(entry.value, manifest.root, root))
            case "folder":
                place.mkdir(mode=0o700)
            case "file":
                with place.open("xb") as writer:
                    contents.get(store, entry.value, writer)
                finish(place, entry, 0)
    for entry in reversed(manifest.entries):
        if entry.kind == "folder":
            finish(target / entry.path, entry, 0o700)


def share(store: Path, other: Path, task: int, steps: Collection[int] = ()) -> None:
    """Give the new store `other` the snapshots up to the end of `task`, and those of the checkpoints `steps`.

    OSError: it cannot be written.
    """
    wanted: set[str] = set()
    for each in (*(each for each in tasks(store) if each <= task), *map(step, steps)):
        if manifest := load(store, each):
            save(other, each, manifest)
            wanted |= {entry.value for entry in manifest.entries if entry.kind == "file"}
    for content in wanted:
        # What one store has lost, the other cannot have; `restore` says so.
        with suppress(FileNotFoundError):
            contents.share(store, other, content)


def whole(store: Path, name: Name) -> Manifest:
    """Return the manifest of a snapshot that was kept whole. Problem says why it was not."""
    manifest = load(store, name)
    if manifest is None:
        raise Problem("snapshot_missing")
    if manifest.failed == TOO_BIG:
        raise Problem("snapshot_too_big", files=MAX_FILES, megabytes=MAX_BYTES // 10**6)
    if manifest.failed:
        raise Problem("snapshot_failed", reason=manifest.failed)
    return manifest


def finish(place: Path, entry: Entry, least: int) -> None:
    """Give what was written its permissions, at least `least`, and its time."""
    place.chmod(entry.mode | least)
    os.utime(place, ns=(entry.mtime, entry.mtime))


def moved(text: str, old: str, new: str) -> str:
    """Return where a link leads once the folder `old` lies at `new`."""
    return new + text[len(old) :] if text == old or text.startswith(old + os.sep) else text


def _newest(store: Path) -> Manifest | None:
    """Return the newest whole snapshot of a task's end, or None."""
    return next((found for each in tasks(store) if (found := load(store, each)) and not found.failed), None)


def _write(store: Path, name: Name, manifest: Manifest) -> bool:
    """Write the manifest of a snapshot; whether it could be written."""
    try:
        save(store, name, manifest)
    except OSError:
        # What stands there from an earlier try would be wrong.
        with suppress(OSError):
            forget(store, name)
        return False
    return True
