"""The tab "What was lost": the facts of the messages that a compaction cut, and what became of each.

To trace a long session takes a moment, so that is done beside the event loop and kept; what comes later is only added.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from harness.context import Entry
from harness.lost import Fate, Trace, Traced
from harness.records import Compaction
from web.links import Links
from web.shown import Shown
from web.viewer import Facts, Viewer

# Facts of a group beside other groups, and of one group alone; characters of a fact; traces that are kept.
FEW, PART, CHARS, KEPT = 25, 200, 300, 8
GROUPS = get_args(Facts)[1:]
FATES: tuple[Fate, ...] = ("lost", "changed", "again", "summary", "beside", "tail")


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact. text, instead: at most `CHARS` characters of what was said and of what stands there now.

    task, link: of the message that said it. place: the address of the message in which it stands now, or "".
    """

    traced: Traced
    text: str
    instead: str
    task: int
    link: str
    place: str


@dataclass(frozen=True, slots=True)
class Group:
    """Facts of a kind, what is lost first. count: how many there are, of which `rows` are shown."""

    name: str
    count: int
    rows: tuple[FactRow, ...]


@dataclass(frozen=True, slots=True)
class LostView:
    """What became of the facts of a compaction. fates: how many facts have each.

    before, after: the numbers of the compactions in force beside it, 0 where there is none.
    part, parts: which part of one group is shown, from 1, and how many it has.
    """

    compaction: Compaction
    before: int
    after: int
    fates: Counter[Fate]
    groups: tuple[Group, ...]
    part: int
    parts: int


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A compaction, and what the context held after it: up to the next one in force, or to now."""

    key: tuple[str, int, int]
    compaction: Compaction
    before: int
    after: int
    kept: list[Entry]


@dataclass(slots=True)
class _Followed:
    removed: tuple[Entry, ...]
    kept: list[Entry]
    trace: Trace
    facts: tuple[Traced, ...]


_followed: OrderedDict[tuple[str, int, int], _Followed] = OrderedDict()


async def ready(session: Shown, viewer: Viewer) -> None:
    """Trace what the tab will show, if it is open, without holding up other pages."""
    if viewer.tab == "lost" and (chosen := _choose(session, viewer)) and not _known(chosen):
        _keep(chosen, await asyncio.to_thread(_follow, chosen))


def lost_view(session: Shown, viewer: Viewer) -> LostView | None:
    """Return what became of the facts that the chosen compaction cut; None where none is in force."""
    chosen = _choose(session, viewer)
    if chosen is None:
        return None
    facts = sorted(_facts(chosen), key=lambda each: FATES.index(each.fate))
    groups: dict[str, list[Traced]] = {name: [] for name in GROUPS}
    for each in facts:
        groups["user" if each.of_user and each.fact.kind == "constraint" else each.fact.kind].append(each)
    alone = viewer.facts if viewer.facts in groups else ""
    parts = max(1, -(-len(groups[alone]) // PART)) if alone else 1
    part = min(max(viewer.part, 1), parts)
    begin, end = ((part - 1) * PART, part * PART) if alone else (0, FEW)
    links = Links(session, viewer)
    shown = tuple(
        Group(name, len(found), _rows(found[begin:end], chosen.compaction, links))
        for name, found in groups.items()
        if found and alone in ("", name)
    )
    fates = Counter(each.fate for each in facts)
    return LostView(chosen.compaction, chosen.before, chosen.after, fates, shown, part, parts)


def _rows(facts: Sequence[Traced], compaction: Compaction, links: Links) -> tuple[FactRow, ...]:
    tasks = {entry.seq: entry.task for entry in compaction.removed}
    return tuple(
        FactRow(
            each, _short(each.fact.text), _short(each.instead), tasks[each.seq],
            links.to(each.seq), links.to(each.place) if each.place else "",
        )
        for each in facts
    )  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= CHARS else f"{text[:CHARS]} […]"


def _choose(session: Shown, viewer: Viewer) -> _Chosen | None:
    """Return the compaction that the viewer asks for, else the newest one in force; None where there is none."""
    state = session.state
    made = state.in_force
    if not made:
        return None
    place = next((n for n, each in enumerate(made) if each.event.number == viewer.compaction), len(made) - 1)
    compaction, later = made[place], made[place + 1 :]
    # All that the context held before the next one: the summary, what stayed, and what came since.
    kept = state.entries_at(later[0].seq) if later else state.context.entries
    return _Chosen(
        key=(session.id, compaction.seq, viewer.at),
        compaction=compaction,
        before=made[place - 1].event.number if place else 0,
        after=later[0].event.number if later else 0,
        kept=list(kept),
    )


def _facts(chosen: _Chosen) -> tuple[Traced, ...]:
    known = _known(chosen)
    if known is None:
        known = _follow(chosen)
    elif len(known.kept) < len(chosen.kept):
        known.facts = known.trace.read(chosen.kept[len(known.kept) :])
        known.kept = chosen.kept
    _keep(chosen, known)
    return known.facts


def _follow(chosen: _Chosen) -> _Followed:
    trace = Trace(chosen.compaction.removed, chosen.compaction.seq)
    return _Followed(chosen.compaction.removed, chosen.kept, trace, trace.read(chosen.kept))


def _known(chosen: _Chosen) -> _Followed | None:
    """Return what was traced before, if it was for these very messages or for those that came first."""
    known = _followed.get(chosen.key)
    if known and known.removed == chosen.compaction.removed and known.kept == chosen.kept[: len(known.kept)]:
        return known
    return None


def _keep(chosen: _Chosen, followed: _Followed) -> None:
    _followed[chosen.key] = followed
    _followed.move_to_end(chosen.key)
    while len(_followed) > KEPT:
        _followed.popitem(last=False)
