"""The profile for macOS' sandbox-exec. Best effort: Apple keeps the tool but documents its language no more."""

from collections.abc import Iterable
from pathlib import Path

_HIDDEN = ("/Users", "/private/var/root", "/Volumes", "/private/tmp", "/private/var/folders", "/private/var/db")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")
# Starting programs through the system, or asking for passwords, would lead out of the sandbox.
_SERVICES = ("com.apple.SecurityServer", "com.apple.securityd.xpc", "com.apple.coreservices.launchservicesd")


def profile(readable: Iterable[Path], hidden: Iterable[Path], root: Path, temporary: Path) -> str:
    """Return the profile: no network, homes hidden, only `root` and `temporary` can be written. Last rule wins."""
    own = [_under(root), _under(temporary)]
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny network*)",
        "(deny mach-lookup " + " ".join(f"(global-name {_quoted(name)})" for name in _SERVICES) + ")",
        "(deny file-write*)",
        "(allow file-write* " + " ".join(own + [f"(literal {_quoted(name)})" for name in _DEVICES]) + ")",
        "(deny file-read* " + " ".join(_under(Path(path)) for path in (*_HIDDEN, *hidden)) + ")",
        "(allow file-read-metadata)",
        "(allow file-read* " + " ".join([_under(path) for path in readable] + own) + ")",
    ]
    return "\n".join(lines)


def _under(path: Path) -> str:
    return f"(subpath {_quoted(str(path))})"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
