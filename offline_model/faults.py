"""The faults that a test or a curious person can switch on. Knows what they are called and when one is due,
not how it is acted out.
"""

from typing import Literal, get_args

HttpFault = Literal["key", "model_missing", "rate_limit", "server_error"]
ReplyFault = Literal["stall", "cut", "empty", "slow"]
SummaryFault = Literal[
    "summary_empty", "summary_truncated", "summary_tools", "summary_long", "summary_stubborn", "summary_bare",
    "summary_error", "summary_slow", "summary_thinking", "summary_constraint",
]  # fmt: skip
FaultName = HttpFault | ReplyFault | SummaryFault
FAULTS: tuple[str, ...] = get_args(HttpFault) + get_args(ReplyFault) + get_args(SummaryFault)


class Faults:
    """The fault that is switched on, if any, and for how many more requests."""

    def __init__(self, setting: str = "") -> None:
        self._name, self._left = "", -1
        self.set(setting)

    def set(self, setting: str) -> None:
        """Switch a fault on: "rate_limit" for good, "rate_limit:2" for two requests, "" for none.

        Raises ValueError when there is no such fault.
        """
        name, _, times = setting.partition(":")
        if name and name not in FAULTS:
            raise ValueError(f"there is no fault `{name}`; choose one of: {', '.join(FAULTS)}")
        if times and not times.isdigit():
            raise ValueError(f"`{setting}`: how often must be a whole number, as in `{name}:2`")
        self._name, self._left = name, int(times) if times else -1

    def take(self, *, summary: bool) -> str:
        """Return the fault that is due for this request, or "". Counts it."""
        if self._left == 0 or not (name := due(self._name, summary=summary)):
            return ""
        self._left -= 1 if self._left > 0 else 0
        return name


def due(name: str, *, summary: bool) -> str:
    """Return the fault if it strikes this request, else "": some strike summaries only."""
    return "" if name.startswith("summary_") and not summary else name
