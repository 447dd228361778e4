"""Geometry of the charts: sizes in, SVG attributes out. Widths are percentages, so that text is never stretched.

Knows no colours and no words; a template draws what stands here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.sizes import Category
from web.figures import Border, Part
from web.units import Unit, part_value

# A narrower part has no room for its letter, in percent of the bar.
LETTER_PERCENT = 5.0
PLOT_HEIGHT = 130
# More bars than this are no longer told apart; the newest are drawn.
MOST_BARS = 60
# A window of so many thresholds would press a gauge flat, so its edge is not drawn.
MOST_WINDOW = 5


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a lying bar; `x` and `width` in percent."""

    category: Category
    x: str
    width: str
    middle: str
    letter: bool


@dataclass(frozen=True, slots=True)
class Gauge:
    """A measure against a limit, in percent: what fits, what lies past the line, and where the line is.

    marks: shares of the window, each with its place; whole: the right edge is the window's.
    """

    fill: str
    line: str
    line_at: float
    past_x: str
    past_width: str
    marks: tuple[tuple[int, str], ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class BorderBar:
    """One measuring at a task's end: its bar, the part past the budget, and the budget's line."""

    border: Border
    x: str
    width: str
    middle: str
    start: str
    end: str
    y: str
    height: str
    past_y: str
    past_height: str
    line: str


def stack(parts: Sequence[Part], scale: Literal["true", "equal"], unit: Unit = "characters") -> list[Segment]:
    """Lay the parts side by side, to scale or all of them equally wide; empty parts have no place.

    Of a part only characters and the estimate are known, so the estimate stands in for what is reported.
    """
    there = [part for part in parts if part.size.chars]
    weights = [part_value(part.size, unit) if scale == "true" else 1 for part in there]
    total, x, segments = sum(weights), 0.0, []
    for part, weight in zip(there, weights, strict=True):
        width = 100 * weight / total
        wide = width >= LETTER_PERCENT
        segments.append(Segment(part.category, percent(x), percent(width), percent(x + width / 2), wide))
        x += width
    return segments


def gauge(measured: int, limit: int, window: int | None = None, shares: Sequence[int] = ()) -> Gauge:
    """Draw a measure against a limit that stands at four fifths, or further left when the measure is past it.

    window: the right edge where it fits there, with a mark at each of its `shares`, in percent. Where the measure goes
    past it, its end is a mark too.
    """
    fitting = window if window and limit <= window <= limit * MOST_WINDOW else None
    whole = max(fitting or limit * 1.25, measured * 1.04, 1)
    fits, line, past = 100 * min(measured, limit) / whole, 100 * limit / whole, 100 * measured / whole
    shares = shares if whole == fitting else (*shares, 100)
    marks = tuple((each, percent(each * fitting / whole)) for each in shares) if fitting else ()
    edges = (percent(fits), percent(line), line, percent(line), percent(max(0.0, past - line)))
    return Gauge(*edges, marks, whole=whole == fitting)


def border_bars(found: Sequence[Border]) -> tuple[list[BorderBar], int]:
    """Draw the measurings against their budgets; also return the value at the upper edge."""
    shown = found[-MOST_BARS:]
    top = round_up(max((max(border.measured, border.budget) for border in shown), default=0))
    slot, bars = 100 / max(len(shown), 6), []
    for number, border in enumerate(shown):
        x = number * slot
        fits = min(border.measured, border.budget)
        low, line, high = (height(value, top) for value in (fits, border.budget, border.measured))
        edges = (percent(x + slot * 0.2), percent(slot * 0.6), percent(x + slot / 2), percent(x), percent(x + slot))
        past = (pixels(high), pixels(max(0.0, low - high)))
        bars.append(BorderBar(border, *edges, pixels(low), pixels(PLOT_HEIGHT - low), *past, pixels(line)))
    return bars, top


def round_up(value: int) -> int:
    """Return the next value that makes a good upper edge: round_up(6144) -> 7000, round_up(0) -> 1."""
    if value <= 0:
        return 1
    step = 10 ** max(0, len(str(value)) - 1)
    half = max(1, step // 2)
    return -(-value // half) * half


def percent(value: float) -> str:
    """Return an SVG length in percent: percent(12.345) -> "12.35%"."""
    return f"{value:.2f}%"


def pixels(value: float) -> str:
    """Return an SVG length in pixels: pixels(3.14159) -> "3.1"."""
    return f"{value:.1f}"


def height(value: float, top: int) -> float:
    """Return how far below the plot's upper edge a value lies, in pixels."""
    return PLOT_HEIGHT * (1 - value / top)
