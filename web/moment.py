"""A session as it was at one moment: the same pages show it, from the events up to then and nothing else."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness import events as e
from harness.children import ChildRecords
from harness.combining import combined, load_all
from harness.context import Entry
from harness.discovery import Lab
from harness.hooks import Compacting, Extension, strategy_of
from harness.journal import Recorded
from harness.replay import State, fold
from harness.session import Session
from web.shown import Shown

# What a person may do beside whatever goes on.
BESIDE = (e.SettingChanged, e.SessionNamed, e.Ticked)
# Where a compaction by hand is under way, outside of any task.
UNDER_WAY = (e.CompactionAsked, e.SummaryCallStarted, e.SummaryCallEnded, e.SummaryProposed, e.SummaryAnswered)


@dataclass(frozen=True, slots=True)
class Moment:
    """A session at journal number `committed`. What went on then is shown as going on; nothing can be answered."""

    id: str
    lab: Lab
    state: State
    records: Sequence[Recorded]
    strategy: Compacting | None = None
    extensions: tuple[Extension, ...] = ()
    partial: None = None
    failure: None = None

    @property
    def status(self) -> Literal["idle", "running"]:
        """Return whether something went on."""
        begun = isinstance(self._newest, UNDER_WAY)
        return "running" if begun or self.state.running_task() else "idle"

    @property
    def waiting(self) -> e.ApprovalRequested | None:
        """Return the call that waited for a person at that very moment, or None."""
        newest = ChildRecords(self.records, self.state.children[self.asking])[-1].event if self.asking else self._newest
        return newest if isinstance(newest, e.ApprovalRequested) else None

    @property
    def asking(self) -> int:
        """Return the number of the sub-agent whose call waited at that very moment, or 0."""
        running = (n for n, child in self.state.children.items() if child.state.running_task())
        records = ((n, ChildRecords(self.records, self.state.children[n])) for n in running)
        return next((n for n, own in records if isinstance(own[-1].event, e.ApprovalRequested)), 0)

    @property
    def proposed(self) -> e.SummaryProposed | None:
        """Return the summary that waited for a person at that very moment, or None."""
        return self._newest if isinstance(self._newest, e.SummaryProposed) else None

    @property
    def _newest(self) -> e.Event:
        """Return the newest event of what went on; a person may change settings beside it."""
        return next(x.event for x in reversed(self.records) if not isinstance(x.event, BESIDE) or x.seq == 1)

    @property
    def committed(self) -> int:
        """Return the journal number of the moment."""
        return len(self.records)


@dataclass(frozen=True, slots=True)
class Step:
    """One place to stop at: a request that goes out, a compaction, the end of a task. `seq`: its journal number."""

    seq: int
    event: e.Event

    @property
    def name(self) -> str:
        """Return the event's class, which the catalogue has words for."""
        return type(self.event).__name__

    @property
    def number(self) -> int:
        """Return the number of the call, the compaction or the task that the event is about."""
        match self.event:
            case e.ModelCallStarted(call=number) | e.SummaryCallStarted(call=number) | e.TaskEnded(task=number):
                return number
            case e.ContextCompacted(number=number) | e.CompactionUndone(number=number):
                return number
        raise TypeError(self.name)


@dataclass(frozen=True, slots=True)
class Steps:
    """Where a page stands between the steps. number: of the step shown, from 1; 0 before the first one.

    first, back, on: journal numbers to go to, 0 where there is none. here: the step shown, None before the first.
    """

    number: int
    count: int
    first: int
    back: int
    on: int
    here: Step | None


STOPS = (e.ModelCallStarted, e.SummaryCallStarted, e.ContextCompacted, e.CompactionUndone, e.TaskEnded)


async def moment_of(session: Session, at: int) -> Moment:
    """Return the session as it was at journal number `at`, from 1 to the last. Folds apart from the event loop."""
    records = session.records[:at]
    # What the session has measured is not counted again.
    known = _measured(session.state)
    inside = {number: _measured(child.state) for number, child in session.state.children.items()}
    numbered = ((each.seq, each.event) for each in records)
    state = await asyncio.to_thread(fold, numbered, known, inside)
    return Moment(session.id, session.lab, state, records, session.strategy, session.extensions)


def moment_from(session: str, lab: Lab, labs: Mapping[str, Lab], records: Sequence[Recorded]) -> Moment:
    """Return a session that is not open, after all of its events. Blocking. LabError: an extension is not there."""
    state = fold((each.seq, each.event) for each in records)
    extensions = load_all(combined(labs, lab, state.extensions))
    return Moment(session, lab, state, records, strategy_of(extensions), extensions)


def _measured(state: State) -> dict[int, Entry]:
    known = (*state.history, *(made.summary for made in state.compactions))
    return {entry.seq: entry for entry in known}


def steps_of(shown: Shown, live: Shown) -> Steps:
    """Return where `shown`, a moment of the session `live` or that session itself, stands between its steps."""
    at = shown.committed
    here = _search(live.records, range(at, 0, -1))
    moment = shown is not live
    # From now one goes back to the last step, but for one that now still shows.
    begin = (here.seq if here else 0) - 1 if moment or (here and here.seq == at) else at
    back = _search(live.records, range(begin, 0, -1))
    on = _search(live.records, range(at + 1, live.committed + 1)) if moment else None
    first = _search(live.records, range(1, at + 1))
    numbers = [step.seq if step else 0 for step in (first, back, on)]
    return Steps(_count(shown.state), _count(live.state), *numbers, here=here)


def _search(records: Sequence[Recorded], numbers: range) -> Step | None:
    found = (records[n - 1] for n in numbers if isinstance(records[n - 1].event, STOPS))
    return next((Step(each.seq, each.event) for each in found), None)


def _count(state: State) -> int:
    undone = sum(1 for made in state.compactions if made.undone)
    return len(state.calls) + len(state.compactions) + undone + sum(1 for task in state.tasks if task.ended)
