"""The bubblewrap command line: a system of its own in which only the workspace can be written.

Knows nothing of the command that runs in it.
"""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

INNER_ROOT = "/mnt/workspace"
_TEMPORARY_BYTES = 256 * 1024 * 1024
_WITH_SIZE = (0, 7)


def version(program: str) -> str:
    """Return the version as the program tells it, such as "0.8.0", or "" where it tells none."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"\d+(\.\d+)+", said)
    return found.group() if found else ""


def arguments(program: str, detail: str, readable: Iterable[Path], root: Path) -> list[str]:
    """Return bwrap's arguments up to the command.

    program: bwrap's path. detail: its version. readable: what can be read, at its own place.
    root: the workspace, which appears as INNER_ROOT.
    """
    # As root bwrap keeps every capability unless told otherwise, and could undo its own mounts.
    line = [program, "--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    line += ["--hostname", "workspace", "--proc", "/proc", "--dev", "/dev"]
    numbers = tuple(int(part) for part in detail.split(".")[:2]) if detail else (0, 0)
    line += ["--size", str(_TEMPORARY_BYTES)] if numbers >= _WITH_SIZE else []
    line += ["--tmpfs", "/tmp"]
    for path in sorted(readable, key=lambda each: len(each.parts)):
        if path.is_symlink() and len(path.parts) == 2:
            line += ["--symlink", str(path.readlink()), str(path)]
        else:
            line += ["--ro-bind-try", str(path), str(path)]
    # The folders made for the mounts stand on a file system of bwrap's own: close it once they are there.
    return [*line, "--bind", str(root), INNER_ROOT, "--remount-ro", "/", "--chdir", INNER_ROOT]
