"""Where what belongs to a session lies: its copy of the folder, and what outlives it. Makes nothing."""

import hashlib
import os
from pathlib import Path

from harness.messages import clean

# A file system takes names of 255 bytes; the digest behind it has 13.
_NAME_BYTES = 240


def workspace_folder(data: Path, session: str) -> Path:
    """Return where the copy of the workspace lies that a session works in."""
    return data / "sessions" / session / "workspace"


def real_path(path: Path) -> Path:
    """Return where a path leads in the end; a link that leads to itself leads no further, and raises nothing."""
    return Path(os.path.realpath(path))


def notes_folder(data: Path, source: Path) -> Path:
    """Return where the notes lie that all sessions of one folder share."""
    # A journal keeps the path of a folder only as UTF-8, and after a restart the place must be the same.
    place, name = clean(str(real_path(source))), clean(source.name).encode()[:_NAME_BYTES].decode(errors="ignore")
    return data / "memory" / f"{name}-{hashlib.sha256(place.encode()).hexdigest()[:12]}"
