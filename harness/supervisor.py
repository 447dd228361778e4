"""Runs one command as a process of its own, limits it, and leaves nothing of it behind. POSIX only.

It reads a plan as one line of JSON from its input. When that input ends (Stop, or the harness died), or the
command has run too long, grown too big or multiplied too much, it ends every process that came of it. The
command's output goes to stdout, one line of JSON on how it ended to stderr. Knows nothing of the harness.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from harness import landlock, process_tree
from harness.limits import MAX_ADDRESSES, MAX_FILE, MAX_MEMORY, MAX_OPEN_FILES, MAX_PROCESSES

_TICK = 0.1
_END_SECONDS = 5
_SUBREAPER, _DIE_WITH_PARENT = 36, 1
_NOT_STARTED = 126


def main() -> None:
    """Run the plan from the input and report its end."""
    plan = json.loads(sys.stdin.buffer.readline())
    if sys.platform.startswith("linux"):
        # An orphan of the command becomes our child, so "no child left" means "nothing left".
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = _start(plan)
    seen: set[int] = set()
    end, code = _watch(child, woken, time.monotonic() + plan["seconds"], seen)
    if not _end_all(seen):
        end = "lost"
    print(json.dumps({"end": end, "code": code}), file=sys.stderr, flush=True)


def _start(plan: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        _prepare(plan)
        os.execve(plan["argv"][0], plan["argv"], plan["environment"])
    except BaseException as error:  # whatever it is, the copy of the supervisor must not run on
        os.write(1, f"The command could not be started: {error}\n".encode(errors="replace"))
    finally:
        os._exit(_NOT_STARTED)


def _prepare(plan: dict[str, Any]) -> None:
    """Turn this copy of the supervisor into the command: own session, no input, limits, sandbox."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(1, 2)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    # Below the server and the supervisor: both must get their turn whatever the command does.
    os.nice(10)
    os.chdir(plan["folder"])
    _limit(plan["seconds"])
    if plan["rules"]:
        landlock.restrict(landlock.Rules(**plan["rules"]))
    elif not plan["keep_privileges"]:
        landlock.give_up_privileges()


def _limit(seconds: int) -> None:
    wanted = {
        resource.RLIMIT_CPU: seconds + 5,
        resource.RLIMIT_FSIZE: MAX_FILE,
        resource.RLIMIT_AS: MAX_ADDRESSES,
        resource.RLIMIT_NOFILE: MAX_OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    if threads := process_tree.user_threads():
        # The kernel counts all of the user's, not the command's own; it does not hold root to this.
        wanted[resource.RLIMIT_NPROC] = threads + MAX_PROCESSES
    for name, value in wanted.items():
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with suppress(ValueError, OSError):  # macOS refuses some of them
            resource.setrlimit(name, (value, value))


def _watch(child: int, woken: int, deadline: float, seen: set[int]) -> tuple[str, int]:
    """Wait for the command's end or a reason to end it; return which, and the exit code."""
    while True:
        ready, _, _ = select.select([0, woken], [], [], _TICK)
        if woken in ready:
            os.read(woken, 4096)
        status = _reap(child)
        if status is not None:
            return "exit", os.waitstatus_to_exitcode(status)
        if 0 in ready:
            return "stop", 0
        if time.monotonic() > deadline:
            return "time", 0
        family = process_tree.descendants(os.getpid())
        seen.update(family)
        if len(family) > MAX_PROCESSES:
            return "processes", 0
        if process_tree.resident_bytes(family) > MAX_MEMORY:
            return "memory", 0


def _reap(child: int) -> int | None:
    """Collect everything that has ended; return the status of `child` if it was among them."""
    found = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                found = status
            if not pid:
                break
    return found


def _end_all(seen: set[int]) -> bool:
    """Kill until nothing is left; False when something still stands after 5 seconds."""
    linux = sys.platform.startswith("linux")
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
        # Elsewhere an orphan leaves the tree, so what was seen in it earlier is ended too.
        for pid in set(process_tree.descendants(os.getpid())) | (set() if linux else seen):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        seen.clear()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        time.sleep(0.005)
    return False
