"""Runs a command on Windows in Git Bash or WSL, where neither the supervisor nor a sandbox exists. Best effort."""

import asyncio
import os
from pathlib import Path

from harness.sandbox.command import Outcome
from harness.sandbox.excerpt import Excerpt
from harness.sandbox.limits import MAX_OUTPUT

_NAMES = ("SYSTEMROOT", "SYSTEMDRIVE", "PATH", "PATHEXT", "TEMP", "TMP", "COMSPEC", "WINDIR")
_PIECE = 65_536


async def run(bash: str, command: str, folder: Path, seconds: int) -> Outcome:
    """Run `command` in `folder` for at most `seconds`; what it started is ended with it."""
    pipe, closed = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    environment = {name: os.environ[name] for name in _NAMES if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        bash, "-c", command, stdin=closed, stdout=pipe, stderr=asyncio.subprocess.STDOUT, cwd=folder, env=environment
    )
    output = Excerpt()
    try:
        async with asyncio.timeout(seconds):
            assert process.stdout
            while piece := await process.stdout.read(_PIECE):
                output.add(piece)
                if output.size > MAX_OUTPUT:
                    return Outcome(output, "output", 0)
            return Outcome(output, "exit", await process.wait())
    except TimeoutError:
        return Outcome(output, "time", 0)
    finally:
        if process.returncode is None:
            await asyncio.shield(_end(process))


async def _end(process: asyncio.subprocess.Process) -> None:
    quiet = asyncio.subprocess.DEVNULL
    killer = await asyncio.create_subprocess_exec(
        "taskkill", "/F", "/T", "/PID", str(process.pid), stdout=quiet, stderr=quiet
    )
    await killer.wait()
    await process.wait()
