"""Landlock, the Linux kernel's own sandbox, through three system calls. Knows nothing of what runs in it.

It limits files, TCP and signals. It does not limit UDP, nor connecting to a Unix socket whose path is known.
"""

import ctypes
import os
import platform
import sys
from dataclasses import dataclass

ABI_WITH_TCP = 4
_ABI_WITH_SCOPES = 6
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES, _DROP_CAPABILITY = 38, 24
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be read (and run), and what may be changed; everything else is refused."""

    abi: int
    read: list[str]
    write: list[str]


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def abi() -> int:
    """Return the version of Landlock that this kernel offers, 0 for none."""
    # The calls' numbers are the same on every architecture but alpha.
    if not sys.platform.startswith("linux") or platform.machine() == "alpha":
        return 0
    return max(0, ctypes.CDLL(None).syscall(_CREATE, None, 0, 1))


def restrict(rules: Rules) -> None:
    """Confine this process and all that it starts, for ever. Raises OSError; then nothing may be run."""
    every = (1 << 13) - 1 | (1 << 13 if rules.abi >= 2 else 0)
    every |= (_TRUNCATE if rules.abi >= 3 else 0) | (_IOCTL if rules.abi >= 5 else 0)
    ruleset = _Ruleset(every, 3 if rules.abi >= ABI_WITH_TCP else 0, 3 if rules.abi >= _ABI_WITH_SCOPES else 0)
    size = 24 if rules.abi >= _ABI_WITH_SCOPES else 16 if rules.abi >= ABI_WITH_TCP else 8
    handle = _call(_CREATE, ctypes.byref(ruleset), size, 0)
    for path in [*rules.read, "/proc"]:
        _allow(handle, path, _EXECUTE | _READ | _LIST)
    for path in _DEVICES:
        _allow(handle, path, _READ | _WRITE)
    for path in rules.write:
        _allow(handle, path, every)
    give_up_privileges()
    _call(_RESTRICT, handle, 0)
    os.close(handle)


def give_up_privileges() -> None:
    """Let nothing that this process starts gain rights, and take root's special rights away."""
    if sys.platform.startswith("linux"):
        library = ctypes.CDLL(None, use_errno=True)
        for capability in range(64):
            library.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
        library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def _allow(handle: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        # A file takes only the rights that a file can have.
        fitting = rights if os.path.isdir(path) else rights & (_EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL)
        _call(_ADD, handle, 1, ctypes.byref(_Beneath(fitting, opened)), 0)
    finally:
        os.close(opened)


def _call(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    # An int would be passed with 32 bits; the kernel reads 64.
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = library.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock refused: {os.strerror(code)}")
    return result
