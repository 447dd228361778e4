"""A fork begins where a task ended, with the events and the files of that time; then each session goes its own way."""

import asyncio
import functools
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from harness import by_hand
from harness import events as e
from harness.copies.fork import fork
from harness.copies.keeping import Keeper
from harness.copies.manifest import load
from harness.copies.snapshots import restore
from harness.deletion import delete
from harness.exchange.transfer import bring_in, export
from harness.library import Library
from harness.problems import Problem
from harness.replay import rebuild
from harness.session import Busy, Session
from harness.session_list import read_sessions
from tests.harness_support import (
    ROOT,
    assert_digests,
    assert_rebuilt,
    events,
    library,
    names,
    run,
    run_sample,
    running,
    until,
)
from tests.test_snapshots import tree

ADD_TYPES = 1  # samples of lab 01, from 1
FIX = 2


def postage(session: Session) -> str:
    return (session.workspace.root / "postage.py").read_text()


def bodies(session: Session) -> list[bytes]:
    """Return every request of a session, rebuilt."""
    numbered = [(recorded.seq, recorded.event) for recorded in session.records]
    return [rebuild(numbered, call.call).body() for call in session.state.calls]


def left(opened: Library) -> tuple[set[str], list[Path]]:
    """Return the sessions of the journal and their folders."""
    return {each for each, _ in opened.journal.read_kind("SessionStarted")}, sorted(
        (opened.setup.data / "sessions").iterdir()
    )


def test_before_and_after_a_task_that_edits_a_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="01", server=server) as opened:
                parent = await opened.create(language="en")
                await run_sample(parent, FIX)
                await run(parent, "Explain this project.")
                records, files = list(parent.records), tree(parent.workspace.root)
                before, after = await fork(opened, parent, 0), await fork(opened, parent, 1)
                assert "grams <= limit" not in postage(before) and "grams <= limit" in postage(after)
                assert postage(before) == (opened.setup.source / "postage.py").read_text()
                assert names(before) == ["SessionStarted", "ModelChosen", "InstructionsSet", "SessionForked"]
                assert before.records[-1].event == e.SessionForked(session=parent.id, task=0)
                copied = len(after.records) - 1
                assert after.records[:copied] == records[:copied], "numbers, times and events are the parent's"
                assert isinstance(after.records[copied - 1].event, e.TaskEnded)
                assert after.records[-1].event == e.SessionForked(session=parent.id, task=1)
                assert (parent.records, tree(parent.workspace.root)) == (records, files), "the parent is as it was"
                assert after.state.extensions == parent.state.extensions and after.status == "idle"
                assert bodies(after) == bodies(parent)[: len(after.state.calls)]

    asyncio.run(scenario())


def test_both_go_on_by_themselves_and_every_request_is_rebuilt(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="01", server=server) as opened:
                parent = await opened.create(language="en")
                await run_sample(parent, FIX)
                forked = await fork(opened, parent, 1)
                await run(parent, "Explain this project.")
                await asyncio.gather(run(forked, "Run the tests."), run(parent, "Run the tests."))
                assert [task.ended for task in forked.state.tasks] == ["answered"] * 2
                assert [task.ended for task in parent.state.tasks] == ["answered"] * 3
                for session in (parent, forked):
                    assert_rebuilt(session, server.requests)
                again = await fork(opened, forked, 2)
                assert [each.event for each in again.records if isinstance(each.event, e.SessionForked)] == [
                    e.SessionForked(session=parent.id, task=1), e.SessionForked(session=forked.id, task=2),
                ]  # fmt: skip
                first = await fork(opened, again, 0)
                assert postage(first) == (opened.setup.source / "postage.py").read_text()
                await run_sample(first, FIX)
                assert "grams <= limit" in postage(first)
            async with library(tmp_path, lab="01", server=server) as opened:
                reopened = await opened.open(again.id)
                assert bodies(reopened) == bodies(again)
                await run(reopened, "Explain this project.")
                assert_rebuilt(reopened, server.requests)

    asyncio.run(scenario())


