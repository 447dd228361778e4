"""Spells out what cannot be seen in a text that somebody is to accept: nothing may hide in it or below it."""

import re

# They take room or change what stands before them, but show nothing of their own.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
# More line breaks, or more blanks, in a row are told by their number.
_BREAKS = re.compile(r"\n{4,}")
_BLANKS = re.compile(r"[ \t]{9,}")


def plain(text: str) -> str:
    """Return `text` with each sign spelled out that is not seen, and long runs of nothing as what they are.

    A zero-width space becomes six characters, a backslash and u200b; nine line breaks become one and "[\\n × 9]".
    """
    seen = "".join(sign if _is_seen(sign) else _spelled(sign) for sign in text.replace("\r\n", "\n"))
    seen = "\n".join(line.rstrip(" \t") for line in seen.split("\n"))
    seen = _BREAKS.sub(lambda run: f" [\\n × {len(run[0])}]\n", seen)
    return _BLANKS.sub(lambda run: f" [␣ × {len(run[0])}] ", seen)


def _is_seen(sign: str) -> bool:
    if sign in "\n\t":
        return True
    varies = "\u180b" <= sign <= "\u180f" or "\ufe00" <= sign <= "\ufe0f" or "\U000e0100" <= sign <= "\U000e01ef"
    return sign.isprintable() and sign not in _BLANK and not varies


def _spelled(sign: str) -> str:
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"
