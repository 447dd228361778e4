"""Checks of the machine: Python, the sandbox, the rank file, and whether Phoenix is there."""

import asyncio
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from harness import tokens
from harness.doctor.result import Result
from harness.model.errors import detail
from harness.sandbox.command import run
from harness.sandbox.detect import detect, plan

COMMAND = "printf ready"
COMMAND_SECONDS = 5
PHOENIX = "http://127.0.0.1:6006"
PHOENIX_SECONDS = 1.0


def python() -> Result:
    """Say which Python runs. One that is too old gets no further than the first lines of `server.py`."""
    return Result("python_good", "good", {"version": ".".join(map(str, sys.version_info[:3]))})


def sandbox(hidden: Path) -> Result:
    """Find the sandbox and run a command in it. `hidden`: the folder of the sessions, which no command may read."""
    found = detect([hidden])
    if not found.bash:
        return Result("sandbox_no_bash", "look")
    with tempfile.TemporaryDirectory() as name:
        work, temporary = Path(name).resolve() / "work", Path(name).resolve() / "temporary"
        work.mkdir()
        temporary.mkdir()
        outcome = asyncio.run(run(plan(found, work, temporary, COMMAND, COMMAND_SECONDS)))
    said = outcome.output.text(1000).strip()
    if (outcome.end, outcome.code, said) != ("exit", 0, "ready"):
        return Result("sandbox_failed", "mend", {"kind": found.kind, "reason": detail(said) or outcome.end})
    values = {"kind": found.kind, "detail": detail(found.detail)}
    match found.code:
        case "none":
            return Result("sandbox_none", "look", values)
        case "landlock_network_open":
            return Result("sandbox_network", "look", values)
    return Result("sandbox_good", "good", values)


def ranks() -> Result:
    """Load the rank file, which checks its hash."""
    values = {"file": tokens.RANKS.name, "hash": tokens.RANKS_SHA256[:12]}
    try:
        tokens.encoding()
    except tokens.RanksDamaged:
        return Result("ranks_damaged", "mend", values)
    return Result("ranks_good", "good", values)


def phoenix(environment: Mapping[str, str]) -> Result:
    """See whether something listens where Phoenix would. It sends nothing, and Phoenix need not be there."""
    named = environment.get("PHOENIX_COLLECTOR_ENDPOINT", "").strip()
    try:
        parts = urlsplit(named or PHOENIX)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host, port = "", 0
    if not host:
        return Result("phoenix_address", "look")
    # The host and the port only: the rest of an address may hold a password.
    values = {"address": detail(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")}
    try:
        socket.create_connection((host, port), timeout=PHOENIX_SECONDS).close()
    except (OSError, UnicodeError):
        return Result("phoenix_silent", "look", values) if named else Result("phoenix_absent", "good", values)
    return Result("phoenix_there", "good", values)
