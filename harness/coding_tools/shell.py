"""The tool `bash`: a command in the workspace, confined by the sandbox, with limits on time and output.

Knows nothing of who allows it. When it returns or is cancelled, no process of the command is left.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from pathlib import Path

from harness.messages import clean
from harness.sandbox import windows_command
from harness.sandbox.command import Outcome, run
from harness.sandbox.detect import Sandbox, plan
from harness.sandbox.limits import MAX_MEMORY, MAX_OUTPUT, MAX_PROCESSES
from harness.tools import Arguments, Tool, ToolError
from harness.workspace import Workspace

DEFAULT_SECONDS = 20
MAX_SECONDS = 120
MAX_CHARS = 20_000
# Linux takes no argument over 128 KiB.
_COMMAND_BYTES = 100_000
_NO_BASH = (
    "Commands cannot run here: there is no bash ({reason}). On Windows start the lab inside WSL, or install Git Bash. "
    "`read`, `write`, `edit` and `search` work: go on with them, and tell the user what to run."
)


def bash_tool(workspace: Workspace, sandbox: Sandbox) -> Tool:
    """Return the tool `bash` for one workspace."""

    async def run_bash(arguments: Arguments) -> str:
        seconds = min(max(1, arguments.get("timeout", DEFAULT_SECONDS)), MAX_SECONDS)
        return await bash(workspace, sandbox, arguments["command"], seconds)

    timeout = {"type": "integer", "description": f"seconds, default {DEFAULT_SECONDS}, at most {MAX_SECONDS}"}
    properties = {"command": {"type": "string"}, "timeout": timeout}
    parameters = {"type": "object", "properties": properties, "required": ["command"]}
    description = "Run a bash command in the workspace. No network, no input; nothing runs on after it."
    return Tool("bash", description, parameters, run_bash, asks=True, preview=lambda given: clean(given["command"]))


async def bash(workspace: Workspace, sandbox: Sandbox, command: str, seconds: int) -> str:
    """Run `command` for at most `seconds`; return its output and, in brackets, its exit code.

    Raises ToolError for a command that could not run, or that had to be stopped; its output is in the text.
    """
    return _result(await run_command(workspace, sandbox, command, seconds), seconds)


async def run_command(workspace: Workspace, sandbox: Sandbox, command: str, seconds: int) -> Outcome:
    """Run `command` for at most `seconds`; return what it printed and how it ended. ToolError: it could not run."""
    if not sandbox.bash:
        raise ToolError(_NO_BASH.format(reason=sandbox.detail))
    text = clean(command)
    if not text.strip() or "\0" in text or len(text.encode()) > _COMMAND_BYTES:
        raise ToolError("The command is empty, too long, or holds a NUL character. Put long text in a file first.")
    root = workspace.root.resolve()
    if os.name == "nt":
        return await windows_command.run(sandbox.bash, text, root, seconds)
    temporary = tempfile.mkdtemp()
    try:
        return await run(plan(sandbox, root, Path(temporary).resolve(), text, seconds))
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True))


def _result(outcome: Outcome, seconds: int) -> str:
    output = outcome.output.text(MAX_CHARS)
    shown = output if not output or output.endswith("\n") else output + "\n"
    if outcome.end == "exit":
        ended = f"Exit code {outcome.code}" if outcome.code >= 0 else f"Ended by signal {_signal(-outcome.code)}"
        return f"{shown}[{'' if output else 'No output. '}{ended}]"
    raise ToolError(f"{shown}[{_stopped(outcome, seconds)}]")


def _stopped(outcome: Outcome, seconds: int) -> str:
    """Return why the command was stopped, and what to do. Nothing of it runs on, except perhaps when it was lost."""
    match outcome.end:
        case "time":
            return f"Stopped after {seconds} s. Run less, or pass a `timeout` of up to {MAX_SECONDS}."
        case "output":
            return f"Stopped: it printed over {MAX_OUTPUT:,} bytes. Filter the output (head, grep)."
        case "processes":
            return f"Stopped: it had over {MAX_PROCESSES} processes at once. Start fewer."
        case "memory":
            return f"Stopped: it held over {MAX_MEMORY // 2**30} GiB of memory. Work on less at once."
        case _:
            return "Stopped: its supervisor was ended from outside. Try again, or another way."


def _signal(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)
