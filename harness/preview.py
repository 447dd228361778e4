"""The beginning of a tool result that stands in a request instead of it, and the line under it. Pure.

The same result always gets the same text: nothing in it depends on time or place.
"""

import unicodedata

from harness.messages import ToolCall

# How much of a call's arguments is named again, in characters.
ARGUMENTS_CHARS = 160
_JOINER = "\u200d"
# Nobody writes a character of more parts.
_MOST_PARTS = 32


def shortened(text: str, limit: int, note: str) -> str:
    """Return the first `limit` characters of `text` and a line in brackets: how much that is, and `note`."""
    first = whole_characters(text, limit)
    said = f"[Just the first {len(first):,} of {len(text):,} characters are shown. {note}]"
    return f"{first}\n{said}" if first else said


def whole_note(tool: str, file: str) -> str:
    """Return what stands under the preview of a result that lies in a file."""
    return f"The whole result of `{tool}` is in `{file}`; read the part that you need there (offset, limit)."


def stale_note(tool: str, call: ToolCall | None) -> str:
    """Return what stands under an old result that lies in no file."""
    said = f"This is an old result of `{tool}`"
    if call is None:
        return f"{said}; call it again if you need the rest."
    arguments = " ".join(call.arguments.split())
    first = whole_characters(arguments, ARGUMENTS_CHARS)
    return f"{said}; if you need the rest, call it again: {first}{'' if first == arguments else ' …'}"


def whole_characters(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, never half of an emoji or a letter without its marks.

    whole_characters("ab👩‍🚀", 3) -> "ab"
    """
    end = min(limit, len(text))
    for _ in range(_MOST_PARTS):
        if end in (0, len(text)) or not _joined(text, end):
            break
        end -= 1
    return text[:end]


def _joined(text: str, place: int) -> bool:
    """Whether the characters before and at `place` are read as one."""
    before, after = text[place - 1], text[place]
    if after == _JOINER or before == _JOINER or (before, after) == ("\r", "\n"):
        return True
    if unicodedata.category(after).startswith("M") or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    flags = 0
    while flags < place and "\U0001f1e6" <= text[place - 1 - flags] <= "\U0001f1ff":
        flags += 1
    return flags % 2 == 1 and "\U0001f1e6" <= after <= "\U0001f1ff"
