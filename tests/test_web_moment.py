"""A session at a moment of its past: the same templates over fewer events, and the steps between moments."""

import asyncio
from pathlib import Path

import pytest

from harness import by_hand
from harness import events as e
from harness.replay import fold
from harness.session import Session
from tests.harness_support import library, run_sample, until
from web.catalogue import load_all
from web.feed import render_feed
from web.moment import STOPS, moment_of, steps_of
from web.pages import Pages
from web.panel import panel_of
from web.viewer import Viewer


async def played(folder: Path) -> Session:
    """Lab 07 with a compaction at a border, one by hand, and one undone."""
    async with library(folder) as opened:
        session = await opened.create(language="en")
        for number in (1, 2, 3):
            await run_sample(session, number)
        plan, _ = by_hand.plan_by_hand(session.strategy, session.state, 0)
        by_hand.compact_now(session, focus="", keep=0, cut=plan.cut, language="en")
        await until(lambda: session.status == "idle" and session.committed == len(session.records))
        by_hand.undo(session, 2)
        await until(lambda: session.committed == len(session.records))
        return session


def test_every_moment_is_the_fold_of_its_events_and_nothing_is_counted_twice(tmp_path: Path) -> None:
    async def run() -> None:
        session = await played(tmp_path)
        viewer = Viewer(Pages.load())
        for at in range(1, len(session.records) + 1):
            moment = await moment_of(session, at)
            whole = fold((each.seq, each.event) for each in session.records[:at])
            assert moment.state.context.entries == whole.context.entries
            assert moment.state.context.totals == whole.context.totals
            same = {entry.seq: entry for entry in session.state.history}
            assert all(entry is same[entry.seq] for entry in moment.state.history)
            assert render_feed(moment, viewer) or at == 1
            assert panel_of(moment, viewer).total == whole.context.total

    asyncio.run(run())


def test_at_the_moment_a_call_goes_out_the_panel_shows_that_request(tmp_path: Path) -> None:
    async def run() -> None:
        session = await played(tmp_path)
        viewer = Viewer(Pages.load(), tab="diff")
        for record in session.state.calls:
            if record.purpose != "turn":
                continue
            moment = await moment_of(session, record.seq)
            panel = panel_of(moment, viewer)
            assert panel.total == record.size
            if panel.request:
                assert panel.request.later and panel.request.later.call == record.call
                assert panel.request.earlier.seq < record.seq

    asyncio.run(run())


def test_stepping_forward_and_back_passes_every_stop_once(tmp_path: Path) -> None:
    async def run() -> None:
        session = await played(tmp_path)
        stops = [each.seq for each in session.records if isinstance(each.event, STOPS)]
        now = steps_of(session, session)
        assert stops[-1] == session.committed, "what now shows is the last stop, so back leads before it"
        assert (now.count, now.back, now.on) == (len(stops), stops[-2], 0)
        assert {type(session.records[seq - 1].event) for seq in stops} == set(STOPS)
        passed, at = [stops[-1]], now.back
        while at:
            passed.append(at)
            steps = steps_of(await moment_of(session, at), session)
            assert steps.here and steps.here.seq == at and steps.number == stops.index(at) + 1
            at = steps.back
        assert passed == stops[::-1]
        passed, at = [], stops[0]
        while at:
            passed.append(at)
            at = steps_of(await moment_of(session, at), session).on
        assert passed == stops
        between = steps_of(await moment_of(session, stops[1] - 1), session)
        assert (between.here and between.here.seq, between.on) == (stops[0], stops[1])

    asyncio.run(run())


def test_every_stop_has_words_in_both_languages() -> None:
    for words in load_all().values():
        assert all(words.has("step_name", kind.__name__) for kind in STOPS)


@pytest.mark.parametrize("kind", [e.ModelCallStarted, e.SummaryCallStarted])
def test_what_went_on_at_a_moment_is_not_called_cut_short(tmp_path: Path, kind: type[e.Event]) -> None:
    async def run() -> None:
        session = await played(tmp_path)
        viewer = Viewer(Pages.load())
        seqs = [each.seq for each in session.records if isinstance(each.event, kind)]
        for seq in seqs:
            html = render_feed(await moment_of(session, seq), viewer)
            assert "cut short" not in html and "No summary came back" not in html

    asyncio.run(run())
