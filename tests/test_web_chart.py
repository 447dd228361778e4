"""The geometry of the charts: shares add up, nothing is clipped, overflow is drawn past its line."""

from hypothesis import given
from hypothesis import strategies as st

from harness.events import ContextMeasured
from harness.records import CallRecord
from harness.replay import State
from harness.sizes import CATEGORIES, Size
from tests.web_session import compacted_session
from web.chart import MOST_BARS, MOST_WINDOW, PLOT_HEIGHT, border_bars, gauge, round_up, stack
from web.figures import Border, parts_of
from web.turns_chart import MOST_ABOVE, turns

sizes = st.lists(st.integers(0, 10**7), min_size=6, max_size=6)


def number(length: str) -> float:
    return float(length.rstrip("%"))


def parts(numbers: list[int]) -> list:
    return parts_of({name: Size(n, n) for name, n in zip(CATEGORIES, numbers, strict=True)})


@given(sizes)
def test_the_parts_of_a_bar_fill_it_in_order_and_to_scale(numbers: list[int]) -> None:
    segments = stack(parts(numbers), "true")
    assert [s.category for s in segments] == [c for c, n in zip(CATEGORIES, numbers, strict=True) if n]
    for segment in segments:
        share = 100 * numbers[CATEGORIES.index(segment.category)] / sum(numbers)
        assert abs(number(segment.width) - share) < 0.01 and segment.letter == (share >= 5)
    assert not segments or abs(sum(number(s.width) for s in segments) - 100) < 0.1


@given(sizes)
def test_equal_widths_show_the_small_parts(numbers: list[int]) -> None:
    assert len({s.width for s in stack(parts(numbers), "equal")}) <= 1


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_measure_past_its_limit_is_drawn_past_the_line(measured: int, limit: int) -> None:
    drawn = gauge(measured, limit)
    fill, line, past = number(drawn.fill), number(drawn.line), number(drawn.past_width)
    assert 0 <= fill <= line + 0.01 and line + past <= 100.02
    assert (past > 0) == (measured > limit) or measured - limit < max(measured, limit) / 5000


@given(st.integers(0, 10**9))
def test_the_upper_edge_is_above_and_near(value: int) -> None:
    top = round_up(value)
    assert top >= max(value, 1) and (value < 2 or top < value * 2)


def test_known_edges() -> None:
    assert [round_up(n) for n in (0, 6144, 1500, 9999, 7)] == [1, 6500, 1500, 10000, 7]


def test_every_call_is_a_bar_as_high_as_its_request_and_the_cut_stands_behind_the_summary_call() -> None:
    session = compacted_session()
    drawn = turns(session.state)
    assert [bar.call.call for bar in drawn.bars] == [1, 2, 3, 4] and drawn.hidden == 0
    assert [bar.mark for bar in drawn.bars] == [0, 0, 0, 1]
    assert drawn.bars[3].call.purpose == "summary"
    for bar in drawn.bars:
        height = sum(float(block.height) for block in bar.blocks)
        assert abs(height - PLOT_HEIGHT * bar.call.size.chars / drawn.top) < 0.5


def test_very_many_calls_are_not_all_drawn_and_the_chart_says_how_many() -> None:
    state = State()
    state.calls = [CallRecord(n, n, 1, "turn", {"user": Size(n, n)}, Size(n, n)) for n in range(1, MOST_BARS + 6)]
    drawn = turns(state)
    assert len(drawn.bars) == MOST_BARS and drawn.hidden == 5 and drawn.bars[-1].call.call == MOST_BARS + 5


def test_a_border_past_its_budget_has_two_parts() -> None:
    found = [Border(1, 0, 1500, "characters", "none"), Border(2, 3000, 1500, "characters", "past")]
    [empty, past], top = border_bars(found)
    assert top == 3000 and float(empty.height) == 0 and float(empty.past_height) == 0
    assert float(past.height) == float(past.past_height) == PLOT_HEIGHT / 2
    assert past.line == past.y == "65.0"


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**7))
def test_a_window_is_the_right_edge_where_it_fits_and_the_shares_lie_in_order(
    measured: int, limit: int, window: int
) -> None:
    drawn = gauge(measured, limit, window, (50, 70, 85))
    fits = limit <= window <= MOST_WINDOW * limit
    assert drawn.whole == (fits and measured * 1.04 <= window) and bool(drawn.marks) == fits
    places = [number(x) for _, x in drawn.marks]
    assert places == sorted(places) and all(0 <= place <= 100 for place in places)
    if drawn.whole:
        assert abs(number(drawn.line) - 100 * limit / window) < 0.01 and places == [50, 70, 85]
    assert number(drawn.line) <= 100.01 and number(drawn.fill) <= number(drawn.line) + 0.01


def measured(threshold: int, window: int | None, estimate: int = 5) -> ContextMeasured:
    counted = {"estimate": estimate, "exact": estimate, "simple": estimate, "reported": None, "call": 0}
    return ContextMeasured(task=1, strategy="threshold", threshold=threshold, window=window, **counted)


def called(*purposes: str) -> State:
    state = State()
    size = {"user": Size(400, 100)}
    state.calls = [CallRecord(n, n, 1, purpose, size, Size(400, 100)) for n, purpose in enumerate(purposes, 1)]
    return state


def test_a_limit_is_a_line_over_the_calls_that_it_held_for() -> None:
    state = called("turn", "turn", "summary", "turn", "turn")
    limits = {1: measured(150, 200), 2: measured(150, 200), 4: measured(150, 200), 5: measured(120, None, 121)}
    drawn = turns(state, "estimated", limits)
    assert drawn.top == 200 and drawn.past == 1 and drawn.newest == limits[5] and not drawn.above
    slot = 100 / 6
    edges = [(line.value, round(number(line.start), 1), round(number(line.end), 1)) for line in drawn.thresholds]
    assert edges == [(150, 0, round(2 * slot, 1)), (150, 50, round(4 * slot, 1)), (120, 66.7, 83.3)]
    assert [line.last for line in drawn.thresholds] == [False, False, True]
    assert [float(line.y) for line in drawn.thresholds] == [PLOT_HEIGHT / 4, PLOT_HEIGHT / 4, PLOT_HEIGHT * 0.4]
    assert [line.value for line in drawn.windows] == [200, 200], "where nobody knew the window there is no line"


def test_tokens_are_no_line_among_characters_and_a_far_line_does_not_press_the_bars_flat() -> None:
    near, far = measured(150, 200), measured(MOST_ABOVE * 100 + 1, 10**6)
    drawn = turns(called("turn", "turn"), "characters", {1: near, 2: near})
    assert (drawn.thresholds, drawn.windows, drawn.top) == ((), (), 400)
    drawn = turns(called("turn", "turn"), "estimated", {1: far, 2: far})
    assert (drawn.thresholds, drawn.windows, drawn.top, drawn.above) == ((), (), 100, True)
    drawn = turns(called("turn", "turn"), "estimated", {1: near, 2: far})
    assert [line.value for line in drawn.thresholds] == [150] and drawn.above


def test_no_calls_draw_nothing() -> None:
    assert turns(State()).bars == () and stack(parts([0] * 6), "true") == [] and border_bars([]) == ([], 1)
