"""The tool `read`: part of a text file, or a folder's entries, never more than fits a reply."""

import asyncio
import difflib
import io
import os
from itertools import islice
from pathlib import Path
from typing import TextIO

from harness.coding_tools.text_file import SAMPLE_BYTES, NotText, detect_encoding, open_regular
from harness.messages import clean
from harness.tools import Arguments, Tool, ToolError
from harness.workspace import Workspace, is_protected

MAX_LINES = 2_000
MAX_CHARS = 40_000
# Up to this size the lines are counted to the end; above it, reading starts nowhere beyond SCAN characters.
COUNTED_BYTES = 8_000_000
SCAN_CHARS = 64_000_000
_ENTRIES = 200
_NAMES_SEARCHED = 5_000
_PIECE = 65_536


def read_tool(workspace: Workspace) -> Tool:
    """Return the tool `read` for one workspace."""

    async def run(arguments: Arguments) -> str:
        offset = max(1, arguments.get("offset", 1))
        limit = min(max(1, arguments.get("limit", MAX_LINES)), MAX_LINES)
        return await asyncio.to_thread(read, workspace, arguments["path"], offset, limit)

    properties = {
        "path": {"type": "string"},
        "offset": {"type": "integer", "description": "first line, from 1"},
        "limit": {"type": "integer", "description": "number of lines"},
    }
    parameters = {"type": "object", "properties": properties, "required": ["path"]}
    return Tool("read", "Read a text file, or list a folder. A cut is marked in the last line.", parameters, run)


def read(workspace: Workspace, path: str, offset: int, limit: int) -> str:
    """Return lines `offset`.. of a file (1-based), then a bracketed line if anything must be said.

    Raises ToolError where there is no such text.
    """
    found, size = workspace.resolve(path), 0
    try:
        if found.is_dir():
            return _listing(workspace, found)
        with open_regular(found) as stream:
            size = os.fstat(stream.fileno()).st_size
            sample = stream.read(SAMPLE_BYTES)
            encoding = detect_encoding(sample, whole=len(sample) < SAMPLE_BYTES)
            stream.seek(len(encoding.mark))
            text = io.TextIOWrapper(stream, encoding.name, errors="replace", newline="\n")
            shown, notes = _lines(text, clean(path), offset, limit, size)
        if "\0" in shown:
            raise NotText("binary")
    except FileNotFoundError:
        raise ToolError(missing(workspace, path)) from None
    except NotText:
        message = f"`{clean(path)}` is a binary file of {size:,} bytes. Use `bash` to look at it (file, xxd, python)."
        raise ToolError(message) from None
    except OSError as error:
        raise ToolError(f"`{clean(path)}` cannot be read: {error.strerror or error}. Try another file.") from None
    notes += [encoding.note()] if encoding.note() else []
    if "\r\n" in shown:
        shown = shown.replace("\r\n", "\n")
        notes.append("Lines end in CR LF; `edit` keeps that.")
    gap = "\n" if shown and not shown.endswith("\n") else ""
    return f"{shown}{gap}[{' '.join(notes)}]" if notes else shown


def missing(workspace: Workspace, path: str) -> str:
    """Return the text for a path that does not exist, with the names that come nearest."""
    root = workspace.root.resolve()
    names: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not is_protected(name))
        names += [workspace.name_of(Path(folder, name)) for name in sorted(files) if not is_protected(name)]
        if len(names) > _NAMES_SEARCHED:
            break
    same = [name for name in names if name.rpartition("/")[2] == path.rpartition("/")[2]]
    near = list(dict.fromkeys(same + difflib.get_close_matches(path, names, 3, 0.5)))[:3]
    advice = f"Near it: {', '.join(f'`{name}`' for name in near)}." if near else "List the folder with `read` first."
    return f"`{clean(path)}` does not exist. {advice}"


def _listing(workspace: Workspace, folder: Path) -> str:
    with os.scandir(folder) as entries:
        found = sorted(
            (clean(entry.name) + ("/" if entry.is_dir() else ""))
            for entry in islice(entries, _NAMES_SEARCHED)
            if not is_protected(entry.name)
        )
    lines = found[:_ENTRIES]
    if len(found) > _ENTRIES:
        lines.append(f"[{len(found) - _ENTRIES:,} more entries; list one of the folders, or use `search`.]")
    return "\n".join(lines) or f"[The folder `{workspace.name_of(folder)}` is empty.]"


def _lines(text: TextIO, path: str, offset: int, limit: int, size: int) -> tuple[str, list[str]]:
    before = _skip(text, offset - 1)
    shown: list[str] = []
    room, pending = MAX_CHARS, ""
    while before == offset - 1:
        pending = text.readline(MAX_CHARS + 1)
        if not pending or len(shown) == limit or len(pending) > room:
            break
        shown.append(pending)
        room -= len(pending)
    if not size:
        return "", ["The file is empty."]
    if not shown and pending:
        note = f"Line {offset} has more than {MAX_CHARS:,} characters; the rest of it is not shown."
        return pending[:MAX_CHARS], [f"{note} Use `bash` (cut -c) for it, or read on with offset={offset + 1}."]
    if not shown and size > COUNTED_BYTES:
        raise ToolError(f"Line {offset} of `{path}` is too far in, or not there. Use `bash` (sed -n) for it.")
    if not shown:
        raise ToolError(f"`{path}` has only {before:,} lines. Read with a smaller `offset`.")
    if not before and not pending:
        return "".join(shown), []
    return "".join(shown), [_range(text, before, before + len(shown), size, pending)]


def _range(text: TextIO, before: int, last: int, size: int, pending: str) -> str:
    """Say which lines were shown. pending: what was read of the line after `last`, "" at the file's end."""
    if not pending:
        return f"Lines {before + 1}-{last} of {last:,} are shown."
    if size > COUNTED_BYTES:
        shown = f"Lines {before + 1}-{last} of a file of {size:,} bytes are shown."
    else:
        _skip(text, 0 if pending.endswith("\n") else 1)
        shown = f"Lines {before + 1}-{last} of {last + 1 + _skip(text, None):,} are shown."
    return f"{shown} Read on with offset={last + 1}."


def _skip(text: TextIO, lines: int | None) -> int:
    """Read past `lines` lines (all, for None); return how many there were. A last line may lack its end."""
    passed, scanned, inside = 0, 0, False
    while (lines is None or passed < lines) and scanned < SCAN_CHARS:
        piece = text.readline(_PIECE)
        if not piece:
            break
        scanned += len(piece)
        inside = not piece.endswith("\n")
        passed += not inside
    return passed + inside
