"""What a page needs to know of a session. `harness.session.Session` is one; a test folds events into another."""

from collections.abc import Sequence
from typing import Literal, Protocol

from harness.discovery import Lab
from harness.events import ApprovalRequested, SummaryProposed
from harness.hooks import Compacting, Extension
from harness.journal import Recorded
from harness.problems import Problem
from harness.replay import State


class Shown(Protocol):
    """A session as the pages read it, or one of its sub-agents.

    waiting, asking: the call that waits for a person, and the number of the sub-agent whose call it is, or 0.
    partial: number, text and thoughts of the reply that streams now. committed: the journal number up to
    which events may be shown. failure: why nothing more can be recorded, or None.
    """

    @property
    def id(self) -> str: ...
    @property
    def lab(self) -> Lab: ...
    @property
    def state(self) -> State: ...
    @property
    def records(self) -> Sequence[Recorded]: ...
    @property
    def status(self) -> Literal["idle", "running", "waiting"]: ...
    @property
    def waiting(self) -> ApprovalRequested | None: ...
    @property
    def asking(self) -> int: ...
    @property
    def proposed(self) -> SummaryProposed | None: ...
    @property
    def partial(self) -> tuple[int, str, str] | None: ...
    @property
    def strategy(self) -> Compacting | None: ...
    @property
    def extensions(self) -> tuple[Extension, ...]: ...
    @property
    def committed(self) -> int: ...
    @property
    def failure(self) -> Problem | None: ...
