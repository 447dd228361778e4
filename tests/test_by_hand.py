"""What a person does to the context: compact now with a focus, take it back, change a summary first."""

import asyncio
from pathlib import Path

import pytest

from harness import by_hand
from harness import events as e
from harness.context import make_entry
from harness.messages import SummaryMessage
from harness.problems import Problem
from harness.request import digest
from harness.session import Busy, Session
from harness.sizes import Size
from tests.harness_support import events, library, names, offline, run_sample, until
from web.feed import make_row

FOCUS = "every request id and the probe at 08:03"


async def idle(session: Session) -> None:
    await until(lambda: session.status == "idle")


def compact(session: Session, *, keep: int = 1, focus: str = "", cut: int | None = None) -> None:
    if cut is None:
        cut = by_hand.plan_by_hand(session.strategy, session.state, keep)[0].cut
    by_hand.compact_now(session, focus=focus, keep=keep, cut=cut, language="en")


def test_compact_now_cuts_what_the_preview_said_and_keeps_the_focus(tmp_path: Path) -> None:
    async def run() -> None:
        async with library(tmp_path, settings={"budget": 100_000}) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            await run_sample(session, 2)
            assert not session.state.compactions
            plan = by_hand.plan_by_hand(session.strategy, session.state, 1)[0]
            compact(session, focus=FOCUS)
            await idle(session)
            [made] = session.state.compactions
            assert (made.event.removed, made.event.kept) == (plan.removed, plan.kept)
            assert made.event.focus == FOCUS and made.event.trigger == "by hand"
            assert made.event.before == session.state.context.total - made.summary.size + sum(
                (entry.size for entry in made.removed), start=type(made.summary.size)()
            )
            [asked] = events(session, e.SummaryCallStarted)
            assert FOCUS in asked.messages[0]["content"]
            assert names(session).index("CompactionAsked") < names(session).index("SummaryCallStarted")

    asyncio.run(run())


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_as_many_tasks_stay_as_were_asked_for(tmp_path: Path, keep: int) -> None:
    async def run() -> None:
        async with library(tmp_path, settings={"budget": 100_000}) as opened:
            session = await opened.create(language="en")
            for number in (1, 2, 3):
                await run_sample(session, number)
            compact(session, keep=keep)
            await idle(session)
            kept = {entry.task for entry in session.state.context.entries if entry.category != "summary"}
            assert kept == {1, 2, 3} - set(range(1, 4 - keep))
            await run_sample(session, 4)
            assert session.state.tasks[-1].ended == "answered"

    asyncio.run(run())


def test_nothing_is_recorded_where_nothing_can_be_cut(tmp_path: Path) -> None:
    async def run() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            for code, more in (("nothing_to_compact", {}), ("long_focus", {"focus": "x" * 501})):
                with pytest.raises(Problem) as refused:
                    compact(session, **more)
                assert refused.value.code == code
            await run_sample(session, 1)
            before = len(session.records)
            with pytest.raises(Problem) as refused:
                compact(session, keep=0, cut=3)
            assert refused.value.code == "preview_old"
            with pytest.raises(Problem) as refused:
                by_hand.undo(session, 1)
            assert refused.value.code == "not_newest_compaction"
            assert len(session.records) == before
        async with library(tmp_path / "other", lab="01") as opened:
            session = await opened.create(language="en")
            with pytest.raises(Problem) as refused:
                compact(session, cut=1)
            assert refused.value.code == "no_compaction"

    (tmp_path / "other").mkdir()
    asyncio.run(run())


def test_an_undone_compaction_leaves_the_context_as_it_was_and_the_record_whole(tmp_path: Path) -> None:
    async def run() -> None:
        async with library(tmp_path, settings={"budget": 100_000}) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            await run_sample(session, 2)
            before, total = digest(session.state.request()), session.state.context.total
            compact(session)
            await idle(session)
            assert digest(session.state.request()) != before
            by_hand.undo(session, 1)
            assert digest(session.state.request()) == before
            assert session.state.context.total == total
            assert session.state.in_force == [] and session.state.compactions[0].undone == len(session.records)
            [undone] = events(session, e.CompactionUndone)
            assert undone.after == total
            with pytest.raises(Problem):
                by_hand.undo(session, 1)
            await run_sample(session, 4)
            body = session.state.request().body()
            again = session.id
        async with library(tmp_path) as opened:
            assert (await opened.open(again)).state.request().body() == body

    asyncio.run(run())


def test_the_newest_is_undone_first_and_what_came_since_stays(tmp_path: Path) -> None:
    async def run() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            for number in (1, 2, 3):
                await run_sample(session, number)
            compact(session)
            await idle(session)
            assert len(session.state.compactions) == 2
            with pytest.raises(Problem):
                by_hand.undo(session, 1)
            by_hand.undo(session, 2)
            first = session.state.compactions[0]
            assert session.state.context.entries[0] == first.summary
            by_hand.undo(session, 1)
            assert [entry.seq for entry in session.state.context.entries] == [x.seq for x in session.state.history]

    asyncio.run(run())


