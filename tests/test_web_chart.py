"""The geometry of the charts: shares add up, nothing is clipped, overflow is drawn past its line."""

from hypothesis import given
from hypothesis import strategies as st

from harness.records import CallRecord
from harness.replay import State
from harness.sizes import CATEGORIES, Size
from tests.web_session import compacted_session
from web.chart import MOST_BARS, PLOT_HEIGHT, border_bars, gauge, round_up, stack, turns
from web.figures import Border, parts_of

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
    state.calls = [CallRecord(n, n, 1, "turn", {"user": Size(n, n)}) for n in range(1, MOST_BARS + 6)]
    drawn = turns(state)
    assert len(drawn.bars) == MOST_BARS and drawn.hidden == 5 and drawn.bars[-1].call.call == MOST_BARS + 5


def test_a_border_past_its_budget_has_two_parts() -> None:
    found = [Border(1, 0, 1500, "characters", "none"), Border(2, 3000, 1500, "characters", "past")]
    [empty, past], top = border_bars(found)
    assert top == 3000 and float(empty.height) == 0 and float(empty.past_height) == 0
    assert float(past.height) == float(past.past_height) == PLOT_HEIGHT / 2
    assert past.line == past.y == "65.0"


def test_no_calls_draw_nothing() -> None:
    assert turns(State()).bars == () and stack(parts([0] * 6), "true") == [] and border_bars([]) == ([], 1)
