"""Which processes came of a process, how much memory they hold, and how to stop them all.

Reads /proc on Linux, asks `ps` elsewhere. Knows nothing of why they are stopped.
"""

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """Return the children of `pid`, their children and so on, parents first; `pid` itself is not among them."""
    children = _reader()
    found: list[int] = []
    waiting = [pid]
    while waiting:
        fresh = children(waiting.pop())
        found += fresh
        waiting += fresh
    return found


def stop(pid: int, stopped: set[int]) -> bool:
    """Stop what came of `pid` and is not in `stopped`, which grows by it; False when there was nothing new.

    Each process is stopped before its children are read: from then on it has no more of them. So the time
    is that of the processes there are, however fast they multiply.
    """
    children = _reader()
    before = len(stopped)
    waiting = [child for child in children(pid) if child not in stopped]
    while waiting:
        following = waiting.pop()
        send(following, signal.SIGSTOP)
        stopped.add(following)
        waiting += [child for child in children(following) if child not in stopped]
    return len(stopped) > before


def send(pid: int, number: int) -> None:
    """Send a signal; a process that is gone, or not ours, is left alone."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


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


def _reader() -> Callable[[int], list[int]]:
    """Return what reads a process's children: now, from Linux's own files, or from a list made at this moment."""
    own = os.getpid()
    if (_PROC / str(own) / "task" / str(own) / "children").exists():
        return _children
    table = _children_by_parent()
    return lambda pid: table.get(pid, [])


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
