"""What a request changes against the one before it: over real sessions with the offline model, and made ones."""

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness import by_hand
from harness.events import ModelCallStarted
from harness.replay import State, fold
from harness.request_diff import Piece, diff_requests, pieces_at
from harness.session import Session
from harness.sizes import Size
from tests.harness_support import library, run_sample, until


def sent_at(session: Session) -> list[int]:
    return [each.seq for each in session.records if isinstance(each.event, ModelCallStarted)]


async def played(folder: Path) -> tuple[State, list[int], list[tuple[Piece, ...]]]:
    """Play lab 07 with a compaction, an undo and another task; return the state and each request's parts."""
    async with library(folder) as opened:
        session = await opened.create(language="en")
        for number in (1, 2, 3):
            await run_sample(session, number)
        by_hand.undo(session, len(session.state.compactions))
        await run_sample(session, 4)
        await until(lambda: session.status == "idle")
        numbers = sent_at(session)
        parts = []
        for seq in numbers:
            then = fold((each.seq, each.event) for each in session.records[: seq - 1])
            parts.append(pieces_at(then, seq))
        return session.state, numbers, parts


def test_an_earlier_request_is_found_without_folding_again(tmp_path: Path) -> None:
    state, numbers, parts = asyncio.run(played(tmp_path))
    assert len(state.compactions) >= 2 and any(each.undone for each in state.compactions)
    for seq, folded in zip(numbers, parts, strict=True):
        assert pieces_at(state, seq) == folded


def test_every_part_of_both_requests_has_one_fate(tmp_path: Path) -> None:
    state, numbers, parts = asyncio.run(played(tmp_path))
    kinds = set()
    for (seq, before), after in zip(zip(numbers, parts, strict=True), parts[1:], strict=False):
        found = diff_requests(before, after, seq)
        kinds |= {change.kind for change in found.changes}
        assert [piece for change in found.changes for piece in change.after] == list(after)
        assert {p.key for change in found.changes for p in change.before} == {p.key for p in before}
        assert found.total == sum((piece.size for piece in after), Size())
        assert found.shared == after[: len(found.shared)] == before[: len(found.shared)]
        if found.breaks_at is None:
            assert found.shared == before
    assert kinds == {"kept", "added", "replaced"}


def test_a_summary_stands_for_what_it_cut_and_breaks_the_shared_start(tmp_path: Path) -> None:
    state, numbers, _ = asyncio.run(played(tmp_path))
    first = state.compactions[0]
    last = max(seq for seq in numbers if seq < first.seq)
    after = pieces_at(state, first.seq + 1)
    found = diff_requests(pieces_at(state, last), after, last)
    [replaced] = [change for change in found.changes if change.kind == "replaced"]
    assert [piece.category for piece in replaced.after] == ["summary"]
    assert {piece.seq for piece in replaced.before} == set(first.event.removed)
    assert found.breaks_at == replaced.after[0]
    assert [piece.category for piece in found.shared] == ["tools", "system"]


def piece(seq: int, text: str) -> Piece:
    return Piece("user", seq, 1, {"role": "user", "content": text}, Size(len(text), 1))


SOME = st.lists(st.tuples(st.integers(1, 12), st.sampled_from("ab")), unique_by=lambda pair: pair[0], max_size=9)


@given(before=SOME, after=SOME, sent=st.integers(1, 13))
def test_whatever_the_two_requests_are_nothing_is_dropped(
    before: list[tuple[int, str]], after: list[tuple[int, str]], sent: int
) -> None:
    old, new = ([piece(*each) for each in sorted(side)] for side in (before, after))
    found = diff_requests(old, new, sent)
    assert [each for change in found.changes for each in change.after] == new
    assert sorted(each.seq for change in found.changes for each in change.before) == [each.seq for each in old]
    for change in found.changes:
        if change.kind == "kept":
            assert change.before == change.after
        if change.kind == "removed":
            assert not change.after
        if change.kind == "added":
            assert not change.before


def test_the_entries_before_a_compaction_are_those_it_removed(tmp_path: Path) -> None:
    state, _, _ = asyncio.run(played(tmp_path))
    made = state.compactions[0]
    assert tuple(state.entries_at(made.seq)[: len(made.removed)]) == made.removed
