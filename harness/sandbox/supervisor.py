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

from harness.sandbox import landlock, process_tree
from harness.sandbox.limits import MAX_ADDRESSES, MAX_FILE, MAX_MEMORY, MAX_OPEN_FILES, MAX_PROCESSES

# Looking at the processes takes at most a fifth of the time. Seconds.
_SHORTEST, _LONGEST, _LOOK_SHARE = 0.02, 0.2, 4
_END_SECONDS = 60
_SUBREAPER, _DIE_WITH_PARENT = 36, 1
_NOT_STARTED = 126


def main() -> None:
    """Run the plan from the input and report its end."""
    plan = json.loads(sys.stdin.buffer.readline())
    if sys.platform.startswith("linux"):
        # An orphan of the command becomes our child, so "no child left" means "nothing left".
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with suppress(OSError, AttributeError):
        # Where it is allowed, come before everything that the command starts. Its copy does not inherit this.
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = _start(plan)
    seen: set[int] = set()
    end, code = _watch(child, woken, time.monotonic() + plan["seconds"], seen)
    if not _end_all(child, seen):
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
    pause = _SHORTEST
    while True:
        ready, _, _ = select.select([0, woken], [], [], pause)
        if woken in ready:
            os.read(woken, 4096)
        status = _reap(child)
        if status is not None:
            return "exit", os.waitstatus_to_exitcode(status)
        if 0 in ready:
            return "stop", 0
        if time.monotonic() > deadline:
            return "time", 0
        began = time.monotonic()
        family = process_tree.descendants(os.getpid())
        if not sys.platform.startswith("linux"):
            # There an orphan leaves the tree, so what was seen in it is remembered.
            seen.update(family)
        if len(family) > MAX_PROCESSES:
            return "processes", 0
        if process_tree.resident_bytes(family) > MAX_MEMORY:
            return "memory", 0
        pause = min(max(_SHORTEST, _LOOK_SHARE * (time.monotonic() - began)), _LONGEST)


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


def _end_all(group: int, seen: set[int]) -> bool:
    """Kill the command's group, then stop and kill until nothing is left; False after a minute in vain.

    The group goes in one step, and with bubblewrap everything does. For what left the group, killing one by
    one would lose against a command that multiplies: what is stopped neither forks nor takes the processor's
    time nor frees a place for another, and only when all stand still are they killed.
    """
    stopped: set[int] = set()
    deadline = time.monotonic() + _END_SECONDS
    if _has_children():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    while _has_children() or seen:
        if time.monotonic() > deadline:
            return False
        if process_tree.stop(os.getpid(), stopped):
            continue
        for pid in stopped | seen:
            process_tree.send(pid, signal.SIGKILL)
        stopped.clear()
        seen.clear()
        time.sleep(0.002)
    return True


def _has_children() -> bool:
    """Collect what has ended, and tell whether anything is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
