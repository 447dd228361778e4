"""Which records a view of the feed shows, and how many of them at once. Renders nothing."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

from harness import events as e
from harness.context import Entry
from harness.journal import Recorded
from harness.replay import State
from web.rows import TROUBLE, Place, is_invisible, row_id
from web.shown import Shown

PAGE = 200  # rows that are shown at once, and those of the turn in which the last of them stands


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the feed: records of its rows in order, and the journal number before which there are more, or 0."""

    records: tuple[Recorded, ...]
    before: int


def part_before(session: Shown, last: int, first: int = 1, most: int = PAGE) -> Part:
    """Return about `most` rows that end at journal number `last`; `first`: where the feed begins.

    A part begins where a turn or a task does, since no row reaches across that.
    """
    newest: dict[str, Recorded] = {}
    number = last
    while number >= first:
        recorded = session.records[number - 1]
        if not is_invisible(recorded.event):
            # The newest record says how a row looks, the oldest where it stands.
            name = row_id(recorded)
            newest[name] = newest.pop(name, recorded)
        if len(newest) >= most and isinstance(recorded.event, e.TaskStarted | e.ModelCallStarted):
            break
        number -= 1
    more = any(not is_invisible(session.records[n - 1].event) for n in range(first, number))
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
            # What stays from before the cut point stands above, behind the summary.
            return recorded.seq in in_context(state) and recorded.seq >= cut_of_state(state)
        case _:
            return live


def trouble_before(session: Shown, task: int) -> list[str]:
    """Return the rows of what went wrong before `task` and since the one before it: the Model view had shown them."""
    tasks = session.state.tasks
    numbers = range(tasks[task - 2].seq, tasks[task - 1].seq) if task > 1 else ()
    found = (session.records[number - 1] for number in numbers)
    kinds = (*TROUBLE, e.TaskEnded)
    return list(dict.fromkeys(row_id(each) for each in found if isinstance(each.event, kinds)))


def entry_at(history: Sequence[Entry], seq: int) -> Entry | None:
    """Return the message of the event with this journal number, or None: it brought none."""
    place = bisect_right(history, seq, key=lambda entry: entry.seq)
    return history[place - 1] if place and history[place - 1].seq == seq else None


@dataclass(slots=True)
class _Known:
    entries: list[Entry]
    by_seq: dict[int, Entry]


_KNOWN: WeakKeyDictionary[State, _Known] = WeakKeyDictionary()


def in_context(state: State) -> Mapping[int, Entry]:
    """Return the context's entries by journal number. A message more costs a step, another context all of them."""
    known, entries = _KNOWN.get(state), state.context.entries
    if known is None or known.entries is not entries:
        known = _KNOWN[state] = _Known(entries, {})
    for entry in entries[len(known.by_seq) :]:
        known.by_seq[entry.seq] = entry
    return known.by_seq


def cut_of_state(state: State) -> int:
    """Return the journal number of the cut point in force, 0 without one."""
    return next((made.event.cut for made in reversed(state.compactions) if not made.undone), 0)


def pinned(state: State) -> list[Entry]:
    """Return what stays in the context from before the cut point."""
    cut = cut_of_state(state)
    return [entry for entry in state.context.entries if entry.seq < cut]


def place_of(entry: Entry, entries: Mapping[int, Entry], cut: int) -> Place:
    """Return where a message of the history stands, if the context holds `entries` and its cut point is `cut`."""
    if entry.seq < cut:
        return "stays" if entry.seq in entries else ""
    return "" if entry.seq in entries else "left"


def moved_by(state: State, seq: int, before: int, after: int) -> list[int]:
    """Return the messages whose `place_of` is another one since the event of journal number `seq`.

    before, after: the cut point until then and from then on, 0 for none.
    """
    then = [{entry.seq: entry for entry in state.entries_at(at)} for at in (seq, seq + 1)]
    sides = list(zip(then, (before, after), strict=True))
    stay = {number for entries, cut in sides for number in entries if number < cut}
    first = bisect_left(state.history, min(before, after), key=lambda entry: entry.seq)
    last = bisect_left(state.history, seq, key=lambda entry: entry.seq)
    messages = [entry for entry in map(partial(entry_at, state.history), sorted(stay)) if entry and entry.seq < seq]
    known = {entry.seq: entry for entry in (*messages, *state.history[first:last])}
    return [number for number, entry in known.items() if len({place_of(entry, *side) for side in sides}) > 1]


def model_start(state: State) -> int:
    """Return the journal number from which on the Model view's rows lie."""
    task = state.tasks[-1].seq if state.tasks else 1
    return min(task, cut_of_state(state)) if state.in_force else 1
