"""A sub-agent as its row, its list of rows and its page show it. Renders nothing."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from harness import events as e
from harness.children import ChildRecords, spent_inside
from harness.discovery import Lab
from harness.hooks import Compacting, Extension
from harness.problems import Problem
from harness.replay import Child, State
from harness.spent import Spent
from web.figures import planned
from web.shown import Shown

# About so many rows stand inside the row of a call while its sub-agent works, and once it has ended when somebody asks
# for them; a page of its own has them all.
ROWS = 15


@dataclass(frozen=True, slots=True)
class ChildShown:
    """A sub-agent as `web.shown.Shown` wants it: its own state and events, as far as those of its session are shown.

    until: the last journal number of the session that counts, 0 for all that may be shown.
    """

    whole: Shown
    child: Child
    until: int = 0
    partial: None = None
    proposed: None = None
    asking: Literal[0] = 0

    @property
    def number(self) -> int:
        """Return its number in the session."""
        return self.child.event.child

    @property
    def id(self) -> str:
        """Return where its addresses begin, behind `/s/`."""
        return f"{self.whole.id}/children/{self.number}"

    @property
    def lab(self) -> Lab:
        """Return the session's lab."""
        return self.whole.lab

    @property
    def state(self) -> State:
        """Return what its own events add up to."""
        return self.child.state

    @property
    def records(self) -> ChildRecords:
        """Return its own events."""
        return ChildRecords(self.whole.records, self.child)

    @property
    def committed(self) -> int:
        """Return the number of its newest event that may be shown."""
        return bisect_right(self.child.seqs, self.until or self.whole.committed)

    @property
    def failure(self) -> Problem | None:
        """Return why nothing more can be recorded, or None."""
        return self.whole.failure

    @property
    def strategy(self) -> Compacting | None:
        """Return how its context is compacted: as the session's is, but nothing acts between its tasks: it has one.

        None once it has ended: nothing is compacted any more.
        """
        found = None if self.ended else planned(self.whole)
        return self.whole.strategy if found and found[0].scope == "request" else None

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """Return those of the session that may still act in it: none once it has ended."""
        return () if self.ended else self.whole.extensions

    @property
    def waiting(self) -> e.ApprovalRequested | None:
        """Return its call that waits for a person, or None."""
        return self.whole.waiting if self.whole.asking == self.number else None

    @property
    def status(self) -> Literal["idle", "running", "waiting"]:
        """Return what it does now."""
        if self.whole.status == "idle" or self.ended:
            return "idle"
        return "waiting" if self.waiting else "running"

    @property
    def ended(self) -> bool:
        """Return whether it has ended, so that no request of its own will follow."""
        return bool(self.state.tasks) and not self.state.running_task()

    @property
    def looks(self) -> str:
        """Return a code for what it does or how it ended."""
        ended = self.state.tasks[-1].ended if self.state.tasks else ""
        if self.failure or self.status == "idle":
            return ended or "interrupted"
        return self.status


@dataclass(frozen=True, slots=True)
class ChildrenView:
    """How many sub-agents a session had, and what its own calls, theirs, and all of them came to."""

    count: int
    own: Spent
    inside: Spent

    @property
    def all(self) -> Spent:
        """Return what all calls came to."""
        return self.own + self.inside


def children_view(state: State) -> ChildrenView | None:
    """Return what the calls of a session and of its sub-agents came to; None where it had none."""
    return ChildrenView(len(state.children), state.spent, spent_inside(state)) if state.children else None


def child_of_call(session: Shown, event: e.Event, until: int = 0) -> ChildShown | None:
    """Return the sub-agent that works, or worked, for the call of this event, or None. until: as for `ChildShown`."""
    child = session.state.child_of.get(getattr(event, "call_id", ""))
    return ChildShown(session, child, until) if child and child.seq <= (until or session.committed) else None


def child_number(session: Shown, number: int) -> ChildShown | None:
    """Return the sub-agent with this number, or None."""
    child = session.state.children.get(number)
    return ChildShown(session, child) if child else None
