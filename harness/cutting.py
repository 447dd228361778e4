"""Where a cut falls inside a running task: from the end back until enough is kept, then back to a safe place.

Pure. Safe means: what is kept begins with a user's or an assistant's message, and no result in it stands without its
call. Works on entries in any order that a context can have.
"""

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass
from itertools import islice

from harness.context import Entry
from harness.messages import AssistantMessage, ToolResult


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut of a context, as journal numbers. pinned: what stands before the cut point and stays word for word."""

    removed: tuple[int, ...]
    pinned: tuple[int, ...]
    kept: tuple[int, ...]


def place_of_tail(entries: Sequence[Entry], enough: Callable[[Sequence[Entry]], int]) -> int:
    """Return where the kept part begins; 0 where nothing can be cut. enough: the place from which on enough is kept.

    Looks no further back than it must, so that a long history costs no more than a short one.
    """
    wanted = min(enough(entries), len(entries))
    place, orphans = _safe_before(entries, wanted, frozenset())
    # A result without a call before it parts nothing, and yet the walk went back to the first message for it.
    return _safe_before(entries, wanted, orphans)[0] if orphans else place


def _safe_before(entries: Sequence[Entry], wanted: int, orphans: Set[int]) -> tuple[int, Set[int]]:
    """Return the last safe place at or before `wanted`, and the places behind it of results without their call.

    orphans: places of results that are no matter.
    """
    parted: dict[str, list[int]] = {}
    for place in range(len(entries), -1, -1):
        if place < len(entries):
            match entries[place].message:
                case AssistantMessage(calls=calls):
                    for call in calls:
                        parted.pop(call.id, None)
                case ToolResult(call_id=call_id) if place not in orphans:
                    parted.setdefault(call_id, []).append(place)
                case _:
                    pass
        begins = place == len(entries) or entries[place].category in ("user", "assistant")
        if place <= wanted and begins and not parted:
            return place, frozenset()
    return 0, {place for places in parted.values() for place in places}


def tail_of(tokens: int, messages: int = 1, most: int | None = None) -> Callable[[Sequence[Entry]], int]:
    """Return what finds the place from which on at least `tokens` and `messages` are kept.

    most: no more than so many tokens, also where that is less than `messages`; the newest message is always kept.
    """

    def enough(entries: Sequence[Entry]) -> int:
        kept = count = 0
        for place in range(len(entries) - 1, -1, -1):
            size = entries[place].size.tokens
            if count and most is not None and kept + size > most:
                return place + 1
            kept, count = kept + size, count + 1
            if kept >= tokens and count >= messages:
                return place
        return 0

    return enough


def tail_of_rounds(rounds: int) -> Callable[[Sequence[Entry]], int]:
    """Return what finds the place from which on the newest `rounds` replies are kept, each with its results.

    The newest message is always kept, for the model may not have seen it yet.
    """

    def enough(entries: Sequence[Entry]) -> int:
        places = range(len(entries) - 1, -1, -1)
        replies = list(islice((place for place in places if entries[place].category == "assistant"), rounds))
        if not replies:
            return max(0, len(entries) - 1)
        return replies[-1] if len(replies) == rounds else 0

    return enough


def cut_at(entries: Sequence[Entry], place: int, *, request: int, waiting: Collection[str] = ()) -> Cut:
    """Return the cut before `place`. request: the running task's, 0 for none; it and the messages whose calls still
    wait for a result (`waiting`: all calls that do) are pinned where they stand before it.
    """
    before, kept = entries[:place], entries[place:]
    pinned = {request} if request else set()
    for entry in before if waiting else ():
        calls = entry.message.calls if isinstance(entry.message, AssistantMessage) else ()
        if any(call.id in waiting for call in calls):
            ids = {call.id for call in calls}
            pinned |= {
                entry.seq,
                *(r.seq for r in before if isinstance(r.message, ToolResult) and r.message.call_id in ids),
            }
    numbers = [entry.seq for entry in before]
    stays = [number for number in numbers if number in pinned]
    gone = [number for number in numbers if number not in pinned] if stays else numbers
    return Cut(tuple(gone), tuple(stays), tuple([entry.seq for entry in kept]))
