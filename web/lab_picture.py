"""Geometry of a lab's drawing: shares in, SVG attributes out. It measures nothing, so it shows no number.

Knows no colours; a template draws what stands here.
"""

from dataclasses import dataclass

from harness.discovery import DrawnBar, Lab
from harness.sizes import CATEGORIES, Category
from web.chart import percent
from web.guide import in_language
from web.words import Language

# A narrower part has no room for its letter, in percent of the drawing: the guide's column is narrow.
LETTER_PERCENT = 8.0


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a bar; `x`, `width` and `middle` in percent of the drawing. leaves, cut: as in the lab's file."""

    category: Category
    x: str
    width: str
    middle: str
    letter: bool
    leaves: bool
    cut: bool


@dataclass(frozen=True, slots=True)
class PictureBar:
    """One bar, and what to see in it."""

    caption: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class PictureView:
    """A lab's drawing. categories, leaves, cuts: what its key has to explain."""

    bars: tuple[PictureBar, ...]
    categories: tuple[Category, ...]
    leaves: bool
    cuts: bool


def picture_of(lab: Lab, language: Language) -> PictureView:
    """Return the lab's drawing with its captions in this language; the longest bar takes the whole width."""
    bars = lab.picture.bars
    strokes = [stroke for bar in bars for stroke in bar.parts]
    widest = max((sum(stroke.width for stroke in bar.parts) for bar in bars), default=1)
    return PictureView(
        tuple(PictureBar(in_language(bar.caption, language), _pieces(bar, widest)) for bar in bars),
        tuple(each for each in CATEGORIES if any(stroke.part == each for stroke in strokes)),
        leaves=any(stroke.leaves for stroke in strokes),
        cuts=any(stroke.cut for stroke in strokes),
    )


def _pieces(bar: DrawnBar, widest: int) -> tuple[Piece, ...]:
    x, pieces = 0.0, []
    for stroke in bar.parts:
        width = 100 * stroke.width / widest
        edges = (percent(x), percent(width), percent(x + width / 2))
        pieces.append(Piece(stroke.part, *edges, width >= LETTER_PERCENT, stroke.leaves, stroke.cut))
        x += width
    return tuple(pieces)