def test_a_fork_outlives_its_parent_and_the_parent_its_fork(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            parent = await opened.create(language="en")
            await run_sample(parent, FIX)
            one, two = await fork(opened, parent, 1), await fork(opened, parent, 1)
            await opened.forget(parent.id)
            shutil.rmtree(opened.folder(parent.id).parent)
            third = await fork(opened, one, 0)
            assert postage(third) == (opened.setup.source / "postage.py").read_text()
            await opened.forget(one.id)
            shutil.rmtree(opened.folder(one.id).parent)
            assert "grams <= limit" in postage(await fork(opened, two, 1))

    asyncio.run(scenario())


def test_what_was_chosen_then_holds_and_what_came_later_does_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            parent = await opened.create(language="en")
            by_hand.rename(parent, "first")
            by_hand.change_setting(parent, "budget", 700)
            await run_sample(parent, 1)
            by_hand.change_setting(parent, "budget", 900)
            await run_sample(parent, 2)
            by_hand.rename(parent, "second")
            by_hand.change_setting(parent, "budget", 1100)
            cut = by_hand.plan_by_hand(parent.strategy, parent.state, 0)[0].cut
            by_hand.compact_now(parent, focus="", keep=0, cut=cut, language="en")
            await until(lambda: parent.status == "idle")
            assert isinstance(events(parent, e.ContextCompacted)[-1], e.ContextCompacted)
            forks = [await fork(opened, parent, task) for task in range(3)]
            assert [each.state.settings["budget"] for each in forks] == [700, 700, 900]
            assert [each.state.name for each in forks] == ["first"] * 3
            assert "CompactionAsked" in names(parent)
            assert "CompactionAsked" not in names(forks[2]), "a compaction after the task belongs to no fork from it"

    asyncio.run(scenario())


def test_a_task_that_runs_or_is_not_there_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running(delay=0.02) as server:
            async with library(tmp_path, lab="01", server=server) as opened:
                parent = await opened.create(language="en")
                assert names(await fork(opened, parent, 0))[-1] == "SessionForked", "before the first task too"
                await run(parent, "Explain this project.")
                parent.start_task("Run the tests.", language="en")
                await until(lambda: parent.status == "waiting")
                before = left(opened)
                with pytest.raises(Busy):
                    await fork(opened, parent, 2)
                for task in (3, -1):
                    with pytest.raises(KeyError):
                        await fork(opened, parent, task)
                assert left(opened) == before
                forked = await fork(opened, parent, 1)
                assert len(forked.state.tasks) == 1 and parent.status == "waiting", (
                    "an ended task can be forked meanwhile"
                )
                await parent.stop()
                stopped = await fork(opened, parent, 2)
                assert stopped.state.tasks[1].ended == "stopped" and not stopped.state.unanswered

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("loss", "code"),
    [
        ("manifest", "snapshot_missing"),
        ("content", "fork_failed"),
        ("journal", "journal_write"),
        ("disk", "fork_failed"),
    ],
)
def test_nothing_half_made_stays(tmp_path: Path, loss: str, code: str) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            parent = await opened.create(language="en")
            await run_sample(parent, FIX)
            await parent.keeper.done()
            await until(lambda: parent.committed == len(parent.records))
            before = left(opened)
            match loss:
                case "manifest":
                    (parent.keeper.store / "1.json").unlink()
                case "content":
                    shutil.rmtree(parent.keeper.store / "objects")
                case "journal":
                    with create_engine(f"sqlite:///{tmp_path}/journal.db").begin() as connection:
                        when = "create trigger full before insert on event when new.seq > 3"
                        connection.execute(text(f"{when} begin select raise(abort, 'x'); end"))
                case "disk":
                    change = parent.keeper.store / "1.json"
                    body = json.loads(change.read_text())
                    body["entries"].append(["no/such/folder", "folder", 0o755, 0, 0, 0, 0, ""])
                    change.write_text(json.dumps(body))
            with pytest.raises(Problem) as caught:
                await fork(opened, parent, 1)
            assert caught.value.code == code
            assert left(opened) == before
            if loss == "manifest":
                assert postage(await fork(opened, parent, 0)), "from another task it works"

    asyncio.run(scenario())


def test_what_writes_next_waits_for_the_snapshot(tmp_path: Path) -> None:
    async def scenario() -> None:
        work = tmp_path / "workspace"
        work.mkdir()
        for number in range(300):
            (work / f"{number:03}.txt").write_text(str(number))
        keeper = Keeper(work)

        async def write(task: int) -> None:
            (work / "written.txt").write_text(str(task))
            keeper.follow(e.TaskEnded(task=task, reason="answered", seconds=0.0))

        keeper.keep(0)
        for task in (1, 2, 3):
            await keeper.then(functools.partial(write, task))
        await keeper.done()
        for task in range(4):
            restore(keeper.store, task, tmp_path / str(task))
            written = tmp_path / str(task) / "written.txt"
            assert (written.read_text() if written.exists() else "0") == str(task)

    asyncio.run(scenario())


