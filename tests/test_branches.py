"""A long task that went on from one checkpoint and then from another, and labs that act together: what must agree."""

import asyncio
import random
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from harness import checkpoints, reopening
from harness import events as e
from harness.accounting import estimate
from harness.exchange.changes_fit import decisions_fit
from harness.journal import Journal
from harness.messages import SummaryMessage, ToolCall
from harness.recorded import JournalError
from harness.restoring import readings
from harness.result_events import FOLDER, Decision
from harness.session import Session
from harness.session_list import read_session
from tests.checkpoints_support import finish
from tests.harness_support import library, running, until
from tests.strategies_support import Run
from tests.web_session import LOG, FoldedSession, read_turn
from tests.web_support import MINE, serving


def started() -> FoldedSession:
    session = FoldedSession().begin()
    session.task("Read all")
    return session


def save(session: FoldedSession) -> None:
    session.add(checkpoints.made(session.state, rounds=6, workspace=0))


def resume(session: FoldedSession, number: int) -> None:
    session.add(e.TaskResumed(number=number, task=1, by="person"))
    session.status = "running"


def kept(call: ToolCall) -> e.ResultsDecided:
    return e.ResultsDecided(task=1, decisions=(Decision(call.id, "kept", len(LOG)),), freed_chars=0, freed_tokens=0)


def assert_summaries_agree(session: FoldedSession) -> None:
    state = session.state
    summaries = {entry.seq for entry in state.context.entries if isinstance(entry.message, SummaryMessage)}
    assert summaries == ({state.in_force[-1].seq} if state.in_force else set())


def test_the_compaction_in_force_is_the_one_whose_summary_stands() -> None:
    session = started()
    for number in range(4):
        read_turn(session, number)
    save(session)
    session.cut(2)
    read_turn(session, 5)
    save(session)
    session.end("stopped")
    resume(session, 1)
    assert_summaries_agree(session)
    read_turn(session, 6)
    save(session)
    for number in (2, 3):
        session.end("stopped")
        resume(session, number)
        assert_summaries_agree(session)


@given(st.lists(st.sampled_from(["read", "save", "cut", "cut", "undo", "resume"]), max_size=25), st.randoms())
@settings(max_examples=40, deadline=None)
def test_the_list_counts_the_compactions_in_force_as_the_fold_does(steps: list[str], chance: random.Random) -> None:
    session = started()
    read_turn(session, 0)
    for number, step in enumerate(steps, 1):
        match step:
            case "read":
                read_turn(session, number)
            case "save":
                save(session)
            case "cut" if len(session.state.context.entries) > 3:
                session.cut(1)
            case "undo" if session.state.in_force:
                session.undo()
            case "resume" if session.state.checkpoints:
                resume(session, chance.randint(1, len(session.state.checkpoints)))
    with TemporaryDirectory() as folder, closing(Journal(f"sqlite:///{folder}/j.db")) as journal:
        journal.store("s", session.records)
        info = read_session(journal, "s")
    assert info
    assert (info.in_force, info.compactions) == (len(session.state.in_force), len(session.state.compactions))


def test_the_list_counts_a_resume_that_cannot_be_read_as_none_and_reads_no_summary(tmp_path: Path) -> None:
    session = started()
    for number in range(4):
        read_turn(session, number)
    save(session)
    session.cut(2)
    resume(session, 1)
    with closing(Journal(f"sqlite:///{tmp_path / 'j.db'}")) as journal:
        journal.store("s", session.records)
        with create_engine(f"sqlite:///{tmp_path / 'j.db'}").begin() as connection:
            unread = "('ContextCompacted', 'CompactionUndone', 'CheckpointSaved')"
            connection.execute(text(f"update event set body = 'broken' where kind in {unread}"))
        info = read_session(journal, "s")
        assert info and (info.in_force, info.compactions) == (0, 1)
        with create_engine(f"sqlite:///{tmp_path / 'j.db'}").begin() as connection:
            connection.execute(text("update event set body = 'broken' where kind = 'TaskResumed'"))
        info = read_session(journal, "s")
        assert info and (info.in_force, info.compactions) == (1, 1)


def test_an_undoing_gives_back_what_was_decided_on_another_branch() -> None:
    session = started()
    calls = [read_turn(session, number) for number in range(4)]
    for call in calls:
        session.add(kept(call))
    save(session)
    session.cut(2)
    read_turn(session, 5)
    save(session)
    session.end("stopped")
    resume(session, 1)
    session.decide(Decision(calls[0].id, "stale", len(LOG), "08:00 [old]"))
    session.end("stopped")
    resume(session, 2)
    session.end("stopped")
    session.undo()
    entries = session.state.context.entries
    entry = next(each for each in entries if getattr(each.message, "call_id", "") == calls[0].id)
    assert entry.wire["content"] == "08:00 [old]"


