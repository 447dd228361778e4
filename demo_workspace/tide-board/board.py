"""The text of the tide board: the next high water, from the day's list."""


def next_high(times: list[int], now: int) -> int | None:
    """Return the first high water that is not over, in minutes since midnight; None where there is none today."""
    return next((time for time in sorted(times) if time >= now), None)


def line(times: list[int], now: int) -> str:
    """Return what the board shows: line([290, 1035], 300) -> "High water 17:15"."""
    time = next_high(times, now)
    return "No high water today" if time is None else f"High water {time // 60:02}:{time % 60:02}"