def test_tasks_that_follow_at_once_have_snapshots_of_their_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = tmp_path / "source"
        source.mkdir()
        (source / "test_it.py").write_text(
            "import unittest\nopen('log.txt', 'a').write('ran\\n')\n"
            "class T(unittest.TestCase):\n    def test(self): pass\n"
        )
        async with library(tmp_path, lab="01", source=source) as opened:
            session = await opened.create(language="en")
            for _ in range(3):
                session.start_task("Run the tests.", language="en")
                while session.status != "idle":
                    if session.waiting:
                        session.answer(session.waiting.call_id, True)
                    await asyncio.sleep(0)
            for task in range(4):
                log = (await fork(opened, session, task)).workspace.root / "log.txt"
                assert (log.read_text().count("ran") if log.exists() else 0) == task

    asyncio.run(scenario())


def test_stop_while_a_snapshot_is_taken_ends_the_task(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            session = await opened.create(language="en")
            # The first snapshot is not even begun: nothing has given way to it yet.
            session.start_task("Explain this project.", language="en")
            await session.stop()
            assert session.status == "idle" and session.state.tasks[0].ended == "stopped"
            await run(session, "Explain this project.")
            assert session.state.tasks[1].ended == "answered"
            await session.keeper.done()
            assert all(load(session.keeper.store, task) for task in range(3))

    asyncio.run(scenario())


KILLED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from harness.copies.fork import fork
from tests.harness_support import library, run_sample, running, until

async def main():
    with running(delay=0.03) as server:
        async with library(Path(sys.argv[1]), lab="01", server=server) as opened:
            parent = await opened.create(language="en")
            await run_sample(parent, 2)
            made = await fork(opened, parent, 1)
            for session in (parent, made):
                session.start_task("Run the tests.", language="en")
                await until(lambda: session.status == "waiting")
                await until(lambda: session.committed == len(session.records))
            print(parent.id, made.id, flush=True)
            await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_kill_costs_neither_session_anything(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(ROOT)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    ids = process.stdout.readline().split()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="01", server=server) as opened:
                for session_id in ids:
                    session = await opened.open(session_id)
                    assert [task.ended for task in session.state.tasks] == ["answered", "interrupted"]
                    for task in range(3):
                        made = await fork(opened, session, task)
                        assert ("grams <= limit" in postage(made)) == (task > 0)
                        await run(made, "Explain this project.")
                        assert_digests(made.records)
                    await run(session, "Explain this project.")

    asyncio.run(scenario())


def test_a_fork_of_an_imported_session_is_imported_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            first = await opened.create(language="en")
            await run_sample(first, 1)
            await until(lambda: first.committed == len(first.records))
            data = b"".join(export(opened.journal, first.id))
            await delete(opened, first.id)
            parent = await opened.open(await bring_in(opened, io.BytesIO(data), "log.jsonl"))
            forked = await fork(opened, parent, 1)
            said = [e.SessionImported(file="log.jsonl"), e.SessionForked(session=parent.id, task=1)]
            assert names(forked)[-3] == "TaskEnded" and [each.event for each in forked.records[-2:]] == said
            assert [each.seq for each in forked.records] == list(range(1, len(forked.records) + 1))
            assert forked.records[-2] == parent.records[-1], "with the time of that"
            assert {info.file for info in read_sessions(opened.journal, opened.setup.labs).sessions} == {"log.jsonl"}
            again = await fork(opened, forked, 1)
            assert events(again, e.SessionImported) == said[:1]
            assert await opened.latest() is None, "nothing that came from elsewhere opens first"
            await run_sample(again, 2)
            later = await fork(opened, again, 2)
            assert events(later, e.SessionImported) == said[:1], "once is enough"

    asyncio.run(scenario())


def test_a_session_without_snapshots_gets_one_of_its_last_task(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            session = await opened.create(language="en")
            await run_sample(session, FIX)
        shutil.rmtree(session.keeper.store)
        async with library(tmp_path, lab="01") as opened:
            session = await opened.open(session.id)
            assert "grams <= limit" in postage(await fork(opened, session, 1))
            with pytest.raises(Problem) as caught:
                await fork(opened, session, 0)
            assert caught.value.code == "snapshot_missing"

    asyncio.run(scenario())