def test_a_file_that_was_read_on_a_branch_left_behind_is_not_restored() -> None:
    session = started()
    read_turn(session, 1)
    save(session)
    call = ToolCall("z1", "read", '{"path":"log-9.md"}')
    session.call_started()
    session.call_ended("", call)
    session.tool(call, "content that was taken back")
    session.end("stopped")
    resume(session, 1)
    assert [each.path for each in readings(session.state)] == ["log-1.md"]


def test_a_resume_lets_the_report_of_the_checkpoint_hold_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10") as opened:
            session = await opened.create(language="en")
            session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
            await until(lambda: len(session.state.checkpoints) == 9)
            await session.stop()
            seq = next(seq for seq, saved in session.state.checkpoints if saved.number == 8)
            told = (each.event for each in session.records[seq:])
            before = next(event for event in told if isinstance(event, e.ContextMeasured))
            await reopening.resume(session, 8, "person")
            after = estimate(session.state)
            assert before.reported and after.reported == before.reported
            assert abs(after.exact - before.exact) <= 2

    asyncio.run(scenario())


@pytest.mark.parametrize("numbers", [("09", "10"), ("10", "09")])
def test_labs_09_and_10_together_hold_the_limits_of_both(tmp_path: Path, numbers: tuple[str, ...]) -> None:
    async def verdicts(lengths: list[int], **settings: int) -> list[str]:
        run = Run(numbers, settings, lambda reply, state: None, folder=tmp_path)
        run.start("Read all")
        calls = run.reply("", [("read", f'{{"path":"log-{number}"}}') for number in range(len(lengths))])
        for call, length in zip(calls, lengths, strict=True):
            run.result(call, "x" * length)
        await run.before_turn()
        return [run.state.decisions[call.id].verdict for call in calls]

    usual = {"event_chars": 8000, "result_limit": 50_000, "turn_limit": 200_000}
    assert asyncio.run(verdicts([20_000], **usual)) == ["single"]
    assert asyncio.run(verdicts([5_000], **usual | {"event_chars": 0, "result_limit": 1_500})) == ["single"]
    small = {"event_chars": 2_000, "result_limit": 1_500, "turn_limit": 1_500}
    assert asyncio.run(verdicts([1_400, 900], **small)) == ["together", "kept"]


def test_one_overflow_is_compacted_once_whoever_acts() -> None:
    async def scenario() -> list[str]:
        settings = {"window": 8_000, "keep": 1_500, "tail_tokens": 1_500, "tail_most": 3_000}
        run = Run(("09", "08"), settings, lambda reply, state: None)
        run.start("Read all")
        for number in range(12):
            [call] = run.reply("next", [("read", f'{{"path":"log-{number}"}}')])
            run.result(call, f"08:00 probe 503 pool 100/100 request {number}\n" * 30)
        await run.overflow()
        return [made.strategy for step in run.steps for made in step.of(e.ContextCompacted)]

    assert len(asyncio.run(scenario())) == 1


def test_passes_of_one_lab_that_do_not_help_leave_the_other_working() -> None:
    state = started().state
    made = {"trigger": "threshold", "scope": "request", "measured": 3_000, "budget": 2_000}
    for _ in range(2):
        state.breaker.judge("budgets", still_past=True)
    assert state.breaker.stops("budgets") == "no_progress" and not state.breaker.stops("stages") and made
    state.breaker.judge("budgets", still_past=False)
    assert not state.breaker.open


def test_a_session_opens_again_after_a_write_that_failed_while_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume_as_it_is = reopening.resume

    async def slow(session: Session, number: int, by: str) -> None:
        # The first event that is written here has failed before the second one is told.
        session.emit(e.SessionNamed(name="x"))
        await until(lambda: session.failure)
        await resume_as_it_is(session, number, by)  # type: ignore[arg-type]

    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                session = await opened.create(language="en")
                session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
                await until(lambda: len(session.state.checkpoints) == 3)
            async with library(tmp_path, lab="10", server=server) as opened:
                writer = opened.journal._writer
                with monkeypatch.context() as full:
                    full.setattr(writer, "_insert", lambda rows: OSError(28, "No space left on device"))
                    full.setattr(reopening, "resume", slow)
                    with pytest.raises(JournalError):
                        await opened.open(session.id)
                again = await opened.open(session.id)
                await finish(again)
                assert again.state.tasks[-1].ended == "answered"

    asyncio.run(scenario())


def test_a_decision_made_anew_whose_file_could_not_be_written_travels() -> None:
    session = started()
    call = read_turn(session, 1)
    failed = Decision(call.id, "kept", len(LOG), detail=f"{FOLDER}/1-read.txt: No space left on device")
    event = e.ResultsDecided(task=1, decisions=(failed,), anew=True, freed_chars=0, freed_tokens=0)
    assert decisions_fit(session.state, event)


def test_a_preview_of_nothing_is_an_answer(tmp_path: Path) -> None:
    with serving(tmp_path, lab="10") as web:
        asked = web.ask(f"/s/{web.session().id}/by-hand?keep=1", headers=MINE | {"HX-Request": "true"})
        assert asked.status == 409
