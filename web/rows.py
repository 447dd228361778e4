"""The rows of the feed as values: which row an event belongs to, and what its template is given.

One thing is one row: a call's approval, run and result share it, and the newest event decides how it looks.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness import events as e
from harness.context import Entry
from harness.discovery import Preset
from harness.journal import Recorded
from harness.stages import TRIGGER as STAGE
from web.decided import CheckpointDetail, DecidedDetail, EndDetail, MeasuredDetail, RefusedDetail, UndoneDetail
from web.details import CallDetail, CompactionDetail, PartialDetail, telling_line
from web.instructions import InstructionsDetail

Detail = (
    CallDetail | CompactionDetail | PartialDetail | DecidedDetail | MeasuredDetail | RefusedDetail | UndoneDetail
    | CheckpointDetail | EndDetail | InstructionsDetail | Preset
)  # fmt: skip

# The header and the guide show what these say; of sub-agents, the row of the call that they work for.
INVISIBLE = (e.SessionStarted, e.SessionNamed, e.Ticked, e.ChildStarted, e.ChildEvent)
# Where a message stands against the line of the cut point: "" as the line says; still in the context although it
# stands above; or no longer in it although it stands below.
Place = Literal["", "stays", "left"]
# Rows that say that something went wrong are shown in every view.
TROUBLE = (e.ModelCallFailed, e.CompactionRefused, e.HookFailed)
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Cut:
    """The cut point: the compaction that set it, with its journal number, and above which row the line is drawn."""

    seq: int
    above: str
    event: e.ContextCompacted

    @property
    def row_id(self) -> str:
        """Return the id of the compaction's row."""
        return f"row-{self.seq}"

    @property
    def why(self) -> str:
        """Return a code for what triggered it."""
        event = self.event
        past = "why_request" if event.measured > event.budget else "why_other"
        own = {"by hand": "by_hand", "overflow": "why_overflow", STAGE: "why_stage"}
        return own.get(event.trigger, past if event.scope == "request" else "why")


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `entry` is its message in the history, if it has one. live: what it shows is going on now.

    Whether it is still in the context is said by the line of the cut point, and by `place` where that is not enough.
    read: its message as it stands in the context now. sent: what stands in the place of a tool's result, or "".
    until: the last journal number of what a sub-agent did that it shows, 0 for all.
    """

    id: str
    seq: int
    time: float
    event: e.Event
    entry: Entry | None = None
    live: bool = False
    offline: bool = False
    detail: Detail | None = None
    place: Place = ""
    read: Entry | None = None
    sent: str = ""
    until: int = 0

    @property
    def name(self) -> str:
        """Return the class of the event, which names the template too."""
        return type(self.event).__name__

    @property
    def undone(self) -> bool:
        """Whether this is a compaction that a person took back."""
        return isinstance(self.detail, CompactionDetail) and self.detail.undone

    @property
    def sent_line(self) -> str:
        """Return the line that says most of what stands in the place of a tool's result."""
        return telling_line(self.sent)


def is_invisible(event: e.Event) -> bool:
    """Whether an event has no row: also results that were looked at and all left as they are."""
    match event:
        case e.ResultsDecided(decisions=decisions):
            return not event.anew and not any(each.text or each.detail for each in decisions)
        case _:
            return isinstance(event, INVISIBLE)


def row_id(recorded: Recorded) -> str:
    """Return the id of the row that this event belongs to: a ToolEnded of call "a1" -> "tool-call-a1"."""
    match recorded.event:
        case e.ApprovalRequested() | e.ApprovalAnswered() | e.ToolStarted() | e.ToolEnded() | e.ChildStarted():
            return tool_call_id(recorded.event.call_id)
        case e.ModelCallStarted() | e.ModelCallEnded() | e.ModelCallFailed():
            return model_call_id(recorded.event.call)
        case e.SummaryCallStarted() | e.SummaryCallEnded():
            return f"summary-call-{recorded.event.call}"
        case e.CheckStarted() | e.Verified():
            return f"check-{recorded.event.task}-{recorded.event.attempt}"
        case e.SummaryProposed() | e.SummaryAnswered():
            return proposal_id(recorded.event.call)
        case _:
            return f"row-{recorded.seq}"


def model_call_id(call: int) -> str:
    """Return the id of a model call's row."""
    return f"model-call-{call}"


def tool_call_id(call_id: str) -> str:
    """Return the id of a tool call's row."""
    return f"tool-call-{_plain(call_id)}"


def proposal_id(call: int) -> str:
    """Return the id of the row of a summary that a person may change."""
    return f"proposal-{call}"


def at(records: Sequence[Recorded], seq: int) -> Recorded:
    """Return the record with journal number `seq`. KeyError: there is none."""
    place = bisect_left(records, seq, key=lambda recorded: recorded.seq)
    if place == len(records) or records[place].seq != seq:
        raise KeyError(seq)
    return records[place]


def earlier(records: Sequence[Recorded], recorded: Recorded) -> list[Recorded]:
    """Return what was recorded before for the same row, the newest first.

    Looks back to where the row can have begun at the earliest, however many records lie between.
    """
    wanted, found = row_id(recorded), []
    if wanted == f"row-{recorded.seq}" or _begins(recorded.event, recorded.event):
        return []
    place = bisect_left(records, recorded.seq, key=lambda each: each.seq)
    for number in range(place - 1, -1, -1):
        each = records[number]
        if isinstance(each.event, e.ChildEvent):
            continue
        if row_id(each) == wanted:
            found.append(each)
        if _begins(each.event, recorded.event):
            break
    return found


def newest_of_call(records: Sequence[Recorded], call_id: str, before: int) -> Recorded:
    """Return the newest event of a tool call before journal number `before`. KeyError: there is none."""
    for number in range(before - 1, 0, -1):
        event = records[number - 1].event
        if not isinstance(event, e.ChildStarted) and getattr(event, "call_id", "") == call_id:
            return records[number - 1]
    raise KeyError(call_id)


def _begins(event: e.Event, of: e.Event) -> bool:
    """Whether nothing before `event` can belong to the row of `of`: the call's start, or the reply that asks for it."""
    match event:
        case e.ModelCallStarted() | e.SummaryCallStarted():
            return event.call == getattr(of, "call", 0)
        case e.CheckStarted():
            return isinstance(of, e.CheckStarted | e.Verified)
        case e.ModelCallEnded():
            return any(call.id == getattr(of, "call_id", "") for call in event.calls)
        case _:
            return False


def _plain(call_id: str) -> str:
    """Return a call's id as part of an HTML id: the model chose it, so it may hold anything."""
    if _PLAIN_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode(errors="replace")).hexdigest()[:16]
