"""Which records a view of the feed shows, and how many of them at once. Renders nothing."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from harness import events as e
from harness.context import Entry
from harness.journal import Recorded
from harness.replay import State
from web.rows import INVISIBLE, TROUBLE, row_id
from web.shown import Shown

PAGE = 200  # rows that are shown at once, and those of the turn in which the last of them stands


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the feed: records of its rows in order, and the journal number before which there are more, or 0."""

    records: tuple[Recorded, ...]
    before: int


def part_before(session: Shown, last: int, first: int = 1) -> Part:
    """Return about `PAGE` rows that end at journal number `last`; `first`: where the feed begins.

    A part begins where a turn or a task does, since no row reaches across that.
    """
    newest: dict[str, Recorded] = {}
    number = last
    while number >= first:
        recorded = session.records[number - 1]
        if not isinstance(recorded.event, INVISIBLE):
            # The newest record says how a row looks, the oldest where it stands.
            name = row_id(recorded)
            newest[name] = newest.pop(name, recorded)
        if len(newest) >= PAGE and isinstance(recorded.event, e.TaskStarted | e.ModelCallStarted):
            break
        number -= 1
    more = any(not isinstance(session.records[n - 1].event, INVISIBLE) for n in range(first, number))
    return Part(tuple(reversed(newest.values())), number if more else 0)


def in_model_view(state: State, recorded: Recorded, task: int, *, live: bool) -> bool:
    """Whether a row stands in the Model view: what the model reads, and what goes on or went wrong in this task."""
    match recorded.event:
        case e.InstructionsSet() | e.ContextCompacted():
            return True
        case e.TaskEnded(reason=reason):
            return reason != "answered" and recorded.event.task == task
        case _ if isinstance(recorded.event, TROUBLE):
            return recorded.event.task == task
        case _ if entry_at(state.history, recorded.seq):
            return not state.in_force or recorded.seq >= state.in_force[-1].event.cut
        case _:
            return live


def entry_at(history: Sequence[Entry], seq: int) -> Entry | None:
    """Return the message of the event with this journal number, or None: it brought none."""
    place = bisect_right(history, seq, key=lambda entry: entry.seq)
    return history[place - 1] if place and history[place - 1].seq == seq else None


def model_start(state: State) -> int:
    """Return the journal number from which on the Model view's rows lie."""
    task = state.tasks[-1].seq if state.tasks else 1
    return min(task, state.in_force[-1].event.cut) if state.in_force else 1
