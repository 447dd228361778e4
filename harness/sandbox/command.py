"""Runs one planned command through the supervisor and returns what it printed and how it ended.

Knows nothing of tools or of how the command is confined. Never blocks the event loop.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from harness.sandbox.excerpt import Excerpt
from harness.sandbox.landlock import Rules
from harness.sandbox.limits import MAX_OUTPUT

End = Literal["exit", "time", "output", "processes", "memory", "lost"]

_PIECE = 65_536
# Ending the supervisor sets free what it holds, so it comes last: it gives up by itself after 60 seconds.
_GRACE = 70


@dataclass(frozen=True, slots=True)
class Plan:
    """What the supervisor runs.

    argv, environment, folder: of the command. seconds: its time limit. rules: for Landlock, or None.
    keep_privileges: set where the sandbox program needs them itself.
    """

    argv: list[str]
    environment: dict[str, str]
    folder: str
    seconds: int
    rules: Rules | None = None
    keep_privileges: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended. code: the exit code, negative for a signal; it counts only for the end "exit"."""

    output: Excerpt
    end: End
    code: int


def module_command(name: str) -> list[str]:
    """Return the command line that runs `main()` of the module `name` in a bare Python of its own."""
    root = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path.insert(0, sys.argv[1]); from {name} import main; main()"
    return [sys.executable, "-I", "-S", "-B", "-c", code, root]


def supervisor_command() -> list[str]:
    """Return the supervisor's command line. It reads a plan as one line of JSON, and ends when its input does."""
    return module_command("harness.sandbox.supervisor")


def bare_environment() -> dict[str, str]:
    """Return an environment without anything of ours; Windows can start nothing without its own few names."""
    return {name: os.environ[name] for name in ("SYSTEMROOT", "PATH", "TEMP") if os.name == "nt" and name in os.environ}


async def run(plan: Plan) -> Outcome:
    """Run `plan` to its end. When this returns or is cancelled, no process of it is left."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *supervisor_command(), stdin=pipe, stdout=pipe, stderr=pipe, env=bare_environment(), start_new_session=True
    )
    output = Excerpt()
    try:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(json.dumps(asdict(plan)).encode() + b"\n")
        while piece := await process.stdout.read(_PIECE):
            output.add(piece)
            if output.size > MAX_OUTPUT:
                break
        full = output.size > MAX_OUTPUT
        report = b"" if full else await process.stderr.read()
    finally:
        await _until_done(asyncio.ensure_future(_finish(process)))
    if full:
        return Outcome(output, "output", 0)
    try:
        told = json.loads(report)
        return Outcome(output, told["end"], told["code"])
    except (ValueError, KeyError):
        return Outcome(output, "lost", process.returncode or 0)


async def _finish(process: asyncio.subprocess.Process) -> None:
    """Tell the supervisor to end everything, and wait until it has."""
    assert process.stdin and process.stdout and process.stderr
    process.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            while await process.stdout.read(_PIECE):
                pass
            await process.stderr.read()
            await process.wait()
            return
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _until_done(cleanup: asyncio.Task[None]) -> None:
    """Wait for `cleanup` even when cancelled again meanwhile, and let that cancellation rise afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not cleanup.done():
        try:
            await asyncio.shield(cleanup)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
