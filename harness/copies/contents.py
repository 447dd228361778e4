"""Contents of files, each kept once under its SHA-256. They are never changed, so stores may share them. Blocking."""

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20


def put(store: Path, reader: BinaryIO) -> str:
    """Keep what a file holds, if it is not kept yet, and return its SHA-256 in hex. OSError: it cannot be kept."""
    content = hashlib.file_digest(reader, "sha256").hexdigest()
    if not (place := _place(store, content)).exists():
        reader.seek(0)
        with new_file(place) as writer:
            _copy(reader, writer, content)
    return content


def get(store: Path, content: str, writer: BinaryIO) -> None:
    """Write a content. OSError: it is not there or damaged; then what was written is worth nothing."""
    with _place(store, content).open("rb") as reader:
        _copy(reader, writer, content)


def share(store: Path, other: Path, content: str) -> None:
    """Give a content to the store `other`, which lacks it; each can be removed alone. OSError: it cannot."""
    place = _place(other, content)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(_place(store, content), place)
    except FileNotFoundError:
        raise
    except OSError:
        # Not every file system has hard links, and none has them without end.
        with new_file(place) as writer:
            get(store, content, writer)


@contextmanager
def new_file(place: Path) -> Iterator[BinaryIO]:
    """Yield a file that stands at `place` once it is whole. At an error all is as before."""
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place.parent)
    try:
        with open(handle, "wb") as writer:
            yield writer
        os.replace(name, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _place(store: Path, content: str) -> Path:
    return store / "objects" / content[:2] / content[2:]


def _copy(reader: BinaryIO, writer: BinaryIO, content: str) -> None:
    read = hashlib.sha256()
    while piece := reader.read(_CHUNK):
        read.update(piece)
        writer.write(piece)
    if read.hexdigest() != content:
        raise OSError(errno.EIO, "a file is not what it was")
