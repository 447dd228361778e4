"""A session travels as a file: what comes back is the same, and a file that is not sure leaves nothing behind."""

import asyncio
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from harness import by_hand
from harness import events as e
from harness.exchange import session_file
from harness.exchange.in_place import APART
from harness.exchange.transfer import DEMOS, bring_in, export
from harness.library import Library
from harness.problems import Problem
from harness.recorded import encode
from harness.replay import rebuild
from harness.request import Request, digest
from harness.session import Session
from harness.session_list import read_sessions
from harness.tokens import size_of_message
from tests.harness_support import (
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
from web.feed import render_feed
from web.pages import Pages
from web.viewer import Viewer

VIEWER = Viewer(Pages.load(), form_token="t")
Lines = list[dict[str, Any]]


def taken_out(opened: Library, session: Session) -> bytes:
    return b"".join(export(opened.journal, session.id))


async def lived(opened: Library) -> Session:
    """A session with three tasks, a compaction that was undone, one by hand, a name, a setting and a fault."""
    session = await opened.create(language="en")
    for number in (1, 2):
        await run_sample(session, number)
    by_hand.undo(session, 1)
    by_hand.rename(session, "Our log")
    by_hand.change_setting(session, "budget", 1600)
    await run_sample(session, 3)
    cut = by_hand.plan_by_hand(session.strategy, session.state, 0)[0].cut
    by_hand.compact_now(session, focus="times", keep=0, cut=cut, language="en")
    await until(lambda: session.status == "idle" and session.committed == len(session.records))
    return session


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a session that has lived, made once for all tests that change it."""

    async def scenario() -> bytes:
        async with library(tmp_path_factory.mktemp("first")) as opened:
            return taken_out(opened, await lived(opened))

    return asyncio.run(scenario())


def test_what_comes_back_is_the_same_and_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            (tmp_path / "one").mkdir()
            (tmp_path / "two").mkdir()
            async with library(tmp_path / "one", server=server) as opened:
                first = await lived(opened)
                data, count = taken_out(opened, first), len(first.records)
                rows = render_feed(first, VIEWER).replace(first.id, "ID")
            async with library(tmp_path / "two", server=server) as opened:
                again = await opened.open(await bring_in(opened, io.BytesIO(data), "log.jsonl"))
                assert again.id != first.id and names(again)[count:] == ["SessionImported"]
                assert again.records[1:count] == first.records[1:]
                assert render_feed(again, VIEWER, until=count).replace(again.id, "ID") == rows
                for number in range(1, len(first.state.calls) + 1):
                    bodies = [rebuild([(r.seq, r.event) for r in s.records], number).body() for s in (first, again)]
                    assert bodies[0] == bodies[1]
                assert again.state.request() == first.state.request()
                own = {path.name for path in (DEMOS / again.lab.demo).iterdir()}
                assert {path.name for path in again.workspace.root.iterdir()} == own
                await run_sample(again, 4)
                assert again.state.tasks[-1].ended == "answered"
                assert_rebuilt(again, server.requests)
                assert await opened.latest() is None, "it is not what opens first"

    asyncio.run(scenario())


def test_the_same_file_twice_is_two_sessions(tmp_path: Path, file: bytes) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            one, two = [await bring_in(opened, io.BytesIO(file), "a/b\n.jsonl " + "x" * 500) for _ in range(2)]
            assert one != two
            infos = read_sessions(opened.journal, opened.setup.labs).sessions
            assert {info.id for info in infos} == {one, two} and {info.name for info in infos} == {"Our log"}
            assert all(info.file and len(info.file) <= 120 and "\n" not in info.file for info in infos)
            session = await opened.open(one)
            again = await bring_in(opened, io.BytesIO(taken_out(opened, session)), "again")
            assert names(await opened.open(again))[-2:] == ["SessionImported", "SessionImported"]

    asyncio.run(scenario())


def test_a_task_that_was_running_ends_as_after_a_kill(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            session = await opened.create(language="en")
            session.start_task("Run the tests.", language="en")
            await until(lambda: session.status == "waiting" and session.committed == len(session.records))
            data = taken_out(opened, session)
            again = await opened.open(await bring_in(opened, io.BytesIO(data), "x"))
            assert names(again)[-4:] == ["ApprovalRequested", "SessionImported", "ToolEnded", "TaskEnded"]
            assert again.state.tasks[0].ended == "interrupted" and again.status == "idle"
            await session.stop()
            await run(again, "Explain this project.")
            assert again.state.tasks[1].ended == "answered"

    asyncio.run(scenario())


def test_a_file_holds_what_is_committed_and_not_where_the_folder_lies(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await lived(opened)
            header, *lines = [json.loads(line) for line in taken_out(opened, session).decode().splitlines()]
            assert header == {"format": "context-lab", "version": 1, "events": len(session.records)}
            assert [line["seq"] for line in lines] == list(range(1, len(session.records) + 1))
            for line, recorded in zip(lines[1:], session.records[1:], strict=True):
                assert (line["kind"], line["body"]) == (
                    names(session)[recorded.seq - 1],
                    json.loads(encode(recorded.event)[1]),
                )
                assert line["time"] == recorded.time
            assert lines[0]["body"]["source"] == "" and str(opened.setup.source) not in str(lines)
            pieces = export(opened.journal, session.id)
            by_hand.rename(session, "later")
            await until(lambda: session.committed == len(session.records))
            assert b"later" not in b"".join(pieces), "a file is of one moment"
            with pytest.raises(KeyError):
                export(opened.journal, "none")

    asyncio.run(scenario())


def test_a_file_does_not_hold_the_paths_that_an_extension_complained_of(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await lived(opened)
            raised = repr(RuntimeError("Symlink loop from '/home/me/s'"))
            failed = e.HookFailed(task=1, extension="x", hook="tools", detail=raised)
            session.emit(failed)
            await until(lambda: session.committed == len(session.records))
            last = json.loads(taken_out(opened, session).decode().splitlines()[-1])
            assert last["body"] == asdict(replace(failed, detail="RuntimeError"))
            assert session.records[-1].event == failed, "the session itself keeps what was raised"

    asyncio.run(scenario())


def test_a_long_session_comes_in_pieces(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            for number in range(350):
                by_hand.change_setting(session, "budget", number)
            await until(lambda: session.committed == len(session.records))
            pieces = list(export(opened.journal, session.id))
            assert len(pieces) > 4 and b"".join(pieces).count(b"\n") == len(session.records) + 1
            again = await opened.open(await bring_in(opened, io.BytesIO(b"".join(pieces)), "x"))
            assert again.state.settings["budget"] == 349

    asyncio.run(scenario())


def test_a_file_ends_early_where_its_session_is_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await lived(opened)
            pieces = export(opened.journal, session.id)
            next(pieces)
            await opened.forget(session.id)
            opened.journal.delete(session.id)
            with pytest.raises(KeyError):
                list(pieces)

    asyncio.run(scenario())


def unpacked(file: bytes) -> Lines:
    return [json.loads(line) for line in file.decode().splitlines()]


def packed(lines: Lines) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def body(lines: Lines, kind: str, number: int = 0) -> dict[str, Any]:
    return [line["body"] for line in lines[1:] if line["kind"] == kind][number]


def put(kind: str, path: str, value: object, number: int = 0) -> Callable[[Lines], None]:
    """Return a change: set one value of an event's body."""

    def change(lines: Lines) -> None:
        target = body(lines, kind, number)
        *way, last = [int(name) if name.isdecimal() else name for name in path.split(".")]
        for name in way:
            target = target[name]
        assert target[last] != value
        target[last] = value

    return change


def added(kind: str, values: dict[str, Any], after: str | None = None) -> Callable[[Lines], None]:
    """Return a change: one more event, behind the first one of kind `after` or at the end."""

    def change(lines: Lines) -> None:
        kinds = [line.get("kind") for line in lines]
        place = kinds.index(after) + 1 if after else len(lines)
        lines.insert(place, {"seq": 0, "time": 1.0, "kind": kind, "body": values})
        lines[0]["events"] += 1
        for seq, line in enumerate(lines[1:], 1):
            line["seq"] = seq

    return change


def trusted_in_a_task(lines: Lines) -> None:
    """One more task begins, and while it runs the folder is trusted."""
    task = [line.get("kind") for line in lines].count("TaskStarted") + 1
    added("TaskStarted", {"task": task, "text": "x", "language": "en"})(lines)
    added("WorkspaceTrusted", {"trusted": True, "by": "person"})(lines)


def header(**values: object) -> Callable[[Lines], None]:
    return lambda lines: lines[0].update(values)


def moved(lines: Lines) -> None:
    lines[3], lines[4] = lines[4], lines[3]


def swapped(lines: Lines) -> None:
    lines[5]["body"], lines[5]["kind"], lines[4]["body"], lines[4]["kind"] = (
        lines[4]["body"], lines[4]["kind"], lines[5]["body"], lines[5]["kind"],
    )  # fmt: skip


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


PROPOSED = {"task": 3, "text": "t"}
CHANGES: list[tuple[str, Callable[[Lines], Any]]] = [
    ("import_format", header(format="other")),
    ("import_format", header(version="1")),
    ("import_format", header(events=None)),
    ("import_format", header(events=-5)),
    ("import_version", header(version=2)),
    ("import_events", header(events=10**6)),
    ("import_short", header(events=5)),
    ("import_short", lambda lines: lines.pop()),
    ("import_number", lambda lines: lines.pop(4)),
    ("import_number", moved),
    ("import_order", swapped),
    ("import_line", lambda lines: lines[3].pop("time")),
    ("import_line", lambda lines: lines[3].update(time=-1.0)),
    ("import_line", lambda lines: lines[3].update(time=1e15)),
    ("import_line", lambda lines: lines[3].update(body="x")),
    ("import_line", lambda lines: lines[3].update(body=nested(60))),
    ("import_line", put("SessionStarted", "settings.budget", 10**12)),
    ("import_kind", lambda lines: lines[6].update(kind="FromTheFuture")),
    ("import_event", lambda lines: lines[6].update(body={})),
    ("import_event", put("ModelChosen", "provider", "nobody")),
    ("import_lab", put("SessionStarted", "lab", "99")),
    ("import_lab", put("SessionStarted", "lab", "context-management")),
    ("import_lab", put("SessionStarted", "extensions", ["98"])),
    ("import_lab", added("ExtensionsChanged", {"extensions": ["97"], "settings": {}})),
    ("import_settings", put("SessionStarted", "settings.budget", -1)),
    ("import_settings", lambda lines: body(lines, "SessionStarted")["settings"].pop("step_limit")),
    ("import_settings", lambda lines: body(lines, "SessionStarted")["settings"].pop("summary_limit")),
    ("import_figures", put("TaskStarted", "text", "another one")),
    ("import_figures", put("ModelCallStarted", "digest", "0" * 64, 1)),
    ("import_figures", put("ModelCallStarted", "messages", 1, 1)),
    ("import_figures", put("ModelCallStarted", "parts.user.chars", 1)),
    ("import_figures", put("ModelCallStarted", "parts.user.tokens", 1)),
    ("import_figures", put("SummaryCallStarted", "size.chars", 1)),
    ("import_figures", put("SummaryCallStarted", "digest", "0" * 64)),
    ("import_figures", put("SummaryCallStarted", "messages.1.content", "x")),
    ("import_figures", put("ContextCompacted", "before.chars", 9)),
    ("import_figures", put("ContextCompacted", "after.tokens", 9)),
    ("import_figures", put("ContextCompacted", "measured", 9)),
    ("import_figures", put("ContextCompacted", "measured_after", 9)),
    ("import_figures", put("CompactionUndone", "after.chars", 9)),
    ("import_figures", put("BoundaryMeasured", "measured", 9, 1)),
    ("import_figures", put("BoundaryMeasured", "outcome", "within", 1)),
    ("import_order", put("ContextCompacted", "removed", [])),
    ("import_order", put("ContextCompacted", "kept", [1])),
    ("import_order", put("ContextCompacted", "cut", 1)),
    ("import_order", put("ContextCompacted", "number", 7)),
    ("import_order", put("ContextCompacted", "calls", [1])),
    ("import_order", put("ContextCompacted", "summary", " ")),
    ("import_order", put("CompactionUndone", "number", 2)),
    ("import_order", put("ModelCallStarted", "call", 9)),
    ("import_order", put("ModelCallEnded", "call", 9)),
    ("import_order", put("ModelCallEnded", "usage.prompt", -1)),
    ("import_order", put("ModelCallEnded", "seconds", -1.0)),
    ("import_order", put("ToolEnded", "call_id", "other")),
    ("import_order", put("ToolEnded", "name", "other")),
    ("import_order", put("TaskEnded", "task", 2)),
    ("import_order", put("TaskStarted", "task", 2)),
    ("import_order", put("SettingChanged", "name", "colour")),
    ("import_order", put("InstructionsSet", "tools.0.function", {"name": "x"})),
    ("import_order", put("InstructionsSet", "tools.0.function.description", None)),
    ("import_order", put("InstructionsSet", "tools.0.function.parameters", [])),
    ("import_order", put("SummaryCallStarted", "messages.1.role", 5)),
    ("import_order", put("SummaryCallStarted", "messages.1.content", None)),
    ("import_order", put("SummaryCallStarted", "messages.1", {"role": "user"})),
    ("import_order", put("SummaryCallStarted", "messages.1", {"role": "user", "content": "", "tool_calls": []})),
    ("import_order", added("FollowUpAdded", {"task": 1, "extension": "x", "text": "y"}, after="ToolStarted")),
    ("import_order", added("SummaryAnswered", PROPOSED | {"call": 1, "used": True, "by": "person"})),
    ("import_order", added("SummaryProposed", PROPOSED | {"call": 99, "preface": "p", "seconds": 1})),
    ("import_order", put("ModelChosen", "window", -5)),
    ("import_order", added("FaultChosen", {"fault": "x\r\nHost: y"})),
    ("import_order", lambda lines: trusted_in_a_task(lines)),
    ("import_event", added("WorkspaceTrusted", {"trusted": True, "by": "everybody"})),
    ("import_order", added("SessionForked", {"session": "s", "task": 9})),
    ("import_order", added("TaskEnded", {"task": 3, "reason": "answered", "seconds": 0.0})),
    ("import_order", added("FollowUpAdded", {"task": 1, "extension": "x", "text": "y"}, after="SessionStarted")),
    ("import_order", lambda lines: added("SessionStarted", body(lines, "SessionStarted"))(lines)),
]


@pytest.mark.parametrize(("code", "change"), CHANGES)
def test_a_file_that_is_not_sure_is_one_clear_problem_and_leaves_nothing(
    tmp_path: Path, file: bytes, code: str, change: Callable[[Lines], Any]
) -> None:
    lines = unpacked(file)
    change(lines)
    assert refused(tmp_path, packed(lines)).code == code


NUMBERS = (
    [(kind, "seconds") for kind in ("ModelCallEnded", "ToolEnded", "TaskEnded", "SummaryCallEnded", "ContextCompacted")]
    + [(kind, "usage.prompt") for kind in ("ModelCallEnded", "SummaryCallEnded", "ContextCompacted")]
    + [("ModelChosen", "window"), ("ModelCallStarted", "turn"), ("CompactionAsked", "keep")]
    + [("SummaryCallStarted", name) for name in ("attempt", "clipped", "max_tokens")]
)


@pytest.mark.parametrize(("kind", "path"), NUMBERS)
def test_a_text_is_no_way_around_the_bounds_of_numbers(tmp_path: Path, file: bytes, kind: str, path: str) -> None:
    for number in ("NaN", "inf", "-inf", "1e300", "-1", "9" * 4_000):
        lines = unpacked(file)
        put(kind, path, number)(lines)
        code = refused(tmp_path, packed(lines)).code
        assert code in ("import_order", "import_event"), number


@pytest.mark.parametrize("content", [0, False, None, [], {}])
def test_what_counts_as_nothing_is_no_text(tmp_path: Path, file: bytes, content: object) -> None:
    lines = unpacked(file)
    asked = body(lines, "SummaryCallStarted")
    asked["messages"] = [{"role": "user", "content": content}]
    request = Request("offline", tuple(asked["messages"]), (), asked["max_tokens"])
    asked |= {"size": asdict(size_of_message(asked["messages"][0])), "digest": digest(request)}
    assert refused(tmp_path, packed(lines)).code == "import_order"


ANSWERED = PROPOSED | {"task": 2, "used": False, "by": "timeout"}


@pytest.mark.parametrize(
    ("after", "until_the"),
    [
        ("ModelCallStarted", "ModelCallEnded"),
        ("ToolStarted", "ToolEnded"),
        ("ToolStarted", ""),
        ("SummaryCallStarted", "SummaryCallEnded"),
        ("SummaryCallEnded", "SummaryAnswered"),
    ],
)
def test_what_belongs_to_one_row_does_not_stand_far_apart(
    tmp_path: Path, file: bytes, after: str, until_the: str
) -> None:
    def parted(by: int) -> bytes:
        lines = unpacked(file)
        answer = ANSWERED | {"call": body(lines, "SummaryCallEnded")["call"]}
        added("SummaryAnswered", answer, "SummaryCallEnded")(lines)
        kinds = [line.get("kind") for line in lines]
        place, end = kinds.index(after) + 1, kinds.index(until_the or after) + 1
        names = [{"time": 1.0, "kind": "SessionNamed", "body": {"name": "n"}} for _ in range(by)]
        lines[place:] = names + lines[place:end]
        lines[0]["events"] = len(lines) - 1
        return packed([lines[0], *(line | {"seq": seq} for seq, line in enumerate(lines[1:], 1))])

    async def near() -> None:
        async with library(tmp_path / "near") as opened:
            assert await bring_in(opened, io.BytesIO(parted(APART // 2)), "x")

    (tmp_path / "near").mkdir()
    asyncio.run(near())
    assert refused(tmp_path, parted(APART)).code == "import_order"


def test_what_a_person_does_between_two_tasks_has_no_end(tmp_path: Path, file: bytes) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            lines = unpacked(file)
            lines += [{"time": 1.0, "kind": "SessionNamed", "body": {"name": str(n)}} for n in range(APART + 1)]
            for seq, line in enumerate(lines[1:], 1):
                line["seq"] = seq
            lines[0]["events"] = len(lines) - 1
            session = await opened.open(await bring_in(opened, io.BytesIO(packed(lines)), "x"))
            assert session.state.name == str(APART)
            await run(session, "Invent a new colour.")
            assert session.state.tasks[-1].ended == "answered"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("code", "damage"),
    [
        ("import_format", lambda file: b""),
        ("import_format", lambda file: b"\xff\xfe" + file),
        ("import_format", lambda file: b"PK\x03\x04" * 50),
        ("import_format", lambda file: b'{"format": "context-lab", "version": 1, "events": 0}\n'),
        ("import_line", lambda file: file.replace(b'"seq": 4', b'"seq": NaN')),
        ("import_line", lambda file: file.replace(b"\n", b"\n\n", 1)),
        ("import_line", lambda file: file[:-50]),
        ("import_line", lambda file: file.splitlines()[0] + b"\n" + b"[" * 100_000),
        ("import_size", lambda file: file.splitlines()[0] + b"\n" + b"x" * (session_file.LINE_BYTES + 1)),
        ("import_size", lambda file: b" " * session_file.LINE_BYTES + b"x" * 9),
    ],
)
def test_what_is_no_file_of_ours_leaves_nothing(
    tmp_path: Path, file: bytes, code: str, damage: Callable[[bytes], bytes]
) -> None:
    assert refused(tmp_path, damage(file)).code == code


def test_a_file_that_keeps_the_server_busy_is_refused(tmp_path: Path, file: bytes) -> None:
    lines = unpacked(file)
    start = lines[:4]
    long = {"task": 1, "text": "word " * 600_000, "language": "en", "sample": ""}
    start.append({"seq": 4, "time": 1.0, "kind": "TaskStarted", "body": long})
    for seq in range(5, 400):
        start.append({"seq": seq, "time": 1.0, "kind": "InstructionsSet", "body": {"system": "x", "tools": []}})
    start[0]["events"] = len(start) - 1
    assert refused(tmp_path, packed(start)).code == "import_work"


def refused(folder: Path, data: bytes) -> Problem:
    """Import and return the problem, once it is sure that nothing was written."""

    async def scenario() -> Problem:
        async with library(folder) as opened:
            with pytest.raises(Problem) as caught:
                await bring_in(opened, io.BytesIO(data), "x.jsonl")
            assert_nothing(opened)
            return caught.value

    return asyncio.run(scenario())


def assert_nothing(opened: Library) -> None:
    assert list(opened.journal.rows(None)) == []
    assert not (opened.setup.data / "sessions").exists() or not list((opened.setup.data / "sessions").iterdir())


def test_a_journal_that_refuses_leaves_no_folder(tmp_path: Path, file: bytes) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            with create_engine(f"sqlite:///{tmp_path}/journal.db").begin() as connection:
                connection.execute(
                    text(
                        "create trigger no before insert on event when new.seq = 9 begin select raise(abort, 'no'); end"
                    )
                )
            with pytest.raises(Problem) as caught:
                await bring_in(opened, io.BytesIO(file), "x")
            assert caught.value.code == "journal_write"
            assert_nothing(opened)

    asyncio.run(scenario())


def test_a_lab_whose_folder_is_not_there_leaves_nothing(tmp_path: Path, file: bytes) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            labs = opened.setup.labs | {"07": replace(opened.setup.labs["07"], demo="nowhere")}
            opened.setup = replace(opened.setup, labs=labs)
            with pytest.raises(Problem) as caught:
                await bring_in(opened, io.BytesIO(file), "x")
            assert caught.value.code == "no_folder"
            assert_nothing(opened)

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Library, asyncio.Runner]]:
    """A library that stays open for many examples, and what runs its event loop."""
    with asyncio.Runner() as runner:
        context = library(tmp_path_factory.mktemp("damage"))
        yield runner.run(context.__aenter__()), runner
        runner.run(context.__aexit__(None, None, None))


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.just([]), st.just({}), st.just([{}])
)


