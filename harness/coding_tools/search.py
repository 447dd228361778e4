"""The tool `search`: a regular expression over the workspace's text files.

The search runs in a process of its own, since some patterns never end and nothing else can cut them off.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any

from harness.coding_tools.reading import missing
from harness.messages import clean
from harness.sandbox.command import bare_environment, module_command
from harness.tools import Arguments, Tool, ToolError
from harness.workspace import Workspace

SECONDS = 10
MAX_CHARS = 20_000
_PATTERN_CHARS = 1_000


def search_tool(workspace: Workspace) -> Tool:
    """Return the tool `search` for one workspace."""

    async def run(arguments: Arguments) -> str:
        return await search(workspace, arguments["pattern"], arguments.get("path") or ".")

    properties = {
        "pattern": {"type": "string", "description": "Python regular expression, matched line by line"},
        "path": {"type": "string", "description": "file or folder; default: all"},
    }
    parameters = {"type": "object", "properties": properties, "required": ["pattern"]}
    return Tool("search", "Find lines in text files.", parameters, run)


async def search(workspace: Workspace, pattern: str, path: str, *, seconds: float = SECONDS) -> str:
    """Return the lines that match, as `path:line: text`, then a bracketed line that says what was left out.

    Raises ToolError for a pattern or path that cannot be searched. What was found in time is returned.
    """
    if not pattern or len(pattern) > _PATTERN_CHARS:
        raise ToolError(f"The pattern must have 1 to {_PATTERN_CHARS:,} characters. Send another one.")
    start = workspace.resolve(path)
    if not await asyncio.to_thread(start.exists):
        raise ToolError(await asyncio.to_thread(missing, workspace, path))
    order = {"root": str(workspace.root.resolve()), "start": str(start), "pattern": clean(pattern), "seconds": seconds}
    lines, last = await _worker(order, seconds)
    if "error" in last:
        raise ToolError(f"The pattern is no regular expression ({last['error']}). Escape it, or send another one.")
    found = "\n".join([*lines, f"[{_closing(len(lines), last, seconds)}]"])
    return clean(found)


async def _worker(order: dict[str, Any], seconds: float) -> tuple[list[str], dict[str, Any]]:
    """Run the worker; return the lines that it found and its last word, {} when it was cut off."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *module_command("harness.coding_tools.search_worker"),
        stdin=pipe,
        stdout=pipe,
        env=bare_environment(),
        limit=1 << 20,
    )
    assert process.stdin and process.stdout
    lines: list[str] = []
    last: dict[str, Any] = {}
    room = MAX_CHARS
    try:
        async with asyncio.timeout(seconds):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            async for line in process.stdout:
                told = json.loads(line)
                if "line" not in told:
                    last = told
                elif (room := room - len(told["line"])) < 0:
                    last = {"full": True}
                    break
                else:
                    lines.append(told["line"])
    except TimeoutError:
        pass
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.stdin.close()
        # Killed, it cannot keep us waiting: the pipe is read to its end so that it closes.
        await asyncio.shield(_drain(process))
    return lines, last


async def _drain(process: asyncio.subprocess.Process) -> None:
    assert process.stdout
    while await process.stdout.read(65_536):
        pass
    await process.wait()


def _closing(count: int, last: dict[str, Any], seconds: float) -> str:
    """Return the last line: how many matches, and whatever was not searched."""
    text = f"{count:,} matching lines." if count else "No line matches."
    if not last:
        return f"{text} Stopped after {seconds:g} s: the pattern or the folder is too much. Narrow one of them."
    if last.get("full"):
        return f"{text} There are more: narrow the pattern or the path."
    skipped = [f"{number} {name}" for name, number in last.get("skipped", {}).items()]
    return f"{text} Not searched: {', '.join(skipped)}." if skipped else text
