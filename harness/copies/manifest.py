"""What a snapshot holds, as one small JSON file: the entries of a folder, or why there are none. Reads no workspace.

A snapshot is named by the task at whose end it was taken, a number, or by a text such as "checkpoint-3".
"""

import json
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

from harness.copies.contents import new_file

Kind = Literal["file", "folder", "link"]
Name = int | str


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or link.

    path: relative to the root, parts joined by "/"; what is no UTF-8 in it stands as `os.fsdecode` returns it.
    mode: permission bits. size: bytes. mtime, ctime: nanoseconds. value: a file's SHA-256 in hex, or a link's text.
    """

    path: str
    kind: Kind
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int
    value: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One snapshot: a folder's entries, each folder before what it holds.

    root: the folder. taken: when the reading began, in nanoseconds (Unix). failed: why nothing was kept, or "".
    """

    root: str
    taken: int
    entries: tuple[Entry, ...] = ()
    failed: str = ""


def save(store: Path, name: Name, manifest: Manifest) -> None:
    """Write the manifest of the snapshot `name`. OSError: it cannot be written, and an older one stays."""
    rows = [astuple(entry) for entry in manifest.entries]
    body = {"root": manifest.root, "taken": manifest.taken, "entries": rows, "failed": manifest.failed}
    with new_file(_place(store, name)) as writer:
        # Names that are no UTF-8 come through as escapes.
        writer.write(json.dumps(body, ensure_ascii=True).encode("ascii"))


def load(store: Path, name: Name) -> Manifest | None:
    """Return the manifest of the snapshot `name`, or None: there is none that can be read."""
    try:
        body = json.loads(_place(store, name).read_bytes())
        entries = tuple(Entry(*row) for row in body["entries"])
        return Manifest(body["root"], body["taken"], entries, body["failed"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def forget(store: Path, name: Name) -> None:
    """Remove the manifest of the snapshot `name`. OSError: there is none, or it cannot be removed."""
    _place(store, name).unlink()


def tasks(store: Path) -> list[int]:
    """Return the tasks that have a manifest, the newest first."""
    return sorted((int(path.stem) for path in store.glob("*.json") if path.stem.isdecimal()), reverse=True)


def _place(store: Path, name: Name) -> Path:
    return store / f"{name}.json"