@st.composite
def damages(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Draw a way to damage a file: bytes, lines, or one value somewhere in an event."""
    kind = draw(st.sampled_from(("bytes", "cut", "drop", "double", "swap", "value")))
    at, other = (draw(st.floats(0, 1, exclude_max=True)) for _ in range(2))
    junk, raw = draw(JUNK), draw(st.binary(max_size=4))

    def damage(file: bytes) -> bytes:
        lines = file.splitlines(keepends=True)
        one, two = int(at * len(lines)), int(other * len(lines))
        match kind:
            case "bytes":
                return file[: int(at * len(file))] + raw + file[int(at * len(file)) + 1 :]
            case "cut":
                return file[: int(at * len(file))]
            case "drop":
                del lines[one]
            case "double":
                lines.insert(two, lines[one])
            case "swap":
                lines[one], lines[two] = lines[two], lines[one]
            case "value":
                value = json.loads(lines[one])
                set_somewhere(value, other, junk)
                lines[one] = json.dumps(value).encode() + b"\n"
        return b"".join(lines)

    return damage


def set_somewhere(value: Any, at: float, junk: object) -> None:
    """Put junk into the place of one of all the values inside, chosen by a number from 0 to 1."""
    places: list[tuple[Any, Any]] = []

    def walk(inside: Any) -> None:
        for key in list(inside) if isinstance(inside, dict) else range(len(inside)):
            places.append((inside, key))
            if isinstance(inside[key], dict | list):
                walk(inside[key])

    walk(value)
    holder, key = places[int(at * len(places))]
    holder[key] = junk


@given(damage=damages())
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_damage_writes_nothing_and_raises_only_the_problem(
    opened: tuple[Library, asyncio.Runner], file: bytes, damage: Callable[[bytes], bytes]
) -> None:
    lib, runner = opened
    before = len(list(lib.journal.rows(None)))

    async def scenario() -> None:
        try:
            session_id = await bring_in(lib, io.BytesIO(damage(file)), "x")
        except Problem:
            assert len(list(lib.journal.rows(None))) == before
            return
        # Not every change is a damage: a time, or what a model thought, may be any other.
        session = await lib.open(session_id)
        assert_digests(session.records)
        assert render_feed(session, VIEWER) and events(session, e.SessionImported)
        await lib.forget(session_id)
        lib.journal.delete(session_id)

    runner.run(scenario())
