"""Geometry of the chart over turns: one bar a model call, compactions between them, limits as lines over them.

Knows no colours and no words; a template draws what stands here. Widths are percentages, heights are pixels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.compaction_events import ContextMeasured
from harness.records import CallRecord
from harness.replay import State
from harness.sizes import Category
from web.chart import MOST_BARS, height, percent, pixels, round_up
from web.figures import parts_of
from web.units import Unit, call_value, part_value

LETTER_HEIGHT = 13
# A line that lies so many times above the highest bar would press the bars flat, so it is not drawn.
MOST_ABOVE = 4


@dataclass(frozen=True, slots=True)
class Block:
    """One part of a standing bar; `y` and `height` in pixels of the plot."""

    category: Category
    y: str
    height: str
    middle: str
    letter: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """One model call. `mark`: the number of the compaction that lies directly behind it, or 0; `undone`: taken back.

    blocks: its parts, or one for the whole where the parts are not known; none where nothing is.
    """

    call: CallRecord
    x: str
    width: str
    middle: str
    end: str
    blocks: tuple[Block, ...]
    mark: int
    undone: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A limit over neighbouring calls for which it was the same. last: it goes on to the newest call that has one."""

    value: int
    start: str
    end: str
    y: str
    last: bool


@dataclass(frozen=True, slots=True)
class Turns:
    """The bars of the model calls. top: the value at the upper edge. hidden: older calls that are not drawn.

    limits: what a strategy measured before each call, by its number. thresholds, windows: their lines, none where
    characters are drawn or where they would lie far above every bar (above).
    """

    bars: tuple[Bar, ...]
    top: int
    hidden: int
    scroll: int
    limits: Mapping[int, ContextMeasured]
    thresholds: tuple[Line, ...] = ()
    windows: tuple[Line, ...] = ()
    above: bool = False

    @property
    def newest(self) -> ContextMeasured:
        """Return the newest measuring; there must be one."""
        return self.limits[max(self.limits)]

    @property
    def steady(self) -> ContextMeasured | None:
        """Return any measuring, where threshold and window were the same before all calls; else None."""
        return self.newest if len({(each.threshold, each.window) for each in self.limits.values()}) == 1 else None

    @property
    def past(self) -> int:
        """Return before how many calls a strategy found the request past its threshold."""
        return sum(1 for each in self.limits.values() if each.estimate > each.threshold)


def turns(state: State, unit: Unit = "characters", limits: Mapping[int, ContextMeasured] | None = None) -> Turns:
    """Draw one bar for each model call, the newest `MOST_BARS` of them, and the compactions between them.

    limits: what a strategy measured before the calls, by their numbers.
    """
    calls, limits = state.calls[-MOST_BARS:], limits or {}
    highest = max((call_value(call, unit) or 0 for call in calls), default=0)
    thresholds = {call: each.threshold for call, each in limits.items()}
    windows = {call: each.window for call, each in limits.items() if each.window}
    drawn = [
        {call: value for call, value in values.items() if unit != "characters" and value <= highest * MOST_ABOVE}
        for values in (thresholds, windows)
    ]
    top = round_up(max([highest, *drawn[0].values(), *drawn[1].values()]))
    slot = 100 / max(len(calls), 6)
    marks = {call: made for made in state.compactions for call in made.event.calls[-1:]}
    bars = []
    for number, call in enumerate(calls):
        x = number * slot
        edges = (percent(x + slot * 0.14), percent(slot * 0.72), percent(x + slot / 2), percent(x + slot))
        values = [(part.category, part_value(part.size, unit)) for part in parts_of(call.parts)]
        if unit == "reported":
            values = [("summary", call_value(call, unit) or 0)]
        made = marks.get(call.call)
        mark = (made.event.number, bool(made.undone)) if made else (0, False)
        bars.append(Bar(call, *edges, _blocks(values, top), *mark))
    hidden, scroll = len(state.calls) - len(calls), max(0, len(calls) - 14)
    lines = [_lines(values, [call.call for call in calls], slot, top) for values in drawn]
    return Turns(tuple(bars), top, hidden, scroll, limits, *lines, above=len(drawn[0]) < len(thresholds))


def _blocks(values: Sequence[tuple[Category, int]], top: int) -> tuple[Block, ...]:
    blocks, below = [], 0
    for category, value in values:
        if not value:
            continue
        y, bottom = height(below + value, top), height(below, top)
        tall = bottom - y >= LETTER_HEIGHT
        blocks.append(Block(category, pixels(y), pixels(bottom - y), pixels((y + bottom) / 2), tall))
        below += value
    return tuple(blocks)


def _lines(values: Mapping[int, int], calls: Sequence[int], slot: float, top: int) -> tuple[Line, ...]:
    """Draw `values`, by number of a call, over the calls' places; neighbours with one value share a line."""
    runs: list[list[int]] = []
    for place, call in enumerate(calls):
        if call not in values:
            continue
        if runs and runs[-1][1] == place and runs[-1][2] == values[call]:
            runs[-1][1] = place + 1
        else:
            runs.append([place, place + 1, values[call]])
    return tuple(
        Line(value, percent(start * slot), percent(end * slot), pixels(height(value, top)), last=end == runs[-1][1])
        for start, end, value in runs
    )
