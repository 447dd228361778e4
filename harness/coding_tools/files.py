"""The tools `write` and `edit`, and with `read` all tools for files. Knows nothing of who allows a call."""

import asyncio
import difflib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from harness.coding_tools.reading import missing, read_tool
from harness.coding_tools.replacing import replaced
from harness.coding_tools.text_file import NotText, TextFile, load
from harness.messages import clean
from harness.tools import Arguments, Tool, ToolError
from harness.workspace import Workspace

MAX_BYTES = 8_000_000
_DIFF_LINES = 200
_DIFF_CHARS = 12_000
_LINE_CHARS = 1_000
# difflib's time grows with the square of the lines in the worst case.
_COMPARED_LINES = 4_000
_TEXT = {"type": "string"}


def file_tools(workspace: Workspace) -> list[Tool]:
    """Return `read`, `write` and `edit` for one workspace."""
    return [read_tool(workspace), _write_tool(workspace), _edit_tool(workspace)]


def _write_tool(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments) -> str:
        return await asyncio.to_thread(write, workspace, arguments["path"], arguments["content"])

    def preview(arguments: Arguments) -> str:
        path = workspace.resolve(arguments["path"])
        return _diff(workspace.name_of(path), _old_text(path), clean(arguments["content"]))

    parameters = {"type": "object", "properties": {"path": _TEXT, "content": _TEXT}, "required": ["path", "content"]}
    return Tool("write", "Create a file, or replace all of it.", parameters, run, asks=True, preview=preview)


def _edit_tool(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments) -> str:
        return await asyncio.to_thread(edit, workspace, arguments["path"], arguments["old"], arguments["new"])

    def preview(arguments: Arguments) -> str:
        path, file, text = _edited(workspace, arguments["path"], arguments["old"], arguments["new"])
        return _diff(workspace.name_of(path), file.text, text)

    old = {"type": "string", "description": "the exact text, found once in the file"}
    properties = {"path": _TEXT, "old": old, "new": _TEXT}
    parameters = {"type": "object", "properties": properties, "required": ["path", "old", "new"]}
    return Tool("edit", "Replace one passage of a file.", parameters, run, asks=True, preview=preview)


def write(workspace: Workspace, path: str, content: str) -> str:
    """Make `content`, as UTF-8, the whole of a file and say what changed. Raises ToolError."""
    found, text = workspace.resolve(path), clean(content)
    _refuse_special(found, path)
    before = found.stat().st_size if found.exists() else None
    _replace(found, text.encode(), path)
    size = f"{len(text):,} characters, {len(text.splitlines()):,} lines"
    name = workspace.name_of(found)
    if before is None:
        return f"Created `{name}` ({size})."
    return f"Replaced the whole of `{name}` ({before:,} bytes before; now {size})."


def edit(workspace: Workspace, path: str, old: str, new: str) -> str:
    """Replace the one place where `old` stands, keeping encoding and line ends. Raises ToolError."""
    found, file, text = _edited(workspace, path, old, new)
    _replace(found, file.to_bytes(text), path)
    first = next((n for n, (a, b) in enumerate(zip(file.text, text, strict=False)) if a != b), len(text))
    line = text.count("\n", 0, first) + 1
    return (
        f"Edited `{workspace.name_of(found)}` at line {line} ({len(file.text):,} characters before, {len(text):,} now)."
    )


def _edited(workspace: Workspace, path: str, old: str, new: str) -> tuple[Path, TextFile, str]:
    """Return the file's path, the file, and its text after the edit; nothing is written."""
    found, shown = workspace.resolve(path), clean(path)
    try:
        file = load(found, MAX_BYTES)
        return found, file, replaced(file, shown, clean(old), clean(new))
    except FileNotFoundError:
        raise ToolError(f"{missing(workspace, path)} To create it, use `write`.") from None
    except NotText as error:
        raise ToolError(f"`{shown}` is {error} and was not changed. Use `bash` (python) for it.") from None
    except OSError as error:
        raise ToolError(f"`{shown}` cannot be edited: {error.strerror or error}. Nothing was changed.") from None


def _refuse_special(found: Path, path: str) -> None:
    if found.is_dir():
        raise ToolError(f"`{clean(path)}` is a folder. Nothing was written; give the path of a file.")
    if found.exists() and not found.is_file():
        raise ToolError(f"`{clean(path)}` is a pipe or a device. Nothing was written; choose another path.")


def _replace(found: Path, data: bytes, path: str) -> None:
    """Put `data` in place in one step: a reader sees the old file or the new one, never a half."""
    if len(data) > MAX_BYTES:
        raise ToolError(f"The text is over {MAX_BYTES:,} bytes. Nothing was written; write less.")
    temporary = ""
    try:
        found.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(found.stat().st_mode) if found.exists() else 0o644
        handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=found.parent)
        with open(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(mode)
        os.replace(temporary, found)
    except OSError as error:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        message = f"`{clean(path)}` cannot be written: {error.strerror or error}. The file is as it was."
        raise ToolError(f"{message} Choose another path.") from None


def _old_text(path: Path) -> str | None:
    """Return what a file holds now; "" for a new one, None where it cannot be shown."""
    try:
        return load(path, MAX_BYTES).text
    except FileNotFoundError:
        return ""
    except (NotText, OSError):
        return None


def _shown(line: str) -> str:
    # What is left out must be seen by the person who decides.
    return line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]} … ({len(line) - _LINE_CHARS:,} more characters)"


def _diff(name: str, old: str | None, new: str) -> str:
    """Return a unified diff of at most 200 lines, for the person who allows the change."""
    before, after = (old or "").splitlines(), new.splitlines()
    if old is None or len(before) + len(after) > _COMPARED_LINES:
        lines = [f"(the old content of {name} is not compared; the new one begins)", *after]
    else:
        lines = list(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm=""))
    text = "\n".join(map(_shown, lines[:_DIFF_LINES]))
    left = max(0, len(lines) - _DIFF_LINES)
    if len(text) > _DIFF_CHARS or left:
        return f"{text[:_DIFF_CHARS]}\n… ({left:,} more lines, {len(new):,} characters in all)"
    return text or f"(no line of {name} changes)"
