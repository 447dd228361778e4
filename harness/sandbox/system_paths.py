"""What a command may read on a POSIX system besides its workspace, and its environment.

A list of what is allowed: whatever is not named here (home folders, /run, /var, other data) is not there.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# Of /etc only what programs need to start: the rest may hold passwords or private keys.
_ETC = (
    "alternatives", "bash.bashrc", "ca-certificates", "fonts", "group", "hosts", "inputrc", "java-*",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types",
    "nsswitch.conf", "os-release", "passwd", "pki/tls/certs", "profile", "protocols", "python3*", "services",
    "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip
_PYTHON_PARTS = ("bin", "lib", "lib64", "include", "ssl", "pyvenv.cfg")


def readable(hidden: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files and folders that every command may read, without anything inside `hidden`.

    The Python that runs this is among them, also where its folder is inside a hidden one.
    """
    away = tuple(hidden)
    wanted = [Path(name) for name in _SYSTEM] + [path for name in _ETC for path in Path("/etc").glob(name)]
    found = [part for path in wanted if path.exists() for part in _without(path, away)]
    inside = [path for prefix in _prefixes() for part in _PYTHON_PARTS if (path := prefix / part).exists()]
    for path in inside:
        if not any(path.is_relative_to(parent) for parent in found):
            found += _without(path, tuple(each for each in away if not path.is_relative_to(each)))
    return tuple(dict.fromkeys(found))


def environment(home: Path) -> dict[str, str]:
    """Return the whole environment of a command: nothing is taken over, so no key can be in it."""
    programs = [str(prefix / "bin") for prefix in _prefixes()]
    return {
        "PATH": ":".join(dict.fromkeys([*programs, *SYSTEM_PATH.split(":")])),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        # A cached module would be taken for the edited one when both have the same size and second.
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _prefixes() -> list[Path]:
    """Return the folders of the running Python: its environment, its base, and where its links lead."""
    found = [Path(sys.prefix), Path(sys.base_prefix)]
    program = Path(sys.executable)
    while program.is_symlink():
        program = program.parent / os.readlink(program)
        if program.parent.name == "bin":
            found.append(program.parent.parent)
    found += [path.resolve() for path in found]
    return [path for path in dict.fromkeys(found) if path != Path("/")]


def _without(path: Path, hidden: tuple[Path, ...]) -> list[Path]:
    """Return `path`, or its parts where something hidden stands inside it.

    _without(Path("/usr"), (Path("/usr/src/app"),)) -> every entry of /usr but src, every entry of /usr/src but app
    """
    real = path.resolve()
    if any(real.is_relative_to(each) for each in hidden):
        return []
    if not any(each.is_relative_to(real) for each in hidden):
        return [path]
    return [part for child in sorted(path.iterdir()) for part in _without(child, hidden)]
