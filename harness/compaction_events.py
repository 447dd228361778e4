"""The events of a compaction, from the measuring to its end. `seconds` are seconds of wall time."""

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.sizes import Size, Usage

Unit = Literal["characters", "tokens"]
Scope = Literal["finished tasks", "request"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMeasured:
    """A strategy looked at the whole request before a turn. All figures are tokens.

    estimate: what the strategy goes by. exact, simple: by our tokenizer, and characters divided by four, each of what
    was not reported yet. reported: what the provider counted for call `call`, whose messages are the first of this
    request; None where no report holds. threshold: the strategy acts above it. window: None where nobody knows it.
    """

    task: int
    strategy: str
    estimate: int
    exact: int
    simple: int
    reported: int | None
    call: int
    threshold: int
    window: int | None


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
    extra: dict[str, Any] = field(default_factory=dict)


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
    pinned: those before the cut point that stay word for word, such as the running task's request.
    scope: what the strategy measures: the finished tasks, or the whole request.
    measured, measured_after: what the strategy counted, before and after, in `unit`.
    beside: what stands behind the summary, put there by the harness word for word. demands: the user's, that are in it.
    before, after: the whole request.
    calls: the summary calls; usage, seconds: theirs together. shortened: "" or "asked" or "cut".
    written: what the model wrote, where a person changed it before it took effect, else "".
    focus: what a person asked to keep above all, else "".
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
    written: str = ""
    focus: str = ""
    pinned: tuple[int, ...] = ()
    scope: Scope = "finished tasks"
    beside: str = ""
    demands: tuple[str, ...] = ()

    @property
    def left(self) -> float:
        """Return what is left of `measured`, in its unit, by the share of the request that stays.

        What was measured may be the provider's count, and of what stays there is none yet.
        """
        return self.measured * self.after.tokens / max(1, self.before.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionAsked:
    """A person asked to compact now. `keep`: how many of the newest tasks stay word for word.

    scope: of the strategy; one that measures the whole request keeps by its own rule.
    """

    task: int
    focus: str
    keep: int
    scope: Scope = "finished tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryProposed:
    """A summary waits for a person, who may change it before it takes effect. `seconds`: how long it waits.

    call: the summary call that wrote it.
    """

    call: int
    task: int
    preface: str
    text: str
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswered:
    """What became of a proposed summary; no answer in time, or a stop, means no.

    text: as it stood then. changed: a person had changed it.
    """

    call: int
    task: int
    text: str
    used: bool
    by: Literal["person", "timeout", "stop"]
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionUndone:
    """A person took back compaction `number`, the newest in force: what it removed stands in the context again.

    before, after: the whole request.
    """

    number: int
    before: Size
    after: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRefused:
    """A compaction was wanted and did not take effect; the context is as it was. reason, trigger: codes.

    failures: how many attempts in a row had failed by then; the breaker opens at `breaker.MOST`.
    """

    task: int
    strategy: str
    reason: str
    detail: str = ""
    trigger: str = "task ended"
    failures: int = 0
