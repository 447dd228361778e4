"""The events of one tool call, from the asking to its result. `seconds` are seconds of wall time."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """The agent waits for a person before it runs this call."""

    task: int
    call_id: str
    name: str
    arguments: str
    preview: str
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered:
    """The answer; not answered in time, or stopped, means no."""

    task: int
    call_id: str
    name: str
    arguments: str
    allowed: bool
    by: Literal["person", "timeout", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A call runs now."""

    task: int
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    """The call's one result, as the model will read it."""

    task: int
    call_id: str
    name: str
    arguments: str
    text: str
    ok: bool
    seconds: float
