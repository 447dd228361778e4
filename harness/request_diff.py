"""What one request changes against the one before it, and how much of its start is the same. Pure.

A provider's prompt cache reuses a request from its start up to the first part that differs. Providers put the
tool definitions before the system prompt, and both before the messages.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.projection import Part, category_of, project
from harness.replay import State, system_message
from harness.request import Wire
from harness.sizes import Category, Size, size_of
from harness.tokens import size_of_message

Kind = Literal["kept", "added", "removed", "replaced"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a request: the tools, the system prompt, or a message with its journal number and its task."""

    category: Category
    seq: int
    task: int
    wire: Wire
    size: Size

    @property
    def key(self) -> tuple[str, int]:
        """Return what stays the same while the content changes; a request has one system prompt and one tool list."""
        fixed = self.category in ("system", "tools")
        return ("part", 0 if self.category == "tools" else 1) if fixed else ("message", self.seq)


@dataclass(frozen=True, slots=True)
class Change:
    """Neighbouring parts with one fate. kept: in both; added: after only; removed: before only."""

    kind: Kind
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]

    @property
    def size_before(self) -> Size:
        """Return the size of what stood in the earlier request."""
        return size_of(self.before)

    @property
    def size_after(self) -> Size:
        """Return the size of what stands in the later request."""
        return size_of(self.after)


@dataclass(frozen=True, slots=True)
class RequestDiff:
    """The changes in the later request's order, and its start that the earlier request has too.

    shared: the parts of that start; breaks_at: the first part that differs, None where all of the earlier
    request stands at the later one's start.
    """

    changes: tuple[Change, ...]
    shared: tuple[Piece, ...]
    breaks_at: Piece | None
    total: Size

    @property
    def reusable(self) -> Size:
        """Return how much of the later request a cache could reuse, in whole parts."""
        return size_of(self.shared)


def pieces_at(state: State, seq: int) -> tuple[Piece, ...]:
    """Return the parts of the request as it was just before journal number `seq`, in a provider's order.

    Where a call went out at `seq`, with what extensions made of it on its way; what is theirs alone has a number
    below 1.
    """
    made = next((each for each in reversed(state.instructed) if each.seq < seq), None)
    head: tuple[Piece, ...] = ()
    system: tuple[Piece, ...] = ()
    if made:
        head = (Piece("tools", made.seq, 0, {"tools": made.event.tools}, made.tools),) if made.event.tools else ()
        system = (Piece("system", made.seq, 0, system_message(made.event), made.system),)
    entries = (Piece(each.category, each.seq, each.task, each.wire, each.size) for each in state.entries_at(seq))
    call = next((call for call in reversed(state.calls) if call.seq == seq), None)
    return head + _projected((*system, *entries), call.projected if call else ())


def _projected(messages: tuple[Piece, ...], parts: Sequence[Part]) -> tuple[Piece, ...]:
    """Return the messages that were sent; one that an extension changed keeps its number where none was added."""
    sent = project(messages, parts)
    same = len(sent) == len(messages)
    return tuple(
        each if isinstance(each, Piece)
        else replace(messages[place], wire=each, size=size_of_message(each)) if same
        else Piece(category_of(each), -place, 0, each, size_of_message(each))
        for place, each in enumerate(sent)
    )  # fmt: skip


def diff_requests(before: Sequence[Piece], after: Sequence[Piece], sent: int) -> RequestDiff:
    """Compare two requests of one session; `sent` is the journal number at which the earlier one went out."""
    pairs = enumerate(zip(before, after, strict=False))
    short = min(len(before), len(after))
    same = next((place for place, (one, other) in pairs if not _equal(one, other)), short)
    at = None if same == len(before) else after[same] if same < len(after) else before[same]
    return RequestDiff(_changes(before, after, sent), tuple(after[:same]), at, size_of(after))


def _equal(one: Piece, other: Piece) -> bool:
    return one.key == other.key and one.wire == other.wire


def _changes(before: Sequence[Piece], after: Sequence[Piece], sent: int) -> tuple[Change, ...]:
    old, new = {piece.key: piece for piece in before}, {piece.key for piece in after}
    missing = tuple(piece for piece in before if piece.key not in new)

    def fate(piece: Piece) -> tuple[str, int]:
        if known := old.get(piece.key):
            return ("kept", 0) if known.wire == piece.wire else ("replaced", piece.seq)
        # What is new but older than the request, or is a summary, stands where something else stood.
        instead = piece.category == "summary" or piece.seq < sent
        return ("instead" if instead and missing else "added", 0)

    changes, given = [], False
    for (kind, _), group in itertools.groupby(after, fate):
        pieces = tuple(group)
        known = tuple(old[piece.key] for piece in pieces if piece.key in old)
        if kind == "instead":
            changes.append(Change("replaced", () if given else missing, pieces))
            given = True
        else:
            changes.append(Change(kind, known, pieces))  # type: ignore[arg-type]
    return tuple(changes) if given or not missing else (Change("removed", missing, ()), *changes)
