"""A checkpoint is behind every step that succeeded, and a task that was cut short goes on from it."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import by_hand, checkpoints
from harness import events as e
from harness.copies import snapshots
from harness.copies.fork import fork
from harness.copies.putting_back import put_back
from harness.journal import Journal, Recorded
from harness.messages import SummaryMessage, ToolCall
from harness.problems import Problem
from harness.reopening import resume
from harness.replay import fold
from harness.request import digest
from harness.result_events import FOLDER
from harness.session import Busy, Session
from tests.checkpoints_support import assert_nothing_done_twice, finish, left_by_a_kill, seqs, state_at
from tests.harness_support import (
    ROOT,
    assert_digests,
    assert_rebuilt,
    events,
    library,
    run,
    run_sample,
    running,
    until,
)
from tests.test_snapshots import tree
from tests.web_session import FoldedSession

KILLS = int(os.environ.get("LAB_TEST_KILLS", "4"))


def read(n: int) -> ToolCall:
    return ToolCall(f"c{n}", "read", json.dumps({"path": f"day-{n:02}.csv"}))


def save(session: FoldedSession) -> None:
    session.add(checkpoints.made(session.state, rounds=6, workspace=0))


# When a checkpoint is due.


def test_a_checkpoint_is_due_behind_a_turn_whose_calls_all_succeeded_and_once() -> None:
    session = FoldedSession().begin()
    assert not checkpoints.due(session.state)
    session.task("Read the files.")
    assert not checkpoints.due(session.state), "nothing is done yet"
    session.call_started()
    assert not checkpoints.due(session.state)
    session.call_ended("", read(1), read(2))
    assert not checkpoints.due(session.state)
    session.tool(read(1), "a")
    assert not checkpoints.due(session.state), "a call still waits"
    session.tool(read(2), "b")
    assert checkpoints.due(session.state)
    save(session)
    assert not checkpoints.due(session.state), "once is enough"
    session.call_started()
    session.call_ended("", read(3), read(4))
    session.tool(read(3), "a", ok=False)
    session.tool(read(4), "b")
    assert not checkpoints.due(session.state), "never in a failed state"
    session.call_started()
    session.call_ended("", read(5))
    session.tool(read(5), "c")
    assert checkpoints.due(session.state), "the next step that succeeds has one"
    save(session)
    session.call_started()
    session.call_ended("done")
    assert not checkpoints.due(session.state), "an answer is no step"
    session.end()
    assert not checkpoints.due(session.state)
    assert [saved.number for _, saved in session.state.checkpoints] == [1, 2]


def test_what_was_done_after_the_checkpoint_of_a_resume_makes_none() -> None:
    session = FoldedSession().begin()
    session.task("Read the files.")
    for n in (1, 2):
        session.call_started()
        session.call_ended("", read(n))
        session.tool(read(n), "a")
        if n == 1:
            save(session)
    session.add(e.TaskResumed(number=1, task=1, by="restart"))
    assert not checkpoints.due(session.state), "the newest result of the history is not in the context"
    assert checkpoints.standing(session.state).number == 1 and session.state.resumed.tries == 1


def test_the_one_to_go_on_from_is_the_newest_or_the_one_that_was_chosen() -> None:
    session = FoldedSession().begin()
    assert checkpoints.standing(session.state) is None
    session.task("Read the files.")
    for n in (1, 2, 3):
        session.call_started()
        session.call_ended("", read(n))
        session.tool(read(n), "a")
        save(session)
    assert checkpoints.standing(session.state).number == 3
    session.end("interrupted")
    session.add(e.TaskResumed(number=1, task=1, by="person"))
    assert checkpoints.standing(session.state).number == 1, "a kill right now must not bring back what was left behind"
    session.call_started()
    session.call_ended("", read(4))
    session.tool(read(4), "a")
    save(session)
    assert checkpoints.standing(session.state).number == 4
    session.call_started()
    session.call_ended("done")
    session.end()
    session.task("And now?")
    assert checkpoints.standing(session.state) is None, "another task's checkpoint is none"
    for number, code in ((1, "checkpoint_old"), (0, "no_checkpoint"), (9, "no_checkpoint")):
        with pytest.raises(Problem) as caught:
            checkpoints.chosen(session.state, number)
        assert caught.value.code == code


# Snapshots of steps, and putting the workspace back.


def test_a_step_that_changes_nothing_shares_the_snapshot_before_it(tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "snapshots"
    work.mkdir()
    (work / "a.py").write_text("x = 1\n")
    assert snapshots.take_step(store, work, 1, 0) == 1
    assert snapshots.take_step(store, work, 2, 1) == 1
    (work / "a.py").write_text("x = 2\n")
    assert snapshots.take_step(store, work, 3, 1) == 3
    assert sorted(path.name for path in store.glob("*.json")) == ["checkpoint-1.json", "checkpoint-3.json"]
    snapshots.take(store, work, 1)
    assert snapshots.whole(store, 1) and snapshots.whole(store, snapshots.step(1)), "no task's snapshot is in its way"


def test_a_workspace_that_cannot_be_kept_whole_has_no_snapshot(tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "snapshots"
    (tmp_path / "real").mkdir()
    work.symlink_to(tmp_path / "real")
    assert snapshots.take_step(store, work, 1, 0) == 0


def changed(work: Path, outside: Path) -> None:
    """Change a workspace in every way that a command can."""
    (work / "src" / "app.py").write_text("x = 2\n")
    (work / "new.txt").write_text("new")
    (work / "more" / "deep").mkdir(parents=True)
    (work / "more" / "deep" / "a").write_text("a")
    (work / "good").unlink()
    (work / "good").symlink_to("/etc")
    (work / "run.sh").unlink()
    (work / "run.sh").mkdir()
    (work / "run.sh" / "inside").write_text("i")
    shutil.rmtree(work / "empty")
    (work / "empty").write_text("no folder any more")
    shutil.rmtree(work / "docs")
    (work / "docs").symlink_to(outside)
    (work / "src" / "deep" / "b.py").chmod(0o200)
    (work / "src" / "deep").chmod(0o000)


def test_a_workspace_is_put_back_in_place_whatever_was_done_to_it(tmp_path: Path) -> None:
    work, store, outside = tmp_path / "work", tmp_path / "snapshots", tmp_path / "outside"
    (work / "src" / "deep").mkdir(parents=True)
    (work / "empty").mkdir()
    (work / "docs").mkdir()
    outside.mkdir()
    (outside / "page.md").write_text("not ours")
    for name in ("src/app.py", "src/deep/b.py", "run.sh", "docs/page.md"):
        (work / name).write_text(f"{name}\n")
    (work / "run.sh").chmod(0o755)
    (work / "good").symlink_to("src/app.py")
    (work / "absolute").symlink_to(work / "src")
    before = tree(work)
    assert snapshots.take_step(store, work, 1, 0) == 1
    changed(work, outside)
    assert put_back(store, work, 1)
    assert tree(work) == before
    assert (outside / "page.md").read_text() == "not ours", "no link is followed"
    assert put_back(store, work, 1) and tree(work) == before, "once more changes nothing"


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "snapshots"
    work.mkdir()
    for name in ("a", "b"):
        (work / name).write_text(name)
    time.sleep(2.1)  # so long the times of a file say nothing
    snapshots.take_step(store, work, 1, 0)
    inode = (work / "a").stat().st_ino
    (work / "b").write_text("c")
    put_back(store, work, 1)
    assert (work / "a").stat().st_ino == inode and (work / "b").read_text() == "b"


def test_the_files_of_large_results_stay(tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "snapshots"
    (work / FOLDER).mkdir(parents=True)
    (work / FOLDER / "1-read.txt").write_text("first")
    snapshots.take_step(store, work, 1, 0)
    (work / FOLDER / "2-read.txt").write_text("a decision names it, and decisions are kept for ever")
    put_back(store, work, 1)
    assert sorted(path.name for path in (work / FOLDER).iterdir()) == ["1-read.txt", "2-read.txt"]
    shutil.rmtree(work / FOLDER)
    (work / FOLDER).symlink_to(tmp_path)
    put_back(store, work, 1)
    assert [path.name for path in (work / FOLDER).iterdir()] == ["1-read.txt"] and not (work / FOLDER).is_symlink()
    other = tmp_path / "other"
    other.mkdir()
    snapshots.take_step(store, other, 2, 0)
    (other / FOLDER).symlink_to(tmp_path)
    put_back(store, other, 2)
    assert not list(other.iterdir()) and tmp_path.is_dir(), "what a command put in its place is nobody's"


def test_a_damaged_snapshot_is_said_and_a_cut_short_one_done_again(tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "snapshots"
    work.mkdir()
    for name in ("a", "b"):
        (work / name).write_text(f"{name}\n")
    before = tree(work)
    snapshots.take_step(store, work, 1, 0)
    objects = {path: path.read_bytes() for path in (store / "objects").rglob("*") if path.is_file()}
    lost = max(objects)
    lost.unlink()
    for name in ("a", "b"):
        (work / name).write_text("changed\n")
    with pytest.raises(OSError):
        put_back(store, work, 1)
    lost.write_bytes(objects[lost])
    put_back(store, work, 1)
    assert tree(work) == before
    with pytest.raises(Problem) as caught:
        put_back(store, work, 2)
    assert caught.value.code == "snapshot_missing"


# Going on after a kill, at every place of a journal.


@pytest.fixture(scope="module")
def thirty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, Path]:
    """A session of lab 10 whose task of thirty steps ran to its end, and the folder of its library."""
    data = tmp_path_factory.mktemp("thirty")

    async def scenario() -> Session:
        async with library(data, lab="10") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            return session

    return asyncio.run(scenario()), data


def test_each_of_thirty_steps_has_a_checkpoint(thirty: tuple[Session, Path]) -> None:
    session, _ = thirty
    saved = events(session, e.CheckpointSaved)
    assert [each.number for each in saved] == [each.turn for each in saved] == list(range(1, 31))
    assert all(0 < len(each.rounds) <= 6 for each in saved) and len(saved[-1].rounds) == 6
    # Only a spilled result changed the workspace.
    assert sorted({each.workspace for each in saved}) == [1, 16]
    assert saved[0].summary == "" and saved[-1].summary == session.state.in_force[-1].event.summary
    assert len(events(session, e.ContextCompacted)) >= 4
    assert session.state.tasks[-1].ended == "answered"
    assert_nothing_done_twice(session.records)


@pytest.mark.parametrize("part", range(4))
def test_a_kill_behind_any_event_costs_at_most_the_step_that_was_not_saved(
    thirty: tuple[Session, Path], tmp_path: Path, part: int
) -> None:
    session, data = thirty
    began, ended = session.state.tasks[0].seq, len(session.records)
    # Each kind of event is a place of its own; of the many alike some are taken.
    places = [
        seq for seq in range(began, ended) if seq % 23 == 5 * part or (part == 0 and seq in (began, ended - 1, 92, 93))
    ]

    async def scenario(server: object) -> None:
        for seq in places:
            into = tmp_path / str(seq)
            left_by_a_kill(session, data, seq, into)
            async with library(into, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                await finish(again)
                check(again, session, seq)

    def check(again: Session, before: Session, seq: int) -> None:
        assert again.records[:seq] == before.records[:seq], "no event is lost"
        saved = [each for each in events(before, e.CheckpointSaved) if each in events_until(before, seq)]
        answered = any(isinstance(each, e.ModelCallEnded) and not each.calls for each in events_until(before, seq))
        task = again.state.tasks[0]
        resumed = events(again, e.TaskResumed)
        if answered or not saved:
            assert not resumed and task.ended == ("answered" if answered else "interrupted")
        else:
            assert resumed == [e.TaskResumed(number=saved[-1].number, task=1, by="restart")]
            assert task.ended == "answered"
            days = [each.arguments for each in events(again, e.ToolEnded) if each.ok]
            assert len(set(days)) == 30 and len(days) <= 31, "at most the step that was under way was done again"
            at = resumed_at(again)
            old, new = state_at(again.records, saved_at(before, saved[-1].number)), state_at(again.records, at)
            assert [entry.seq for entry in new.context.entries] == [entry.seq for entry in old.context.entries]
            for entry in new.context.entries:
                role = "system" if isinstance(entry.message, SummaryMessage) else None
                assert role is None or entry.wire["role"] == role
        assert_nothing_done_twice(again.records)
        assert_digests(again.records)

    with running() as server:
        asyncio.run(scenario(server))


def events_until(session: Session, seq: int) -> list[e.Event]:
    return [each.event for each in session.records[:seq]]


def saved_at(session: Session, number: int) -> int:
    return next(at for at, saved in session.state.checkpoints if saved.number == number)


def resumed_at(session: Session) -> int:
    return seqs(session.records, e.TaskResumed)[-1]


def test_without_the_setting_the_task_ends_and_a_person_goes_on(thirty: tuple[Session, Path], tmp_path: Path) -> None:
    session, data = thirty
    left_by_a_kill(session, data, saved_at(session, 20) + 3, tmp_path)

    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                await again.stop()
                by_hand.change_setting(again, "resume_by_itself", 0)
                again.emit(e.TaskResumed(number=20, task=1, by="person"))  # and then a kill
            async with library(tmp_path, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                assert again.status == "idle" and again.state.tasks[-1].ended == "interrupted"
                await resume(again, 12, "person")
                assert again.status != "idle" and again.state.running_task()
                with pytest.raises(Busy):
                    await resume(again, 12, "person")
                then = state_at(session.records, saved_at(session, 12)).context
                assert [entry.seq for entry in again.state.context.entries] == [entry.seq for entry in then.entries]
                assert again.state.turn == 12
                await finish(again)
                assert again.state.tasks[-1].ended == "answered" and len(again.state.tasks) == 1
                saved = events(again, e.CheckpointSaved)[-18:]
                assert [each.number for each in saved] == list(range(21, 39))
                assert [each.turn for each in saved] == list(range(13, 31)), "turns go on where they were"
                assert_nothing_done_twice(again.records)
                await run(again, "Which way of matching was rejected?")
                with pytest.raises(Problem) as caught:
                    await resume(again, 12, "person")
                assert caught.value.code == "checkpoint_old"

    asyncio.run(scenario())


def test_a_server_that_ends_in_peace_lets_the_task_go_on_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                session = await opened.create(language="en")
                session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
                await until(lambda: len(session.state.checkpoints) == 3)
            async with library(tmp_path, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                await finish(again)
                assert [each.by for each in events(again, e.TaskResumed)] == ["restart"]
                assert [each.reason for each in events(again, e.TaskEnded)] == ["answered"]
                assert_nothing_done_twice(again.records)

    asyncio.run(scenario())


def test_a_server_that_ends_in_peace_stops_no_task_that_has_a_checkpoint(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                session = await opened.create(language="en")
                by_hand.change_setting(session, "resume_by_itself", 0)
                session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
                await until(lambda: len(session.state.checkpoints) == 3)
            async with library(tmp_path, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                assert again.status == "idle"
                assert [each.reason for each in events(again, e.TaskEnded)] == ["interrupted"]
                await resume(again, len(again.state.checkpoints), "person")
                await finish(again)
                assert again.state.tasks[-1].ended == "answered"

    asyncio.run(scenario())


def test_a_server_that_ends_in_peace_saves_the_step_that_has_just_succeeded(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                session = await opened.create(language="en")
                keep_step = session.keeper.keep_step

                async def slowly(number: int, like: int) -> int:
                    await asyncio.sleep(0.2)
                    return await keep_step(number, like)

                session.keeper.keep_step = slowly  # type: ignore[method-assign]
                session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
                await until(lambda: len(session.state.checkpoints) == 2 and checkpoints.due(session.state))
            assert len(events(session, e.CheckpointSaved)) == len(events(session, e.ToolEnded)) >= 3
            async with library(tmp_path, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                await finish(again)
                days = [each.arguments for each in events(again, e.ToolEnded) if each.ok]
                assert len(days) == len(set(days)) == 30

    asyncio.run(scenario())


def test_a_task_that_brings_the_server_down_again_and_again_is_given_up(
    thirty: tuple[Session, Path], tmp_path: Path
) -> None:
    session, data = thirty
    left_by_a_kill(session, data, saved_at(session, 3), tmp_path)
    with running() as server:
        for _ in range(checkpoints.MOST_TRIES):
            journal = Journal(f"sqlite:///{tmp_path / 'journal.db'}")
            number = journal.length(session.id) + 1
            records = [*journal.read(session.id)]
            journal.delete(session.id)
            journal.close()
            journal = Journal(f"sqlite:///{tmp_path / 'journal.db'}")
            event = e.TaskResumed(number=3, task=1, by="restart")
            journal.store(session.id, [*records, type(records[0])(number, records[-1].time, event)])
            journal.close()

        async def scenario() -> None:
            async with library(tmp_path, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                assert again.status == "idle" and again.state.tasks[-1].ended == "interrupted"
                await resume(again, 3, "person")
                await finish(again)
                assert again.state.tasks[-1].ended == "answered"

        asyncio.run(scenario())


def test_an_answer_from_before_a_resume_answers_nothing(thirty: tuple[Session, Path], tmp_path: Path) -> None:
    session, data = thirty
    left_by_a_kill(session, data, len(session.records), tmp_path)

    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                assert again.state.tasks[-1].ended == "answered"
                again.emit(e.TaskResumed(number=28, task=1, by="person"))
            async with library(tmp_path, lab="10", server=server) as opened:
                again = await opened.open(session.id)
                await finish(again)
                assert events(again, e.TaskResumed)[-1] == e.TaskResumed(number=28, task=1, by="restart")
                reads = [each.arguments for each in events(again, e.ToolEnded)][30:]
                assert reads == ['{"path": "day-29.csv"}', '{"path": "day-30.csv"}']

    asyncio.run(scenario())


# Files.


def test_an_older_checkpoint_brings_its_files_back_and_the_task_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            source = ROOT / "demo_workspace/failing-test"
            async with library(tmp_path, lab="10", server=server, source=source) as opened:
                session = await opened.create(language="en")
                await run(session, opened.setup.labs["01"].groups[1].samples[0].task["en"])
                code = session.workspace.root / "postage.py"
                calls = [each.name for each in events(session, e.ToolEnded)]
                assert calls == ["bash", "read", "edit", "bash"] and "grams <= limit" in code.read_text()
                saved = events(session, e.CheckpointSaved)
                assert [each.turn for each in saved] == [1, 2, 3, 4]
                before = next(each for each in saved if each.turn == 2)
                await resume(session, before.number, "person")
                await finish(session)
                assert [each.name for each in events(session, e.ToolEnded)] == [*calls, "edit", "bash"]
                assert "grams <= limit" in code.read_text() and session.state.tasks[-1].ended == "answered"
                made = await fork(opened, session, 1)
                assert len(events(made, e.TaskEnded)) == 2, "from the last end, as the files are"
                assert "grams <= limit" in (made.workspace.root / "postage.py").read_text()
                await resume(made, before.number, "person")
                await made.keeper.done()
                assert "grams < limit" in (made.workspace.root / "postage.py").read_text()
                await finish(made)
                assert "grams <= limit" in (made.workspace.root / "postage.py").read_text()
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


def test_files_that_were_not_kept_are_said_and_nothing_changes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10") as opened:
            session = await opened.create(language="en")
            session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
            await until(lambda: len(session.state.checkpoints) == 3)
            await session.stop()
            length = len(session.records)
            (session.keeper.store / "checkpoint-1.json").unlink()
            with pytest.raises(Problem) as caught:
                await resume(session, 2, "person")
            assert caught.value.code == "checkpoint_files" and len(session.records) == length
            assert session.status == "idle"

    asyncio.run(scenario())


def test_files_that_cannot_be_put_back_end_the_task(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10") as opened:
            session = await opened.create(language="en")
            session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
            await until(lambda: len(session.state.checkpoints) == 3)
            await session.stop()
            (session.workspace.root / "day-01.csv").unlink()
            shutil.rmtree(session.keeper.store / "objects")
            await resume(session, 2, "person")
            await finish(session)
            ended = events(session, e.TaskEnded)[-1]
            assert (ended.reason, ended.detail) == ("failed", "files")
            # The next task is not held up by that.
            await run(session, "Which files are there?")
            assert session.state.tasks[-1].ended == "answered"

    asyncio.run(scenario())


def test_a_session_without_the_lab_ends_as_ever(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "a").mkdir()
        with running() as server:
            async with library(tmp_path / "a", lab="08", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
            assert not events(session, e.CheckpointSaved)
            left_by_a_kill(session, tmp_path / "a", seqs(session.records, e.ToolEnded)[2], tmp_path / "b")
            async with library(tmp_path / "b", lab="08", server=server) as opened:
                again = await opened.open(session.id)
                assert again.state.tasks[-1].ended == "interrupted" and again.status == "idle"

    asyncio.run(scenario())


# A real process, really killed.


def lives(data: Path, address: str, session_id: str, seconds: float | None) -> tuple[list[list[str | int]], bool]:
    """Let a process work in `data` until it is done, or until it is killed after `seconds`; return what it said."""
    command = [sys.executable, "-m", "tests.checkpoints_support", str(data), address, session_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        if seconds is not None:
            time.sleep(seconds)
            process.kill()
        lines = [first, *process.stdout]
    # The last line may have been cut short.
    return [json.loads(line) for line in lines if line.endswith("]\n")], process.returncode == 0


def check_journal(data: Path, said: list[list[str | int]]) -> list[Recorded]:
    """Compare the journal with what a process had said before its end."""
    session_id, number, told = said[0]
    journal = Journal(f"sqlite:///{data / 'journal.db'}")
    records = journal.read(str(session_id))
    journal.close()
    numbered = [(each.seq, each.event) for each in records]
    assert [seq for seq, _ in numbered] == list(range(1, len(records) + 1))
    assert len(records) >= max(int(shown) for _, shown, _ in said), "what was shown is not lost"
    assert digest(fold(numbered[:number]).request()) == told, "a start finds the context that the journal says"
    assert_nothing_done_twice(records)
    assert_digests(records)
    return records


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.timeout(1200)
def test_a_process_is_killed_until_the_thirty_steps_are_done(tmp_path: Path) -> None:
    chance, left, sessions = random.Random(10), KILLS, 0
    with running() as server:
        while left > 0:
            data, session_id, done = tmp_path / str(sessions), "", False
            data.mkdir()
            sessions += 1
            while not done:
                # A task takes some three seconds; after the last kill it may take its time.
                seconds, left = (chance.uniform(0, 1.5), left - 1) if left > 0 else (None, left)
                said, done = lives(data, server.address, session_id, seconds)
                session_id = str(said[0][0])
                records = check_journal(data, said)
            begun = seqs(records, e.TaskStarted)[-1]
            done_reads = [each.event.arguments for each in records[begun:] if isinstance(each.event, e.ToolEnded)]
            assert len(set(done_reads)) == 30 and isinstance(records[-1].event, e.TaskEnded)
            assert records[-1].event.reason == "answered"
