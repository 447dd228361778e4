"""Everything that happens in a session, one frozen class an event. The screen, the context and the trace
are three readings of this list. Knows nothing of where events are stored or how they are shown.
`seconds` are seconds of wall time. The other units are those of `harness.sizes`.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from harness.check_events import CheckStarted, Verified
from harness.checkpoint_events import CheckpointSaved, StageEnded, TaskResumed
from harness.child_events import ChildEvent, ChildStarted
from harness.compaction_events import (
    BoundaryMeasured,
    CompactionAsked,
    CompactionRefused,
    CompactionUndone,
    ContextCompacted,
    ContextMeasured,
    SummaryAnswered,
    SummaryCallEnded,
    SummaryCallStarted,
    SummaryProposed,
)
from harness.messages import ToolCall
from harness.projection import Part
from harness.result_events import ResultsDecided
from harness.session_events import (
    ExtensionsChanged,
    FaultChosen,
    InstructionsSet,
    ModelChosen,
    SessionForked,
    SessionImported,
    SessionNamed,
    SessionStarted,
    SettingChanged,
    Ticked,
    WorkspaceTrusted,
)
from harness.sizes import Category, Size, Usage
from harness.tool_events import ApprovalAnswered, ApprovalRequested, ToolEnded, ToolStarted


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted:
    """A user request. `sample` is the id of the sample that it came from, or empty."""

    task: int
    text: str
    language: str
    sample: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallStarted:
    """One turn's request goes out: how large it is, by category, and the digest of its bytes.

    projected: how its messages are made of the context's, where extensions changed them on their way, else ().
    """

    call: int
    task: int
    turn: int
    messages: int
    parts: dict[Category, Size]
    digest: str
    projected: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallEnded:
    """The reply. `finish` is the provider's reason, or "stopped". `marks` are codes for what was unusual."""

    call: int
    task: int
    turn: int
    text: str
    calls: tuple[ToolCall, ...]
    reasoning: str
    finish: str
    usage: Usage
    seconds: float
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallFailed:
    """No reply. `kind` is a code; `detail` is the provider's own words and never enters the context."""

    call: int
    task: int
    kind: str
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpAdded:
    """An extension keeps the agent working with a message of its own. It starts no task."""

    task: int
    extension: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFailed:
    """An extension's hook raised; the task goes on with the history unchanged."""

    task: int
    extension: str
    hook: str
    detail: str


EndReason = Literal["answered", "stopped", "step_limit", "repeated_call", "failed", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """The task is over, for a reason that the catalogue explains."""

    task: int
    reason: EndReason
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of a reply as it streams. Shown, never journalled: ModelCallEnded holds the whole."""

    call: int
    text: str
    kind: Literal["text", "reasoning"] = "text"


Event = (
    SessionStarted
    | ModelChosen
    | InstructionsSet
    | SettingChanged
    | ExtensionsChanged
    | FaultChosen
    | SessionNamed
    | SessionForked
    | SessionImported
    | Ticked
    | WorkspaceTrusted
    | TaskStarted
    | ModelCallStarted
    | ModelCallEnded
    | ModelCallFailed
    | ApprovalRequested
    | ApprovalAnswered
    | ToolStarted
    | ToolEnded
    | FollowUpAdded
    | HookFailed
    | TaskEnded
    | BoundaryMeasured
    | CompactionAsked
    | SummaryCallStarted
    | SummaryCallEnded
    | SummaryProposed
    | SummaryAnswered
    | ContextCompacted
    | CompactionRefused
    | CompactionUndone
    | ContextMeasured
    | ResultsDecided
    | StageEnded
    | CheckpointSaved
    | TaskResumed
    | ChildStarted
    | ChildEvent
    | CheckStarted
    | Verified
)
EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
