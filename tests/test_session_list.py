"""The list of sessions: its figures are the journal's, it is searched and paged, and a deleted session is gone."""

import asyncio
import contextlib
import sqlite3
import stat
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from harness import by_hand
from harness import events as e
from harness.deletion import delete
from harness.journal import Journal, JournalError, Recorded
from harness.library import Library
from harness.problems import Problem
from harness.session_list import PAGE, SessionInfo, SessionPage, read_session, read_sessions
from harness.sizes import Size
from tests.harness_support import events, library, run, run_sample, until
from tests.session_events_support import Story


@pytest.fixture
def journal(tmp_path: Path):
    opened = Journal(f"sqlite:///{tmp_path / 'j.db'}")
    yield opened
    opened.close()


def listed(opened: Library, search: str = "") -> list[SessionInfo]:
    return list(read_sessions(opened.journal, opened.setup.labs, search=search).sessions)


def found(journal: Journal, search: str) -> list[str]:
    return [info.id for info in read_sessions(journal, {}, search=search).sessions]


def records(*told: e.Event, began: float = 0.0) -> list[Recorded]:
    return [Recorded(seq, began + seq, event) for seq, event in enumerate(told, 1)]


def started(**more: object) -> e.SessionStarted:
    values = {"lab": "07", "extensions": (), "workspace": "w", "language": "en", "source": "/src"} | more
    return e.SessionStarted(**values)


MODEL = e.ModelChosen(model="offline", provider="offline", reason="no_key")


def task(number: int, words: str) -> e.TaskStarted:
    return e.TaskStarted(task=number, text=words, language="en")


