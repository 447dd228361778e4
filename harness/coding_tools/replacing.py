"""Finds the one place in a text that an edit means, and says what to do where there is none or several.

Pure: knows nothing of files on disk.
"""

import difflib

from harness.coding_tools.text_file import TextFile
from harness.tools import ToolError

_COMPARED_LINES = 5_000
_LINE_CHARS = 200
_SHOWN_PLACES = 5
_ALIKE_LINES = 200


def replaced(file: TextFile, path: str, old: str, new: str) -> str:
    """Return the file's text with the one `old` replaced by `new`, in the file's own line ends.

    replaced(TextFile("a\\r\\nb\\r\\n", ...), "f", "a\\nb", "c\\nd") -> "c\\r\\nd\\r\\n"
    Raises ToolError when `old` does not occur exactly once, or nothing would change.
    """
    if not old:
        raise ToolError("`old` is empty. Give the text to replace, or use `write` for a new file.")
    if file.has_crlf:
        # The model reads and writes \n; a text that has \r\n already stays as it is.
        old, new = (text.replace("\r\n", "\n").replace("\n", "\r\n") for text in (old, new))
    if old not in file.text and not file.has_crlf and "\r\n" in file.text:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    places = _places(file.text, old)
    if not places:
        raise ToolError(f"`old` does not occur in `{path}`; nothing was changed. {_nearest(file.text, old)}")
    if len(places) > 1:
        count = max(len(places), file.text.count(old))
        where = ", ".join(str(line) for line in places) + (", …" if count > len(places) else "")
        raise ToolError(
            f"`old` occurs {count} times in `{path}` (lines {where}); nothing was changed. "
            "Add lines around it until it is the only one."
        )
    if old == new:
        raise ToolError(f"`old` and `new` are the same, so `{path}` stays as it is. Send what should change.")
    return file.text.replace(old, new)


def _places(text: str, old: str) -> list[int]:
    """Return the line numbers of the first few places, which may overlap."""
    found, start = [], text.find(old)
    while start >= 0 and len(found) < _SHOWN_PLACES:
        found.append(text.count("\n", 0, start) + 1)
        start = text.find(old, start + 1)
    return found


def _alike(line: str, lines: list[str]) -> list[str]:
    """Return at most 200 of the lines, those that share the most words with `line`: comparing all takes seconds."""
    words = set(line.split())
    distinct = dict.fromkeys(each for each in lines if each)
    return sorted(distinct, key=lambda each: -len(words & set(each.split())))[:_ALIKE_LINES]


def _nearest(text: str, old: str) -> str:
    """Return what in the text comes nearest to `old`, with line numbers."""
    lines = [line[:_LINE_CHARS] for line in text.split("\n", _COMPARED_LINES)[:_COMPARED_LINES]]
    wanted = [line.strip()[:_LINE_CHARS] for line in old.splitlines() if line.strip()]
    if not wanted:
        return "It is only blanks; give a line with text."
    bare = [line.strip() for line in lines]
    for number in range(len(bare)):
        if bare[number] != wanted[0]:
            continue
        block = [line for line in bare[number : number + 2 * len(wanted)] if line][: len(wanted)]
        if block == wanted:
            return f"Line {number + 1} differs from it only in blanks or line ends: copy it exactly from `read`."
    near = difflib.get_close_matches(wanted[0], _alike(wanted[0], bare), 3, 0.6)
    if not near:
        return "No line comes near it: `read` the file again."
    shown = "\n".join(f"{bare.index(line) + 1}: {lines[bare.index(line)]}" for line in near)
    return f"The nearest lines are:\n{shown}"
