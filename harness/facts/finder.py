"""Finds many short texts in a long one in a single walk. Knows nothing of what they mean.

The method is Aho and Corasick, "Efficient string matching" (1975), over words instead of letters: the work grows
with the length of the texts and not with their number times the length.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.facts.patterns import WORD

_PIECE = re.compile(rf"{WORD}++|\s++|.", re.DOTALL)


def pieces_of(text: str) -> list[str]:
    """Return the words of `text`, its other characters one by one, and each run of blanks as one of them.

    pieces_of("a.py,  4 %") -> ["a", ".", "py", ",", " ", "4", " ", "%"]; pieces_of("不改\n") -> ["不", "改", "\n"]
    """
    return [_blank(piece) if piece.isspace() else piece for piece in _PIECE.findall(text)]


def _blank(piece: str) -> str:
    return "\n" if "\n" in piece else " "


@dataclass(frozen=True, slots=True)
class Hit:
    """Text number `number` stands in the pieces from `begin` up to `end`."""

    number: int
    begin: int
    end: int


class Finder:
    """Looks for `wanted`, lists of pieces, in any other list of pieces."""

    def __init__(self, wanted: Sequence[Sequence[str]]) -> None:
        # One node for each beginning of a wanted text: where the next piece leads, and where to go on when none fits.
        self._next: list[dict[str, int]] = [{}]
        self._ends: list[list[tuple[int, int]]] = [[]]
        for number, pieces in enumerate(wanted):
            self._plant(number, pieces)
        self._other = [0] * len(self._next)
        self._link()

    def hits(self, pieces: Sequence[str]) -> Iterator[Hit]:
        """Yield every place in `pieces` where a wanted text stands."""
        node, following = 0, self._next
        for place, piece in enumerate(pieces):
            while node and piece not in following[node]:
                node = self._other[node]
            node = following[node].get(piece, 0)
            for number, length in self._ends[node]:
                yield Hit(number, place + 1 - length, place + 1)

    def _plant(self, number: int, pieces: Sequence[str]) -> None:
        node = 0
        for piece in pieces:
            following = self._next[node].setdefault(piece, len(self._next))
            if following == len(self._next):
                self._next.append({})
                self._ends.append([])
            node = following
        if node:
            self._ends[node].append((number, len(pieces)))

    def _link(self) -> None:
        """Let each node know the longest other beginning that its end is too, the shorter ones first."""
        waiting = deque(self._next[0].values())
        while waiting:
            node = waiting.popleft()
            for piece, child in self._next[node].items():
                waiting.append(child)
                other = self._other[node]
                while other and piece not in self._next[other]:
                    other = self._other[other]
                self._other[child] = self._next[other].get(piece, 0)
                self._ends[child] += self._ends[self._other[child]]