def test_every_figure_is_the_journals(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            for number in (1, 2, 3):
                await run_sample(session, number)
            await until(lambda: session.committed == len(session.records))
            [info] = listed(opened)
            turns = [call for call in session.state.calls if call.purpose == "turn"]
            assert info.largest == max((call.size for call in turns), key=lambda size: size.chars)
            assert (info.tasks, info.compactions, info.in_force) == (3, 1, 1)
            assert (info.lab, info.extensions, info.name, info.file, info.fork) == ("07", (), "", None, None)
            assert info.first == session.state.tasks[0].text and info.model == session.state.model
            assert info.time == session.records[-1].time
            by_hand.undo(session, 1)
            by_hand.rename(session, "  Our \n log ")
            await opened.change_extensions(session, ("01",))
            await until(lambda: session.committed == len(session.records))
            [info] = listed(opened)
            assert (info.compactions, info.in_force, info.name, info.extensions) == (1, 0, "Our log", ("01",))
            by_hand.rename(session, "")
            await until(lambda: session.committed == len(session.records))
            assert read_session(opened.journal, session.id) == listed(opened)[0]
            assert listed(opened)[0].name == "" and read_session(opened.journal, "none") is None

    asyncio.run(scenario())


def test_the_largest_request_is_of_a_turn_and_its_tokens_are_of_the_same_one(journal: Journal) -> None:
    def call(number: int, chars: int, tokens: int) -> e.ModelCallStarted:
        parts = {"system": Size(10, 5), "user": Size(chars, tokens)}
        return e.ModelCallStarted(call=number, task=1, turn=1, messages=1, parts=parts, digest="d")

    journal.store("a", records(started(), MODEL, task(1, "x"), call(1, 90, 80), call(2, 200, 7), call(3, 100, 90)))
    assert read_sessions(journal, {}).sessions[0].largest == Size(210, 12)


def test_the_last_active_comes_first_and_a_new_name_is_no_activity(journal: Journal) -> None:
    journal.store("old", records(started(), MODEL, began=100))
    journal.store("new", records(started(), MODEL, began=200))
    journal.store("named", [*records(started(), began=50), Recorded(2, 900.0, e.SessionNamed(name="x"))])
    journal.store("forked", [*records(started(), began=10), Recorded(2, 150.0, e.SessionForked(session="old", task=0))])
    page = read_sessions(journal, {})
    assert [info.id for info in page.sessions] == ["new", "forked", "old", "named"]
    assert [info.time for info in page.sessions] == [202.0, 150.0, 102.0, 51.0]


def test_where_a_session_came_from(journal: Journal) -> None:
    journal.store("parent", records(started(), MODEL))
    journal.store("child", records(started(), e.SessionForked(session="parent", task=2)))
    journal.store("orphan", records(started(), e.SessionForked(session="gone", task=1)))
    journal.store("guest", records(started(), e.SessionImported(file="x.jsonl")))
    infos = {info.id: info for info in read_sessions(journal, {}).sessions}
    assert infos["child"].fork == e.SessionForked(session="parent", task=2) and infos["child"].parent_there
    assert infos["orphan"].fork and not infos["orphan"].parent_there
    assert infos["guest"].file == "x.jsonl" and infos["parent"].file is None


def test_a_search_looks_for_every_word_whatever_its_case(journal: Journal) -> None:
    named = (e.SessionNamed(name="Alte Liste"), e.SessionNamed(name="ÜBUNG fünf"))
    journal.store("a", records(started(), MODEL, *named, task(1, "Sort the Log"), task(2, "查日志 now")))
    other = e.ModelChosen(model="Deep-9", provider="compatible", reason="base_url")
    journal.store("b", records(started(lab="01"), other, MODEL, task(1, "Explain 100% of_it")))
    assert found(journal, "übung") == ["a"] and found(journal, "log THE") == ["a"] and found(journal, "日志") == ["a"]
    assert found(journal, "01") == ["b"] and found(journal, "offline") == ["a", "b"]
    assert found(journal, "alte") == [] and found(journal, "deep") == [], "only the name and the model in force"
    assert found(journal, "log explain") == [], "of different sessions"
    assert found(journal, "0%") == ["b"] and found(journal, "f_i") == ["b"] and found(journal, "_%") == []
    assert found(journal, "task") == found(journal, "language") == [], "how it is stored is not what was said"
    assert len(found(journal, " ")) == 2
    page = read_sessions(journal, {}, search="  log   the ")
    assert (page.search, page.found, page.all) == ("log the", 1, 2)


def test_a_search_knows_the_labs_titles(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            await until(lambda: session.committed == len(session.records))
            title = opened.setup.lab.title
            for words in (title["en"].upper(), title["zh"], "context-management", "07"):
                assert [info.id for info in listed(opened, words)] == [session.id]

    asyncio.run(scenario())


def test_a_long_list_comes_in_pages(journal: Journal) -> None:
    for number in range(2 * PAGE + 7):
        journal.store(f"s{number}", records(started(), MODEL, task(1, f"number {number} end"), began=number))

    def page(number: int, search: str = "") -> SessionPage:
        return read_sessions(journal, {}, number=number, search=search)

    first, last = page(1), page(3)
    assert (first.found, first.all, first.pages, len(first.sessions), len(last.sessions)) == (107, 107, 3, PAGE, 7)
    everyone = [info.id for number in (1, 2, 3) for info in page(number).sessions]
    assert everyone == [f"s{number}" for number in reversed(range(107))]
    assert page(99) == last and page(-1) == page(0) == first
    assert [info.id for info in page(1, "number 10 end").sessions] == ["s106", "s105", "s104", "s103", "s102", "s101",
                                                                     "s100", "s10"]  # fmt: skip
    assert page(5, "nothing").pages == 1 and page(5, "nothing").sessions == ()


def test_what_cannot_be_read_hides_nothing(journal: Journal, tmp_path: Path) -> None:
    journal.store("good", records(started(), MODEL, task(1, "x")))
    journal.store("bad", records(started(), MODEL, task(1, "y")))
    with create_engine(f"sqlite:///{tmp_path / 'j.db'}").begin() as connection:
        connection.execute(text("update event set body = '{}' where session = 'bad' and seq in (1, 3)"))
    infos = {info.id: info for info in read_sessions(journal, {}).sessions}
    assert infos["good"].first == "x"
    assert (infos["bad"].lab, infos["bad"].first, infos["bad"].tasks, infos["bad"].model) == ("", "", 1, MODEL)
    assert found(journal, "x") == ["good"]


def test_what_opens_first_is_ones_own_last_work(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            first, second = await opened.create(language="en"), await opened.create(language="en")
            await until(lambda: second.committed == len(second.records))
            assert await opened.latest() == second.id
            await run(first, "Invent a new colour.")
            await until(lambda: first.committed == len(first.records))
            assert await opened.latest() == first.id
            own = first.records[0].event
            fork = [
                *second.records,
                Recorded(
                    len(second.records) + 1, first.records[-1].time + 1, e.SessionForked(session=second.id, task=0)
                ),
            ]
            opened.journal.store("fork", fork)
            assert await opened.latest() == first.id, "a fork whose workspace is not there"
            opened.folder("fork").mkdir(parents=True)
            assert await opened.latest() == "fork", "however old what it has from its parent is"
            later = first.records[-1].time + 100
            for name, event, last in (("guest", own, e.SessionImported(file="x")), ("elsewhere", started(), MODEL)):
                opened.journal.store(name, [Recorded(1, later, event), Recorded(2, later, last)])
                opened.folder(name).mkdir(parents=True)
            assert await opened.latest() == "fork"
            by_hand.rename(second, "later than all")
            await until(lambda: second.committed == len(second.records))
            assert await opened.latest() == "fork"

    asyncio.run(scenario())


def test_a_deleted_session_is_gone_and_only_that_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            kept, gone = await opened.create(language="en"), await opened.create(language="en")
            locked = gone.workspace.root / "locked"
            locked.mkdir()
            (locked / "file").write_text("x")
            locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
            await run(kept, "Invent a new colour.")
            await delete(opened, gone.id)
            assert [info.id for info in listed(opened)] == [kept.id]
            assert not opened.folder(gone.id).parent.exists() and opened.folder(kept.id).is_dir()
            assert opened.journal.read(gone.id) == [] and opened.journal.read(kept.id) == kept.records
            with pytest.raises(KeyError):
                await opened.open(gone.id)
            for unknown in (gone.id, "none", "..", ""):
                with pytest.raises(KeyError):
                    await delete(opened, unknown)
            assert opened.folder(kept.id).is_dir()

    asyncio.run(scenario())


def test_what_runs_in_a_deleted_session_is_stopped_and_nothing_is_written_after(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            session = await opened.create(language="en")
            session.start_task("Run the tests.", language="en")
            await until(lambda: session.status == "waiting")
            watched = session.subscribe()
            await delete(opened, session.id)
            assert session.status == "idle" and events(session, e.TaskEnded)[0].reason == "stopped"
            assert session.failure and session.failure.code == "session_deleted", "those who watch are told"
            async with asyncio.timeout(5):
                async for _ in watched:
                    pass
            with pytest.raises(JournalError):
                by_hand.rename(session, "again")
            told: list[Exception | None] = []
            opened.journal.append(session.id, Recorded(99, 0.0, MODEL), told.append)
            await until(lambda: told)
            assert isinstance(told[0], JournalError) and opened.journal.read(session.id) == []
            other = await opened.create(language="en")
            await until(lambda: other.committed == len(other.records))

    asyncio.run(scenario())


def test_who_opens_a_session_while_it_is_deleted_gets_nothing_that_lasts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            await run(session, "Invent a new colour.")
            await opened.forget(session.id)
            with contextlib.closing(sqlite3.connect(tmp_path / "journal.db")) as held:
                held.execute("BEGIN IMMEDIATE")
                early = asyncio.create_task(opened.open(session.id))
                await asyncio.sleep(0)
                deleting = asyncio.create_task(delete(opened, session.id))
                assert (await early).records
                # It can be read for as long as the writer has to wait.
                await until(lambda: early.result().failure)
                late = await opened.open(session.id)
                assert late is not early.result() and not late.failure
                held.rollback()
            await deleting
            assert late.failure and late.failure.code == "session_deleted"
            with pytest.raises(KeyError):
                await opened.open(session.id)
            assert not opened.folder(session.id).parent.exists()

    asyncio.run(scenario())


def test_a_session_that_cannot_be_opened_can_be_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            # Nothing waits for the journal when a session is closed, and here it is changed behind its back.
            await until(lambda: session.committed == len(session.records))
            await opened.forget(session.id)
            with create_engine(f"sqlite:///{tmp_path}/journal.db").begin() as connection:
                connection.execute(text("update event set kind = 'FromTheFuture' where seq = 2"))
            with pytest.raises(JournalError):
                await opened.open(session.id)
            await delete(opened, session.id)
            assert listed(opened) == []

    asyncio.run(scenario())


def test_what_is_left_of_a_folder_is_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            folder, elsewhere = opened.folder(session.id).parent, tmp_path / "another disk"
            folder.rename(elsewhere)
            folder.symlink_to(elsewhere)
            with pytest.raises(Problem) as caught:
                await delete(opened, session.id)
            assert (caught.value.code, caught.value.values) == ("folder_kept", {"folder": folder})
            assert elsewhere.is_dir(), "a link is not followed"
            assert opened.journal.read(session.id) == []

    asyncio.run(scenario())


def test_a_delete_that_the_database_refuses_costs_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            await run(session, "Invent a new colour.")
            with create_engine(f"sqlite:///{tmp_path}/journal.db").begin() as connection:
                connection.execute(
                    text("create trigger no before delete on event begin select raise(abort, 'no'); end")
                )
            with pytest.raises(JournalError) as caught:
                await delete(opened, session.id)
            assert caught.value.code == "journal_write"
            again = await opened.open(session.id)
            assert again.records == session.records and opened.folder(session.id).is_dir()
            await run(again, "Invent another one.")
            assert again.state.tasks[-1].ended == "answered" and not again.failure

    asyncio.run(scenario())


def test_a_whole_session_is_written_or_none_of_it(journal: Journal) -> None:
    story = [Recorded(seq, float(seq), event) for seq, event in Story().events]
    journal.store("a", story)
    assert journal.read("a") == story and journal.length("a") == len(story) and journal.length("b") == 0
    with pytest.raises(JournalError):
        journal.store("b", [*story, story[0]])
    assert journal.read("b") == []
