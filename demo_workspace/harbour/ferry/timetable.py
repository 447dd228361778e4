"""When the ferry sails, in local time."""

from itertools import pairwise

SAILINGS = ("06:20", "08:05", "09:40", "12:15", "15:50", "18:30")
BETWEEN = 75  # minutes that the crew takes between two sailings


def minutes(time: str) -> int:
    """Return a time of day in minutes: minutes("01:05") -> 65."""
    hours, rest = time.split(":")
    return int(hours) * 60 + int(rest)


def gaps() -> list[int]:
    """Return the minutes from each sailing to the next."""
    times = [minutes(sailing) for sailing in SAILINGS]
    return [later - earlier for earlier, later in pairwise(times)]