async def proposed(session: Session) -> e.SummaryProposed:
    """Play two samples up to the summary that waits."""
    await run_sample(session, 1)
    session.start_task("From that log: which statements are confirmed, and which are only guesses?", language="en")
    await until(lambda: session.proposed)
    assert session.status == "waiting" and session.proposed
    return session.proposed


def test_a_summary_that_a_person_changed_takes_effect_and_both_versions_are_kept(tmp_path: Path) -> None:
    async def run() -> None:
        async with library(tmp_path, settings={"confirm_summary": 1}) as opened:
            session = await opened.create(language="en")
            asked = await proposed(session)
            with pytest.raises(Busy):
                by_hand.undo(session, 1)
            text = "## Confirmed\n- the push of 07:40 was the cause"
            assert session.confirmations.answer("  ") == "summary_empty"
            assert session.confirmations.answer("x" * 50_000) == "not_smaller"
            assert session.proposed == asked, "it waits on"
            assert session.confirmations.answer(text) == ""
            await idle(session)
            [made] = session.state.compactions
            assert (made.event.summary, made.event.written) == (text, asked.text)
            [answered] = events(session, e.SummaryAnswered)
            assert answered.used and answered.text == text and answered.by == "person"
            assert text in session.state.request().messages[1]["content"]
            assert session.state.tasks[-1].ended == "answered"

    asyncio.run(run())


@pytest.mark.parametrize("how", ["keep", "timeout", "stop"])
def test_without_a_yes_the_conversation_stays_as_it_is(tmp_path: Path, how: str) -> None:
    async def run() -> None:
        async with library(tmp_path, settings={"confirm_summary": 1}) as opened:
            session = await opened.create(language="en")
            if how == "timeout":
                by_hand.change_setting(session, "approval_seconds", 1)
            await proposed(session)
            if how == "keep":
                assert session.confirmations.answer(None) == ""
            if how == "stop":
                await session.stop()
            await idle(session)
            [answered] = events(session, e.SummaryAnswered)
            assert not answered.used and answered.by == {"keep": "person"}.get(how, how)
            [refused] = events(session, e.CompactionRefused)
            assert refused.reason == ("stopped" if how == "stop" else "declined")
            assert session.state.compactions == []
            assert session.confirmations.answer("late") == "not_waiting"
            assert session.state.tasks[-1].ended == "answered"

    asyncio.run(run())


def test_stop_ends_a_compaction_by_hand_and_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        model = offline(delay=0.2)
        model.start()
        async with library(tmp_path, settings={"budget": 100_000}, server=model) as opened:
            session = await opened.create(language="en")
            model._app.delay = 0  # noqa: SLF001
            await run_sample(session, 1)
            body = session.state.request().body()
            model._app.delay = 0.2  # noqa: SLF001
            compact(session, keep=0)
            await until(lambda: "SummaryCallStarted" in names(session))
            with pytest.raises(Busy):
                session.start_task("Another one", language="en")
            await session.stop()
            [refused] = events(session, e.CompactionRefused)
            assert (refused.reason, refused.trigger) == ("stopped", "by hand")
            assert session.state.request().body() == body and session.status == "idle"
        model.stop()

    asyncio.run(run())


def test_a_text_that_utf8_cannot_carry_changes_nothing_half(tmp_path: Path) -> None:
    async def run() -> None:
        async with library(tmp_path, settings={"confirm_summary": 1}) as opened:
            session = await opened.create(language="en")
            await proposed(session)
            assert session.confirmations.answer("## Confirmed\n- a\ud800b") == ""
            await idle(session)
            [made] = session.state.compactions
            assert made.event.summary == "## Confirmed\n- a\ufffdb"
            context = session.state.context
            before = (list(context.entries), dict(context.totals), digest(session.state.request()))
            broken = make_entry(99, 1, SummaryMessage("x", "\ud800"), lambda wire: context.entries[0].size)
            with pytest.raises(UnicodeEncodeError):
                context.put([broken])
            assert before == (context.entries, context.totals, digest(session.state.request()))

    asyncio.run(run())


def test_a_summary_call_that_a_kill_cut_short_does_not_go_on_in_the_next_task(tmp_path: Path) -> None:
    async def run() -> None:
        async with library(tmp_path, settings={"budget": 100_000}) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            session.emit(e.CompactionAsked(task=1, focus="", keep=0))
            messages = ({"role": "user", "content": "x"},)
            asked = {"call": len(session.state.calls) + 1, "task": 1, "attempt": 1, "max_tokens": 9, "clipped": 0}
            session.emit(e.SummaryCallStarted(messages=messages, size=Size(), digest="", **asked))
            number = len(session.records)
            session.start_task("Which are guesses?", language="en")
            row = make_row(session, session.records[number - 1])
            assert session.status == "running" and not row.live
            await session.stop()

    asyncio.run(run())
