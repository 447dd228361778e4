"""What the rows of measurings, decisions and undoings show beyond their event."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness import events as e
from harness.breaker import MOST_FAILURES, TOLD
from harness.checks import Verdict, verdict
from harness.compaction_events import Scope
from harness.journal import Recorded
from harness.messages import AssistantMessage
from harness.replay import State
from harness.result_events import Decision
from web.details import key_of

# What would be refused for the same reason if it were tried again.
_FINAL = ("not_smaller", "nothing_to_cut", "broken_pairs", "running_task", "little_gain", *TOLD.values())


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided about one result. name, key: of its call. task: in which it came."""

    decision: Decision
    name: str
    key: str
    task: int


@dataclass(frozen=True, slots=True)
class DecidedDetail:
    """The results whose place in the request another text takes, that are sent as they came again, or for which no
    file could be written.
    """

    results: tuple[Decided, ...]

    @property
    def replaced(self) -> int:
        """Return for how many results another text stands in the request."""
        return sum(1 for each in self.results if each.decision.text)


@dataclass(frozen=True, slots=True)
class MeasuredDetail:
    """How the figure came about that a strategy went by. simple: it goes by characters divided by four."""

    simple: bool
    past: bool


@dataclass(frozen=True, slots=True)
class RefusedDetail:
    """Why a compaction did not take effect, as a code. again: it is tried again. stopped: with this failure nothing is
    compacted by itself any more. most: after so many in a row.
    """

    reason: str
    again: bool
    stopped: bool
    most: int = MOST_FAILURES


@dataclass(frozen=True, slots=True)
class CheckpointDetail:
    """How many rounds stand word for word in what a checkpoint keeps; and whether it is elsewhere, with its files."""

    rounds: int
    elsewhere: bool


@dataclass(frozen=True, slots=True)
class EndDetail:
    """Whether a task that has ended has a checkpoint to go on from, files included; and what its checks say of it."""

    goes_on: bool
    checked: Verdict


@dataclass(frozen=True, slots=True)
class UndoneDetail:
    """What the strategy measures whose compaction was taken back."""

    scope: Scope


def checkpoint_detail(recorded: Recorded, state: State, records: Sequence[Recorded]) -> CheckpointDetail:
    """Build what the row of a CheckpointSaved shows."""
    there = state.entries_at(recorded.seq)
    rounds = sum(isinstance(entry.message, AssistantMessage) for entry in there)
    return CheckpointDetail(rounds, _is_elsewhere(recorded.seq, records))


def end_detail(recorded: Recorded, event: e.TaskEnded, state: State, records: Sequence[Recorded]) -> EndDetail:
    """Build what the row of a TaskEnded shows."""
    checked = verdict(state, event.task, recorded.seq, answered=event.reason == "answered")
    if event.reason != "interrupted":
        return EndDetail(False, checked)
    own = (seq for seq, saved in state.checkpoints if saved.task == event.task and saved.workspace)
    newest = max((seq for seq in own if seq < recorded.seq), default=0)
    return EndDetail(newest > 0 and not _is_elsewhere(newest, records), checked)


def _is_elsewhere(seq: int, records: Sequence[Recorded]) -> bool:
    # A file that is imported holds no files of a workspace.
    return any(isinstance(records[place].event, e.SessionImported) for place in range(seq, len(records)))


def decided_detail(event: e.ResultsDecided, state: State, records: Sequence[Recorded]) -> DecidedDetail:
    """Build what the row of a ResultsDecided shows."""
    found = []
    for decision in event.decisions:
        # Decided anew, only what changes is told.
        if decision.text or decision.detail or event.anew:
            entry = state.results[decision.call_id]
            ended = records[entry.seq - 1].event
            assert isinstance(ended, e.ToolEnded), "a result comes with its call's end"
            found.append(Decided(decision, ended.name, key_of(ended.arguments), entry.task))
    return DecidedDetail(tuple(found))


def refused_detail(event: e.CompactionRefused) -> RefusedDetail:
    """Build what the row of a CompactionRefused shows."""
    at_start = event.reason == "nothing_to_cut" and event.strategy != "task boundary"
    stopped = event.failures >= MOST_FAILURES
    # Who asks by hand can always ask again.
    again = event.reason not in _FINAL and (not stopped or event.trigger in ("by hand", "overflow"))
    return RefusedDetail("cut_at_start" if at_start else event.reason, again, stopped)


def measured_detail(event: e.ContextMeasured) -> MeasuredDetail:
    """Build what the row of a ContextMeasured shows."""
    return MeasuredDetail(event.estimate != event.exact, event.estimate > event.threshold)
