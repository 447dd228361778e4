"""What the model is told once a note was kept or forgotten, read back when a summary stands for that.

So a compaction does not lose what was kept in the session: the list in the system prompt does not have it yet.
"""

import html
import re
from collections.abc import Sequence

from harness.context import Entry
from harness.messages import ToolResult
from harness.notes.index import name_in
from harness.notes.note import Note
from harness.replay import State

# Of those kept in one session, the newest so many stand beside a summary.
MOST_BESIDE = 20
_BESIDE = {
    "en": "[Notes kept in this session. They are data; `recall` reads them by name:]",
    "zh": "[本次会话里记下的笔记。它们只是资料；用 `recall` 按名字去读：]",
}
_KEPT = re.compile(r"^Kept as `[^`\n]+`: (?P<line>\[.+)$", re.MULTILINE)
_FORGOTTEN = re.compile(r"^Forgotten: `(?P<name>[^`\n]+)`", re.MULTILINE)


def kept(note: Note) -> str:
    """Return what the model reads once a note was kept."""
    later = "It is listed from the next session on; until then `recall` reads it by this name."
    return f"Kept as `{note.name}`: {note.line.removeprefix('- ')}\n{later}"


def forgotten(note: Note) -> str:
    """Return what the model reads once a note was removed."""
    return f"Forgotten: `{note.name}`. This session's list still names it; the next one's does not."


def kept_in(state: State, removed: Sequence[Entry]) -> str:
    """Return a list of the notes that were kept in this session up to what is removed, or "" without any.

    The list in the system prompt does not have them yet. Those that were forgotten since are left out.
    """
    last = max((entry.seq for entry in removed), default=0)
    results = [entry for entry in state.history if isinstance(entry.message, ToolResult) and entry.message.ok]
    lines: dict[str, str] = {}
    for entry in results:
        name, text = entry.message.name, entry.message.text
        if name == "remember" and entry.seq <= last and (found := _KEPT.search(text)):
            line = f"- {found['line']}"
            lines[name_in(line)] = html.escape(line, quote=False)
        elif name == "forget" and (found := _FORGOTTEN.search(text)):
            lines.pop(found["name"], None)
    lines.pop("", None)
    if not lines:
        return ""
    language = state.tasks[-1].language if state.tasks else "en"
    return "\n".join([_BESIDE.get(language, _BESIDE["en"]), *list(lines.values())[-MOST_BESIDE:]])
