"""The events of a sub-agent: that it begins, and whatever happens in it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStarted:
    """A sub-agent begins the work of the call `call_id`, with the session's model, fault and settings of this moment.

    child: its number in the session, from 1. role: what it is told to be.
    """

    task: int
    child: int
    call_id: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEvent:
    """Something that happened in sub-agent `child`. `event` is one of `INSIDE`; its numbers are the sub-agent's own."""

    child: int
    event: Any


# What can happen in a sub-agent. It has one task, no sub-agents and no checkpoints, and nobody changes its settings.
INSIDE = frozenset(
    {
        "InstructionsSet", "TaskStarted", "ModelCallStarted", "ModelCallEnded", "ModelCallFailed", "ApprovalRequested",
        "ApprovalAnswered", "ToolStarted", "ToolEnded", "HookFailed", "TaskEnded", "ContextMeasured", "ResultsDecided",
        "SummaryCallStarted", "SummaryCallEnded", "ContextCompacted", "CompactionRefused", "StageEnded",
    }
)  # fmt: skip
