"""Which processes came of a process, and how much memory they hold. Reads /proc on Linux, asks `ps` elsewhere."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """Return the children of `pid`, their children and so on, parents first; `pid` itself is not among them."""
    table = None if _has_children_files() else _children_by_parent()
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        children = _children(parent) if table is None else table.get(parent, [])
        found += children
        waiting += children
    return found


def resident_bytes(pids: list[int]) -> int:
    """Return how much memory the processes hold for themselves; 0 where /proc does not tell."""
    pages = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            numbers = (_PROC / str(pid) / "statm").read_text().split()
            pages += int(numbers[1]) - int(numbers[2])
    return pages * os.sysconf("SC_PAGE_SIZE")


def user_threads() -> int:
    """Return how many threads this process's user has on the whole machine; 0 where /proc does not tell."""
    threads = 0
    for status in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            if status.stat().st_uid == os.getuid():
                threads += int(status.read_text().rpartition(")")[2].split()[17])
    return threads


def _has_children_files() -> bool:
    own = os.getpid()
    return (_PROC / str(own) / "task" / str(own) / "children").exists()


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(_PROC / str(pid) / "task"):
            with suppress(OSError):
                found += map(int, (_PROC / str(pid) / "task" / task / "children").read_text().split())
    return found


def _children_by_parent() -> dict[int, list[int]]:
    table: dict[int, list[int]] = {}
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        child, parent = map(int, line.split())
        table.setdefault(parent, []).append(child)
    return table
