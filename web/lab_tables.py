"""Tables in a lab's text that the code computes, so that the text cannot say what the code does not do.

A line `[table: NAME]` stands for one of them.
"""

import re
from collections.abc import Callable

from harness.thresholds import RESERVE, SHARE_PERCENT, reserve_threshold
from web.words import Words

_LINE = re.compile(r"^\[table: (?P<name>[a-z_]+)\]$", re.MULTILINE)
# Windows in tokens that the table of thresholds shows; None is one that nobody knows.
WINDOWS = (8_192, 32_768, 128_000, 200_000, 1_000_000)


def filled(text: str, words: Words) -> str:
    """Return a lab's text with its tables in the place of the lines that name them. KeyError: there is none."""
    return _LINE.sub(lambda found: _TABLES[found["name"]](words), text)


def _thresholds(words: Words) -> str:
    """Return, for some windows, both halves of lab 08's formula and the threshold that comes of them."""
    heads = [str(words.t(f"thresholds.{name}")) for name in ("window", "share", "rest", "threshold")]
    lines = [_row(heads), _row(["---:"] * len(heads))]
    for window in WINDOWS:
        rest = f"{window - RESERVE:,}" if window > RESERVE else "–"
        share, limit = window * SHARE_PERCENT // 100, reserve_threshold(window, RESERVE)
        lines.append(_row([f"{window:,}", f"{share:,}", rest, f"**{limit:,}**"]))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


_TABLES: dict[str, Callable[[Words], str]] = {"thresholds": _thresholds}
