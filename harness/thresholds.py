"""Where a strategy acts, from the window and what is kept free. Pure; all figures are tokens."""

from harness.model.windows import DEFAULT_WINDOW

# Lab 08 (the article on Ink): what is kept free, the share of a window to act at, the summary's share of the reserve.
RESERVE = 32_768
SHARE_PERCENT = 85
SUMMARY_PERCENT = 80
# Lab 09 (the article on a production module): kept free for the summary, and the margin on top of that.
SUMMARY_RESERVE, MARGIN, MARGIN_BY_HAND = 20_000, 13_000, 3_000
# Lab 10 (the article on prime-agent): warnings, and the share at which it compresses, in percent of the window.
WARNINGS = (50, 70, 85)


def reserve_threshold(window: int | None, reserve: int, *, known: bool = True, trigger: int = 0) -> int:
    """Return above how many tokens lab 08 acts: min(85 % of the window, window − reserve), at least 1.

    reserve_threshold(200_000, 32_768) -> 167_232; reserve_threshold(1_000_000, 32_768) -> 850_000

    trigger: a limit that was set by hand and counts before everything, 0 for none. known: the window is no guess; of a
    guess no share is taken. A window that is not larger than the reserve uses the share alone.
    """
    if trigger > 0:
        return trigger
    size = window or DEFAULT_WINDOW
    share = size * SHARE_PERCENT // 100
    if size <= reserve:
        return max(1, share)
    return min(share, size - reserve) if known and window else size - reserve


def summary_room(reserve: int, window: int | None = None) -> int:
    """Return the most tokens that a summary may have: 80 % of the reserve.

    summary_room(32_768) -> 26_214. Of a small window at most half counts as reserve, or the call could not be made.
    """
    return max(1, min(reserve, (window or 2 * reserve) // 2) * SUMMARY_PERCENT // 100)


def margin_threshold(window: int | None, reserve: int, margin: int) -> int:
    """Return above how many tokens lab 09 acts: window − summary reserve − margin.

    margin_threshold(200_000, 20_000, 13_000) -> 167_000. Of a small window they get at most a third: with more, hardly
    any room would be left above a summary and the newest messages, and every other call would be for a new summary.
    """
    size = window or DEFAULT_WINDOW
    return max(1, size - min(reserve + margin, max(1, size // 3)))


def percent_threshold(window: int | None, percent: int) -> int:
    """Return `percent` of the window: percent_threshold(128_000, 70) -> 89_600."""
    return max(1, (window or DEFAULT_WINDOW) * percent // 100)


def share(tokens: int, window: int | None) -> float | None:
    """Return how full the window is, in percent; None where nobody knows the window."""
    return 100 * tokens / window if window else None


def warning(tokens: int, window: int | None) -> int:
    """Return the highest of `WARNINGS` that is reached, in percent; 0 below the first or without a window."""
    full = share(tokens, window)
    return max((level for level in WARNINGS if full is not None and full >= level), default=0)
