"""How commands are confined on this machine, found out once by really running one.

Knows nothing of tools or sessions: it turns a command into a plan for the supervisor.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from harness.sandbox import bubblewrap, landlock, seatbelt, system_paths
from harness.sandbox.command import Plan, supervisor_command

Kind = Literal["bubblewrap", "landlock", "sandbox-exec", "none"]
Code = Literal["bubblewrap", "landlock", "landlock_network_open", "sandbox_exec", "none", "no_bash", "not_detected"]

KINDS: tuple[Kind, ...] = ("bubblewrap", "landlock", "sandbox-exec", "none")
_PROBE = "cat {secret} 2>/dev/null && exit; test $(cat inside) = x && printf confined"
_PROBE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What confines commands.

    code: the catalogue's key for the page. detail: a version or the reason why nothing better is there.
    bash: the shell's path, "" where there is none. program: bwrap or sandbox-exec. abi: Landlock's version.
    hidden: folders that no command may read. readable: what every command may read, the rest is not there.
    """

    kind: Kind
    code: Code
    detail: str
    bash: str = ""
    program: str = ""
    abi: int = 0
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    @property
    def inner_root(self) -> str:
        """The workspace's name as commands see it; "" where they see its own."""
        return bubblewrap.INNER_ROOT if self.kind == "bubblewrap" else ""


NOT_DETECTED = Sandbox("none", "not_detected", "no sandbox was looked for")


def detect(hidden: Iterable[Path] = (), kinds: Iterable[Kind] = KINDS) -> Sandbox:
    """Return the first of `kinds` that works here. Runs a small command for each: call it once, at the start.

    hidden: folders with data of other sessions or secrets; the project's own folder is always hidden.
    """
    bash = _find_bash()
    if not bash:
        return Sandbox("none", "no_bash", "no bash was found")
    own = Path(__file__).resolve().parents[2]
    away = tuple(dict.fromkeys([own, *(path.resolve() for path in hidden)]))
    readable = system_paths.readable(away) if os.name == "posix" else ()
    failures: list[str] = []
    for kind in kinds:
        found = _candidate(kind, bash, readable, away)
        if isinstance(found, str):
            failures.append(f"{kind}: {found}")
        elif kind == "none":
            return Sandbox(kind, "none", "; ".join(failures), bash)
        elif reason := _probe(found):
            failures.append(f"{kind}: {reason}")
        else:
            return found
    return Sandbox("none", "none", "; ".join(failures), bash)


def plan(sandbox: Sandbox, root: Path, temporary: Path, command: str, seconds: int) -> Plan:
    """Return what the supervisor runs: `command` in bash, in `root`, confined, for at most `seconds`.

    temporary: an empty folder for this command alone; bubblewrap gives it a /tmp of its own instead.
    """
    shell = [sandbox.bash, "--noprofile", "--norc", "-c", command]
    environment = system_paths.environment(temporary)
    rules = None
    match sandbox.kind:
        case "bubblewrap":
            shell = bubblewrap.arguments(sandbox.program, sandbox.detail, sandbox.readable, root) + ["--", *shell]
            environment = system_paths.environment(Path("/tmp"))
        case "landlock":
            read = [str(path) for path in sandbox.readable]
            rules = landlock.Rules(sandbox.abi, read, [str(root), str(temporary)])
        case "sandbox-exec":
            profile = seatbelt.profile(sandbox.readable, sandbox.hidden, root, temporary)
            shell = [sandbox.program, "-p", profile, *shell]
        case "none":
            pass
    return Plan(shell, environment, str(root), seconds, rules, keep_privileges=sandbox.kind == "bubblewrap")


def _find_bash() -> str:
    if os.name == "posix":
        return next((path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK)), "")
    git_bash = Path(os.environ.get("PROGRAMFILES", "C:\\Program Files"), "Git", "bin", "bash.exe")
    return str(git_bash) if git_bash.exists() else shutil.which("bash") or ""


def _candidate(kind: Kind, bash: str, readable: tuple[Path, ...], hidden: tuple[Path, ...]) -> Sandbox | str:
    """Return a sandbox to probe, or why this kind is not there."""
    match kind:
        case "bubblewrap":
            program = shutil.which("bwrap", path=system_paths.SYSTEM_PATH) or ""
            detail = bubblewrap.version(program) if program else ""
            found = Sandbox(kind, "bubblewrap", detail, bash, program, 0, readable, hidden)
            return found if program else "not installed"
        case "landlock":
            abi = landlock.abi()
            code: Code = "landlock" if abi >= landlock.ABI_WITH_TCP else "landlock_network_open"
            found = Sandbox(kind, code, f"ABI {abi}", bash, "", abi, readable, hidden)
            return found if abi >= 1 else "the kernel does not offer it"
        case "sandbox-exec":
            program = "/usr/bin/sandbox-exec"
            found = Sandbox(kind, "sandbox_exec", "", bash, program, 0, readable, hidden)
            return found if sys.platform == "darwin" and os.access(program, os.X_OK) else "only on macOS"
        case "none":
            return Sandbox(kind, "none", "", bash)


def _probe(sandbox: Sandbox) -> str:
    """Run a command that must see its own folder and not the one beside it; return what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for part in ("work", "beside", "temporary"):
            (folder / part).mkdir()
            (folder / part / "inside").write_text("x")
        command = _PROBE.format(secret=folder / "beside" / "inside")
        todo = plan(sandbox, folder / "work", folder / "temporary", command, _PROBE_SECONDS)
        pipe = subprocess.PIPE
        with subprocess.Popen(supervisor_command(), stdin=pipe, stdout=pipe, stderr=pipe, env={}) as process:
            assert process.stdin and process.stdout
            process.stdin.write(json.dumps(asdict(todo)).encode() + b"\n")
            process.stdin.flush()
            output = process.stdout.read().decode(errors="replace").strip()
    return "" if output == "confined" else output[-200:] or "the probe ran but was not confined"
