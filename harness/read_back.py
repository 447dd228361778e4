"""Tells whether a tool result is what was read back from the file of a whole result. Pure: it reads no file.

It is judged by both ends: the call names the folder, and most of the result is what such a file holds. The one alone
would let any command with the folder's name in it count, the other every second look at the same source.
"""

import json
import posixpath
import re
from collections.abc import Iterable

from harness.messages import ToolCall
from harness.result_events import FOLDER

# What `search`, `grep -n` and `cat -n` put in front of a line.
_NUMBER = re.compile(r"(?:[^:\n]*:)?\s*\d+[:\t-] ?")
# Longer lines may come in part; shorter ones count only whole, for a few characters stand in any text.
_LONG = 200
_CUT = "…"
# So many files are looked at where the call does not say which; a turn must not cost more the longer a session is.
_MOST_FILES = 200


def read_back(call: ToolCall | None, text: str, files: Iterable[tuple[str, str]]) -> str:
    """Return the file from which most of `text`, the result of `call`, was read; "" where it was not read back.

    files: the paths where whole results lie, and these; the newest first. Where several were read together, the one
    that gave most is returned.
    """
    said = _said(call.arguments) if call else ""
    if FOLDER not in said:
        return ""
    left = _lines(text)
    whole = _size(left)
    most, first = 0, ""
    for file, kept in sorted(files, key=lambda each: posixpath.basename(each[0]) not in said)[:_MOST_FILES]:
        known = set(kept.splitlines())
        rest = [line for line in left if not _stands_in(line, known, kept)]
        if (found := _size(left) - _size(rest)) > most:
            most, first = found, file
        left = rest
        if 2 * _size(left) <= whole:
            return first
    return ""


def _said(arguments: str) -> str:
    """Return what a call says, with no letter written as an escape; "" where it has nothing to do with the folder."""
    if not (FOLDER in arguments or "\\" in arguments):
        return ""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


def _lines(text: str) -> list[str]:
    """Return the lines of a result, without the last one in brackets, in which the tools say what they left out."""
    lines = text.splitlines()
    noted = len(lines) > 1 and lines[-1].startswith("[") and lines[-1].endswith("]")
    return lines[:-1] if noted else lines


def _stands_in(line: str, known: set[str], text: str) -> bool:
    if line in known:
        return True
    bare = _NUMBER.sub("", line, count=1) if _NUMBER.match(line) else line
    return bare in known or (len(bare) > _LONG and bare.strip(_CUT) in text)


def _size(lines: Iterable[str]) -> int:
    return sum(map(len, lines))
