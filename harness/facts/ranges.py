"""What a text names as a range: "log-1.md … log-3.md" names log-2.md too. Knows nothing of what it is wanted for."""

import re
from collections.abc import Iterator

from harness.facts.patterns import INSIDE

# A range of more names than this is read as its two ends only: one line must not make endless work.
MOST = 100
_NAME_CHARS, _BEFORE_CHARS = 100, 40
_BETWEEN = re.compile(r"[`\"'”’]?\s?(?:…|\.\.\.|–|—|(?<!\w)to(?!\w)|through|[到至])\s?[`\"'“‘]?")
_NAME = re.compile(rf"{INSIDE}++")
_DIGITS = re.compile(r"([0-9]+)")
# "Renamed a-1 to a-3" is no range.
_MOVES = re.compile(r"(?:renam|mov|cop[iy]|chang|replac|改|移|换|复制)[^.,:;，。：；、\n]*$", re.IGNORECASE)


def between(text: str) -> Iterator[str]:
    """Yield the names inside each range of a text, without its two ends: at most `MOST` for each, else none.

    between("read day-08.csv to day-11.csv") -> "day-09.csv", "day-10.csv"
    """
    for match in _BETWEEN.finditer(text):
        begin, end = match.span()
        before = _NAME.match(text[max(0, begin - _NAME_CHARS) : begin][::-1])
        after = _NAME.match(text, end, end + _NAME_CHARS)
        if not before or not after:
            continue
        start = begin - before.end()
        if not _MOVES.search(text[max(0, start - _BEFORE_CHARS) : start]):
            yield from _names(before.group()[::-1], after.group().rstrip(".:-*+~@\\"))


def _names(first: str, last: str) -> Iterator[str]:
    """Yield what stands between two names that differ in one number, the second one's the higher."""
    parts, others = _DIGITS.split(first), _DIGITS.split(last)
    differ = [place for place, (one, other) in enumerate(zip(parts, others, strict=False)) if one != other]
    if len(parts) != len(others) or len(differ) != 1 or not differ[0] % 2:
        return
    low, high = parts[differ[0]], others[differ[0]]
    wide = len(low) if len(low) == len(high) else 0
    # 08 … 12 has names of the same width; 8 … 12 none; 08 … 120 is no range that we know.
    if (not wide and low.startswith("0")) or max(len(low), len(high)) > 9 or not 1 < int(high) - int(low) <= MOST:
        return
    head, tail = "".join(parts[: differ[0]]), "".join(parts[differ[0] + 1 :])
    for number in range(int(low) + 1, int(high)):
        yield f"{head}{number:0{wide}}{tail}"
