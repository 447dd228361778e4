"""The rows of the feed as values: which row an event belongs to, and what its template is given.

One thing is one row: a call's approval, run and result share it, and the newest event decides how it looks.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from harness import events as e
from harness.context import Entry
from harness.journal import Recorded
from web.details import Detail

# These set the session up; the header shows what they say.
INVISIBLE = (e.SessionStarted,)
# Rows that say that something went wrong are shown in every view.
TROUBLE = (e.ModelCallFailed, e.CompactionRefused, e.HookFailed)
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Cut:
    """The cut point: the compaction that set it, and where its row stands."""

    row_id: str
    event: e.ContextCompacted


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `entry` is its message in the history, if it has one; `gone`: no longer in the context.

    live: what it shows is going on now. cut: the cut point lies directly above it.
    """

    id: str
    seq: int
    time: float
    event: e.Event
    entry: Entry | None = None
    gone: bool = False
    live: bool = False
    offline: bool = False
    cut: Cut | None = None
    detail: Detail | None = None

    @property
    def name(self) -> str:
        """Return the class of the event, which names the template too."""
        return type(self.event).__name__


def row_id(recorded: Recorded) -> str:
    """Return the id of the row that this event belongs to: a ToolEnded of call "a1" -> "call-a1"."""
    match recorded.event:
        case e.ApprovalRequested() | e.ApprovalAnswered() | e.ToolStarted() | e.ToolEnded():
            return f"call-{_plain(recorded.event.call_id)}"
        case e.ModelCallStarted() | e.ModelCallEnded() | e.ModelCallFailed():
            return f"call-row-{recorded.event.call}"
        case e.SummaryCallStarted() | e.SummaryCallEnded():
            return f"summary-row-{recorded.event.call}"
        case _:
            return f"row-{recorded.seq}"


def at(records: Sequence[Recorded], seq: int) -> Recorded:
    """Return the record with journal number `seq`. KeyError: there is none."""
    place = bisect_left(records, seq, key=lambda recorded: recorded.seq)
    if place == len(records) or records[place].seq != seq:
        raise KeyError(seq)
    return records[place]


def earlier(records: Sequence[Recorded], recorded: Recorded, *, within: int = 24) -> list[Recorded]:
    """Return what was recorded before for the same row, the newest first; looks at `within` records."""
    place = bisect_left(records, recorded.seq, key=lambda each: each.seq)
    wanted = row_id(recorded)
    before = reversed(records[max(0, place - within) : place])
    return [each for each in before if row_id(each) == wanted]


def _plain(call_id: str) -> str:
    """Return a call's id as part of an HTML id: the model chose it, so it may hold anything."""
    if _PLAIN_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode(errors="replace")).hexdigest()[:16]
