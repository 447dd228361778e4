"""The formulas of labs 08 to 10, with the figures that the articles give, and at their edges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.thresholds import (
    margin_threshold,
    percent_threshold,
    reserve_threshold,
    share,
    summary_room,
    warning,
)

TOKENS = st.integers(1, 3_000_000)


@pytest.mark.parametrize(
    ("window", "expected"),
    [(200_000, 167_232), (1_000_000, 850_000), (32_768, 27_852), (8_192, 6_963), (1, 1), (32_769, 1)],
)
def test_lab_08_takes_the_smaller_of_share_and_rest(window: int, expected: int) -> None:
    assert reserve_threshold(window, 32_768) == expected


def test_of_a_guessed_window_no_share_is_taken_and_a_trigger_counts_first() -> None:
    assert reserve_threshold(1_000_000, 32_768, known=False) == 967_232
    assert reserve_threshold(8_192, 32_768, known=False) == 6_963, "the reserve does not fit: the share alone"
    assert reserve_threshold(None, 1_000) == 7_192, "an unknown window is the careful default"
    assert reserve_threshold(200_000, 32_768, trigger=5_000) == 5_000


@given(window=TOKENS, reserve=TOKENS, known=st.booleans())
def test_a_threshold_is_never_below_one_and_leaves_room(window: int, reserve: int, known: bool) -> None:
    for limit in (reserve_threshold(window, reserve, known=known), margin_threshold(window, reserve, reserve)):
        assert 1 <= limit <= max(1, window - 1)
    assert 1 <= percent_threshold(window, 70) <= max(1, window)


def test_the_summary_gets_four_fifths_of_the_reserve() -> None:
    assert summary_room(32_768) == 26_214
    assert summary_room(32_768, 200_000) == 26_214
    assert summary_room(32_768, 4_000) == 1_600, "a reserve larger than the window could not be called with"
    assert summary_room(0) == 1


def test_lab_09_takes_both_margins_off_the_window() -> None:
    assert margin_threshold(200_000, 20_000, 13_000) == 167_000
    assert margin_threshold(200_000, 20_000, 3_000) == 177_000
    assert margin_threshold(8_192, 20_000, 13_000) == 5_462, "a third at most"
    assert margin_threshold(6_000, 1_200, 620) == 4_180 and margin_threshold(4_000, 1_200, 620) == 2_667


def test_lab_10_warns_in_time() -> None:
    assert percent_threshold(128_000, 70) == 89_600
    assert [warning(tokens, 1_000) for tokens in (0, 499, 500, 700, 849, 850, 2_000)] == [0, 0, 50, 70, 70, 85, 85]
    assert warning(900, None) == 0 and share(900, None) is None and share(500, 1_000) == 50
