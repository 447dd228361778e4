"""A session outlives the server: the same feed, the same context, the same next request, byte for byte."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from harness import by_hand
from harness import events as e
from harness.journal import Journal, JournalError
from harness.session import Session
from harness.session_list import read_sessions
from harness.subscription import BACKLOG, Feed
from tests.harness_support import ROOT, assert_rebuilt, events, library, run, run_sample, running, until


def as_json(session: Session) -> list[str]:
    return [f"{recorded.seq} {recorded.event}" for recorded in session.records]


def test_a_reopened_session_sends_the_same_next_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                await run_sample(session, 2)
                assert events(session, e.ContextCompacted)
                before = as_json(session), session.state.request().body(), session.state.context.totals
            async with library(tmp_path, server=server) as opened:
                assert await opened.latest() == session.id
                again = await opened.open(session.id)
                assert again is not session
                assert (as_json(again), again.state.request().body(), again.state.context.totals) == before
                await run_sample(again, 3)
                assert_rebuilt(again, server.requests)
                assert [type(each).__name__ for each in events(again, e.ModelChosen, e.InstructionsSet)] == [
                    "ModelChosen", "InstructionsSet",
                ], "nothing changed, so nothing is recorded anew"  # fmt: skip

    asyncio.run(scenario())


KILLED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.harness_support import library, running, run_sample, until

async def main():
    with running(delay=0.03) as server:
        async with library(Path(sys.argv[1]), lab="01", server=server) as opened:
            session = await opened.create(language="en")
            session.start_task("Run the tests.", language="en")
            await until(lambda: session.status == "waiting")
            await until(lambda: session.committed == len(session.records))
            print(session.id, len(session.records), flush=True)
            await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_server_loses_nothing_and_the_task_ends_as_interrupted(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(ROOT)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    session_id, shown = process.stdout.readline().split()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="01", server=server) as opened:
                session = await opened.open(session_id)
                assert len(session.records) == int(shown) + 2
                assert session.state.tasks[0].ended == "interrupted"
                assert session.status == "idle" and not session.state.unanswered
                roles = [message["role"] for message in session.state.request().messages]
                assert roles[-2:] == ["assistant", "tool"], "the open call got a result"
                await run(session, "Explain this project.")
                assert session.state.tasks[1].ended == "answered"
                assert await opened.open(session_id) is session, "opened once, settled once"

    asyncio.run(scenario())


def test_sessions_work_in_copies_and_do_not_see_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="01", server=server) as opened:
                one, two = await opened.create(language="en"), await opened.create(language="en")
                source = (opened.setup.source / "postage.py").read_text()
                await asyncio.gather(run_sample(one, 2), run_sample(two, 3))
                mended = (one.workspace.root / "postage.py").read_text()
                assert "grams <= limit" in mended and mended != source
                assert (two.workspace.root / "postage.py").read_text() == source
                assert (opened.setup.source / "postage.py").read_text() == source
                assert one.state.history[0].message != two.state.history[0].message
                listed = read_sessions(opened.journal, opened.setup.labs).sessions
                assert {info.id for info in listed} == {one.id, two.id}
                for session in (one, two):
                    assert session.state.tasks[0].ended == "answered"

    asyncio.run(scenario())


def test_the_list_names_each_session_and_its_first_task(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            assert await opened.latest() is None
            session = await opened.create(language="en")
            empty = await opened.create(language="zh")
            await run(session, "Invent a new colour.")
            listed = read_sessions(opened.journal, opened.setup.labs).sessions
            assert [(info.id, info.tasks, info.first) for info in listed] == [
                (session.id, 1, "Invent a new colour."), (empty.id, 0, ""),
            ]  # fmt: skip
            with pytest.raises(KeyError):
                await opened.open("no such session")

    asyncio.run(scenario())


def test_two_watchers_see_the_same_events_in_order_and_only_committed_ones(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            await until(lambda: session.committed == len(session.records))
            seen: list[list[int]] = [[], []]

            async def watch(number: int) -> None:
                async for item in session.subscribe():
                    if not isinstance(item, e.TextDelta):
                        assert item.seq <= session.committed
                        seen[number].append(item.seq)
                    if not isinstance(item, e.TextDelta) and isinstance(item.event, e.TaskEnded):
                        return

            start = len(session.records)
            watchers = [asyncio.create_task(watch(number)) for number in (0, 1)]
            await asyncio.sleep(0)
            await run_sample(session, 1)
            async with asyncio.timeout(10):
                await asyncio.gather(*watchers)
            assert seen[0] == seen[1] == list(range(start + 1, len(session.records) + 1))

    asyncio.run(scenario())


def test_a_watcher_that_is_too_slow_is_let_go() -> None:
    async def scenario() -> None:
        feed = Feed(0)
        slow, fast = feed.subscribe(), feed.subscribe()
        got = 0
        for number in range(BACKLOG + 50):
            feed.push(e.TextDelta(call=1, text=str(number)))
            if number == BACKLOG - 1:
                async for _ in fast:
                    got += 1
                    if got == BACKLOG:
                        break
        assert [item.text async for item in slow] == [str(number) for number in range(BACKLOG)]  # type: ignore[union-attr]
        fast.end()
        assert len([item async for item in fast]) == 50

    asyncio.run(scenario())


def test_a_setting_is_recorded_and_survives(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, settings={"budget": 700, "unheard": 1}) as opened:
            session = await opened.create(language="en")
            assert session.state.settings["budget"] == 700 and "unheard" not in session.state.settings
            by_hand.change_setting(session, "budget", 900)
            by_hand.change_setting(session, "budget", 900)
            for name, value in (("budget", -1), ("budget", 10**9), ("colour", 1)):
                with pytest.raises(ValueError):
                    by_hand.change_setting(session, name, value)
            assert len(events(session, e.SettingChanged)) == 1
        async with library(tmp_path) as opened:
            assert (await opened.open(session.id)).state.settings["budget"] == 900

    asyncio.run(scenario())


def test_a_journal_that_cannot_be_written_stops_the_session_and_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            await until(lambda: session.committed == len(session.records))
            with create_engine(f"sqlite:///{tmp_path}/journal.db").begin() as connection:
                connection.execute(text("drop table event"))
            committed = session.committed
            session.start_task("Invent a new colour.", language="en")
            await until(lambda: session.failure)
            await until(lambda: session.status == "idle")
            assert session.failure and session.failure.code == "journal_write"
            assert session.committed == committed, "what is not safe is not shown"
            with pytest.raises(JournalError):
                session.start_task("Again.", language="en")

    asyncio.run(scenario())


def test_an_event_of_a_newer_version_is_refused_and_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
        with create_engine(f"sqlite:///{tmp_path}/journal.db").begin() as connection:
            connection.execute(text("update event set kind = 'FromTheFuture' where seq = 2"))
        async with library(tmp_path) as opened:
            with pytest.raises(JournalError) as caught:
                await opened.open(session.id)
            assert caught.value.values == {"kind": "FromTheFuture"}
        journal = Journal(f"sqlite:///{tmp_path}/journal.db")
        assert [recorded.seq for _, recorded in journal.read_kind("SessionStarted")] == [1]
        journal.close()

    asyncio.run(scenario())


def test_the_same_extension_twice_counts_once_and_a_broken_one_is_reported(tmp_path: Path) -> None:
    labs = tmp_path / "labs"
    broken = labs / "21-broken"
    broken.mkdir(parents=True)
    for name in ("01-mini-coding-agent", "07-context-management"):
        (labs / name).symlink_to(ROOT / "labs" / name)
    words = '{ en = "x", zh = "x" }'
    (broken / "lab.toml").write_text(f'demo = "incident-log"\ntitle = {words}\ngoal = {words}\n')
    (broken / "extension.py").write_text(
        "async def on_stop(agent):\n    raise RuntimeError('oh')\n\n"
        "def on_event(happened):\n"
        "    if type(happened.recorded.event).__name__ == 'TaskStarted':\n        raise ValueError('no')\n"
    )

    async def scenario() -> None:
        async with library(tmp_path, labs=labs, extensions=("21", "21", "07")) as opened:
            session = await opened.create(language="en")
            assert [each.name for each in session.extensions] == ["mini-coding-agent", "broken", "context-management"]
            await run_sample(session, 1)
            failed = events(session, e.HookFailed)
            assert [(each.extension, each.hook) for each in failed] == [("broken", "on_event"), ("broken", "on_stop")]
            assert session.state.tasks[0].ended == "answered"
            assert events(session, e.BoundaryMeasured), "the other extension ran all the same"
            assert json.loads(session.state.request().body())

    asyncio.run(scenario())
