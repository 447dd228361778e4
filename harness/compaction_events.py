"""The events of a compaction, from the measuring to its end. `seconds` are seconds of wall time."""

from dataclasses import dataclass
from typing import Any, Literal

from harness.sizes import Size, Usage

Unit = Literal["characters", "tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryMeasured:
    """A strategy looked at the context and decided. `outcome` is a code: "none", "within", "past"."""

    task: int
    strategy: str
    unit: Unit
    measured: int
    budget: int
    outcome: Literal["none", "within", "past"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCallStarted:
    """The model is asked for a summary. `messages` is the whole request, since it is no fold of the history.

    `clipped` counts the characters that were left out of what the summariser reads.
    """

    call: int
    task: int
    attempt: int
    messages: tuple[dict[str, Any], ...]
    max_tokens: int
    clipped: int
    size: Size
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCallEnded:
    """What came back for a summary call, before anything takes effect."""

    call: int
    task: int
    attempt: int
    text: str
    finish: str
    usage: Usage
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted:
    """From here on the messages before `cut` are replaced by `summary`.

    removed, kept: journal numbers of the context's entries before and from the cut point.
    measured, measured_after: what the strategy counted, and the summary in its place, in `unit`.
    before, after: the whole request.
    calls: the summary calls; usage, seconds: theirs together. shortened: "" or "asked" or "cut".
    """

    number: int
    task: int
    strategy: str
    trigger: str
    unit: Unit
    budget: int
    measured: int
    measured_after: int
    before: Size
    after: Size
    cut: int
    removed: tuple[int, ...]
    kept: tuple[int, ...]
    preface: str
    summary: str
    shortened: Literal["", "asked", "cut"]
    calls: tuple[int, ...]
    usage: Usage
    seconds: float
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRefused:
    """A compaction was wanted and did not take effect; the context is as it was. `reason` is a code."""

    task: int
    strategy: str
    reason: str
    detail: str = ""
