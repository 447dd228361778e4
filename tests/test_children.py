"""Sub-agents: a context of their own that can be rebuilt, side by side, ended with their agent, and never lost."""

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import events as e
from harness.calls import AT_ONCE
from harness.children import ANSWER_CHARS, answer_of
from harness.copies.fork import fork
from harness.delegating import MOST_OF_REPLY, MOST_OF_TASK
from harness.exchange.transfer import bring_in, export
from harness.journal import Journal
from harness.messages import AssistantMessage
from harness.problems import Problem
from harness.recorded import JournalError, decode, encode
from harness.session_list import read_session
from harness.spills import FOLDER, named
from tests.checkpoints_support import left_by_a_kill
from tests.children_support import (
    ALONE,
    FIXER,
    HANDED,
    assert_folds_alike,
    assert_sent,
    assert_valid,
    finish,
    inside,
    numbered,
    own_records,
    scripted,
)
from tests.harness_support import assert_digests, assert_rebuilt, events, library, names, run, running, until
from web.moment import moment_of

# Two fixers at once, an unknown role between them, and a reply that also reads.
MIXED = """
[[flows]]
when = 'two fixers'
[[flows.steps]]
after = []
call = "task"
arguments = { role = "fixer", task = "Run `one`." }
beside = [{ role = "nobody", task = "x" }, { role = "fixer", task = "Run `two`." }]
[[flows]]
when = 'Run `(?P<word>one|two)`'
[[flows.steps]]
after = []
call = "bash"
arguments = { command = "echo {word}" }
"""


def flood(calls: int, turns: int) -> str:
    """A script in which each of so many turns asks for so many sub-agents."""
    one = '{{ role = "explorer", task = "Say hello {n}." }}'
    steps = []
    for turn in range(turns):
        first, *others = [one.format(n=turn * calls + n) for n in range(calls)]
        after = ", ".join(['"task"'] * turn * calls)
        steps.append(
            f'[[flows.steps]]\nafter = [{after}]\ncall = "task"\narguments = {first}\nbeside = [{", ".join(others)}]\n'
        )
    return "[[flows]]\nwhen = 'very many'\n" + "".join(steps)


def test_every_request_of_a_sub_agent_is_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="04", server=server) as opened:
                session = await opened.create(language="en")
                await run(session, HANDED)
                await run(session, FIXER)
                assert assert_sent(session, server.requests) == 5 * 2 + 5
                assert_rebuilt(session, server.requests)
                assert_folds_alike(session)
                for recorded in session.records:
                    assert decode(*encode(recorded.event)) == recorded.event
                assert_valid(session.state)
                own = [child.state.request().messages for child in session.state.children.values()]
                assert all([m["role"] for m in each[:2]] == ["system", "user"] for each in own)
                # Nothing of the conversation is in a sub-agent's context, and nothing that it read is in the agent's.
                assert HANDED not in str(own) and "11:05" in str(own)
                assert "11:05" not in session.state.request().body().decode()

    asyncio.run(scenario())


def test_sub_agents_of_one_reply_work_side_by_side_and_answer_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running(delay=0.02) as server:
            async with library(tmp_path, lab="04", server=server) as opened:
                session = await opened.create(language="en")
                await run(session, HANDED)
        working, most = set(), 0
        for recorded in session.records:
            match recorded.event:
                case e.ChildStarted(child=child):
                    working.add(child)
                    most = max(most, len(working))
                case e.ChildEvent(child=child, event=e.TaskEnded()):
                    working.discard(child)
                case _:
                    pass
        assert most == AT_ONCE, "so many work at once, and no more"
        asked = [call.id for call in events(session, e.ModelCallEnded)[0].calls]
        assert [each.call_id for each in events(session, e.ToolEnded)] == asked
        assert [child.event.call_id for child in session.state.children.values()] == asked
        for child, ended in zip(session.state.children.values(), events(session, e.ToolEnded), strict=True):
            assert ended.ok and ended.text == answer_of(child.state)
            assert [type(each.event).__name__ for each in own_records(session, child)][:3] == [
                "InstructionsSet", "TaskStarted", "ModelCallStarted",
            ]  # fmt: skip

    asyncio.run(scenario())


def test_a_reply_and_a_task_start_so_many_sub_agents_and_no_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = scripted(tmp_path, flood(20, turns=6))
        server.start()
        async with library(tmp_path, lab="04", server=server) as opened:
            session = await opened.create(language="en")
            await run(session, "Ask for very many.")
        server.stop()
        ends = events(session, e.ToolEnded)
        asked = {seq: [call.id for call in reply.calls] for seq, reply in numbered(session.records)
                 if isinstance(reply, e.ModelCallEnded) and reply.calls}  # fmt: skip
        started = {child.event.call_id for child in session.state.children.values()}
        of_replies = [len(started.intersection(ids)) for ids in asked.values()]
        assert of_replies == [MOST_OF_REPLY] * (MOST_OF_TASK // MOST_OF_REPLY) + [0]
        refused = [each for each in ends if each.call_id not in started]
        assert not any(each.ok for each in refused)
        assert any("in your next reply" in each.text for each in refused)
        assert "this task has had 40 sub-agents" in ends[-1].text
        assert_valid(session.state)

    asyncio.run(scenario())


def test_one_that_fails_ends_no_other_and_questions_wait_for_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = scripted(tmp_path, MIXED)
        server.start()
        async with library(tmp_path, lab="04", server=server) as opened:
            session = await opened.create(language="en")
            session.start_task("Let two fixers run.", language="en")
            await until(lambda: session.waiting and len(session.state.children) == 2)
            await asyncio.sleep(0.2)
            first, asked = session.asking, session.waiting
            assert asked and len(inside(session, e.ApprovalRequested)) == 1, "the second waits for its turn"
            other = 3 - first
            assert not session.answer(asked.call_id, True) and not session.answer(asked.call_id, True, other)
            assert session.answer(asked.call_id, False, first)
            await until(lambda: session.waiting and session.asking == other)
            assert session.answer(session.waiting.call_id, True, other)
            await until(lambda: session.status == "idle")
        server.stop()
        one, nobody, two = events(session, e.ToolEnded)
        assert not nobody.ok and "There is no role `nobody`. The roles are: `explorer`" in nobody.text
        assert "was not allowed" in (one.text if first == 1 else two.text)
        assert "two" in two.text if first == 1 else "one" in one.text
        answered = [(child, each.allowed) for child, each in inside(session, e.ApprovalAnswered)]
        assert answered == [(first, False), (other, True)]
        assert_valid(session.state)

    asyncio.run(scenario())


def test_a_sub_agent_has_the_tools_of_its_role_and_none_hands_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="04", extensions=("10",)) as opened:
            session = await opened.create(language="en")
            await run(session, HANDED)
            await run(session, FIXER)
            told = [tuple(t["function"]["name"] for t in x.tools) for _, x in inside(session, e.InstructionsSet)]
            assert set(told[:5]) == {("read", "search", "end_stage")}, "those that ask nobody"
            assert told[5:] == [("read", "write", "edit", "search", "bash")], "those that its file names"
            offered = [tool["function"]["name"] for tool in session.state.request().tools]
            assert {"task", "end_stage"} <= set(offered)
            assert not inside(session, e.CheckpointSaved) and events(session, e.CheckpointSaved)

    asyncio.run(scenario())


@pytest.mark.parametrize("events_in", [0, 3, 9, 14, 22, 30])
def test_stop_ends_all_of_them_at_once_with_valid_histories(tmp_path: Path, events_in: int) -> None:
    async def scenario() -> None:
        with running(delay=0.03) as server:
            async with library(tmp_path, lab="04", server=server) as opened:
                session = await opened.create(language="en")
                session.start_task(HANDED, language="en")
                began = len(session.records)
                await until(lambda: len(session.records) >= began + 3 + events_in)
                await session.stop()
                last = len(session.records)
                await asyncio.sleep(0.15)
                assert len(session.records) == last, "nothing goes on behind a stop"
                assert names(session)[-1] == "TaskEnded" and session.state.tasks[-1].ended == "stopped"
                assert_valid(session.state)
                for number, child in session.state.children.items():
                    ended = child.state.tasks[-1].ended
                    assert ended in ("stopped", "answered")
                    result = next(x for x in events(session, e.ToolEnded) if x.call_id == child.event.call_id)
                    assert result.ok == (ended == "answered"), f"{number}: an answer that is there is not thrown away"
                await run(session, ALONE)
                assert session.state.tasks[-1].ended == "answered"
                assert_digests(session.records)

    asyncio.run(scenario())


def test_stop_answers_the_question_of_a_sub_agent_with_no(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = scripted(tmp_path, MIXED)
        server.start()
        async with library(tmp_path, lab="04", server=server) as opened:
            session = await opened.create(language="en")
            session.start_task("Let two fixers run.", language="en")
            await until(lambda: session.status == "waiting" and len(session.state.children) == 2)
            await session.stop()
            assert session.status == "idle" and not session.waiting and not session.asking
            answers = [(each.allowed, each.by) for _, each in inside(session, e.ApprovalAnswered)]
            assert answers == [(False, "stop")], "the one that waited for its turn was never asked about"
            assert not inside(session, e.ToolStarted)
            assert_valid(session.state)
        server.stop()

    asyncio.run(scenario())


def test_a_kill_behind_any_event_leaves_nothing_open(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path / "first", lab="04", server=server) as opened:
                session = await opened.create(language="en")
                await run(session, HANDED)
            count = len(session.records)
            for seq in range(5, count, 3):
                into = tmp_path / str(seq)
                left_by_a_kill(session, tmp_path / "first", seq, into)
                async with library(into, lab="04", server=server) as opened:
                    again = await opened.open(session.id)
                    assert again.records[:seq] == session.records[:seq] and again.status == "idle"
                    assert_valid(again.state)
                    assert names(again)[-1] == "TaskEnded"
                    for child in again.state.children.values():
                        answer = answer_of(child.state)
                        result = again.state.results[child.event.call_id].message
                        assert result.text == answer if answer else "server stopped" in result.text
                    await run(again, "From what you have now: how many passengers did Hazel count at 11:05?")
                    assert_digests(again.records)

    (tmp_path / "first").mkdir()
    asyncio.run(scenario())


def test_with_checkpoints_a_task_goes_on_and_hands_its_work_on_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "first").mkdir()
        script = """
[[flows]]
when = 'look and ask'
[[flows.steps]]
after = []
call = "read"
arguments = { path = "README.md" }
[[flows.steps]]
after = ["read"]
call = "task"
arguments = { role = "explorer", task = "Read hazel.md. Which delays have a confirmed cause?" }
"""
        server = scripted(tmp_path, script)
        server.start()
        async with library(tmp_path / "first", lab="10", extensions=("04",), server=server) as opened:
            session = await opened.create(language="en")
            (session.workspace.root / "README.md").write_text("# Read me\n")
            (session.workspace.root / "hazel.md").write_text("08:30 Confirmed: a barge.\n")
            await run(session, "Please look and ask.")
            assert session.state.tasks[0].ended == "answered"
        at = next(x.seq for x in session.records if isinstance(x.event, e.ChildEvent)) + 4
        left_by_a_kill(session, tmp_path / "first", at, tmp_path / "again")
        async with library(tmp_path / "again", lab="10", extensions=("04",), server=server) as opened:
            again = await opened.open(session.id)
            await finish(again)
            ends = [child.state.tasks[-1].ended for child in again.state.children.values()]
            assert ends == ["interrupted", "answered"]
            assert len(events(again, e.TaskResumed)) == 1 and again.state.tasks[0].ended == "answered"
            assert "a barge" in again.state.history[-1].message.text
            assert_valid(again.state)
        server.stop()

    asyncio.run(scenario())


def test_a_sub_agent_compacts_its_own_context_by_the_same_rule(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"trigger": 700, "keep": 150, "confirm_summary": 1}
        with running() as server:
            async with library(tmp_path, lab="08", extensions=("04",), settings=settings, server=server) as opened:
                copied = opened.setup.labs["04"].demo
                session = await opened.create(language="en")
                for path in (Path("demo_workspace") / copied).glob("*.py"):
                    (session.workspace.root / path.name).write_text(path.read_text())
                # The agent's own context is past the threshold too, which is not what this is about.
                session.start_task(FIXER, language="en")
                async with asyncio.timeout(60):
                    while session.status != "idle":
                        if session.proposed:
                            session.confirmations.answer(None)
                        elif session.waiting:
                            session.answer(session.waiting.call_id, True, session.asking)
                        await asyncio.sleep(0.005)
            [child] = session.state.children.values()
            assert child.state.compactions and not inside(session, e.SummaryProposed)
            assert inside(session, e.ContextMeasured)
            assert child.state.tasks[-1].ended == "answered"
            assert assert_sent(session, server.requests) > 5, "its summaries' requests are its own calls"
            assert_folds_alike(session)
            assert_digests(session.records)

    asyncio.run(scenario())


def test_whole_results_of_sub_agents_lie_in_files_of_their_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"result_limit": 900, "preview": 100, "stale_turns": 0}
        with running() as server:
            async with library(tmp_path, lab="04", extensions=("09",), settings=settings, server=server) as opened:
                session = await opened.create(language="en")
                await run(session, HANDED)
                await run(session, ALONE)
                folder = session.workspace.root / FOLDER
                files = {path.name for path in folder.iterdir()}
                assert {f"agent-{n}-1-read.txt" for n in range(1, 6)} <= files and "6-read.txt" in files
                assert {f"{FOLDER}/{name}" for name in files} == named(session.records)
                whole = [child.state.results for child in session.state.children.values()]
                for number, results in enumerate(whole, 1):
                    [entry] = results.values()
                    assert (folder / f"agent-{number}-1-read.txt").read_text() == entry.message.text
                (folder / "agent-9-1-read.txt").write_text("left by a kill")
            async with library(tmp_path, lab="04", extensions=("09",), settings=settings, server=server) as opened:
                again = await opened.open(session.id)
                assert {path.name for path in (again.workspace.root / FOLDER).iterdir()} == files

    asyncio.run(scenario())


def test_a_sub_agent_has_as_many_turns_as_a_task_and_a_long_answer_is_bounded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="04", settings={"step_limit": 3}) as opened:
            session = await opened.create(language="en")
            await run(session, FIXER)
            [child] = session.state.children.values()
            assert child.state.tasks[0].ended == "step_limit" and len(child.state.calls) == 3
            [ended] = events(session, e.ToolEnded)
            assert not ended.ok and "It used up its turns." in ended.text and "may stand" in ended.text
            assert "age <= CHILD_UNTIL" in (session.workspace.root / "fares.py").read_text(), "what it did stays"
            child.state.tasks[0] = type(child.state.tasks[0])(1, 2, "t", "", "en", "answered")
            child.state.add(999, 1, AssistantMessage("x" * (ANSWER_CHARS + 5)))
            assert answer_of(child.state) == "x" * ANSWER_CHARS + "\n[5 more characters left out]"

    asyncio.run(scenario())


def test_a_fork_and_a_file_hold_what_sub_agents_did(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="04", server=server) as opened:
                session = await opened.create(language="en")
                await run(session, HANDED)
                await run(session, FIXER)
                copy = await fork(opened, session, 1)
                assert list(copy.state.children) == [1, 2, 3, 4, 5] and copy.state.children[1].state.calls
                await run(copy, FIXER)
                assert list(copy.state.children) == [1, 2, 3, 4, 5, 6]
                assert_folds_alike(copy)
                await until(lambda: session.committed == len(session.records))
                data = b"".join(export(opened.journal, session.id))
                again = await opened.open(await bring_in(opened, io.BytesIO(data), "x.jsonl"))
                assert again.records[1 : len(session.records)] == session.records[1:]
                assert_folds_alike(again)
                info = read_session(opened.journal, session.id)
                own = max((call.size for call in session.state.calls), key=lambda size: size.chars)
                assert info and (info.tasks, info.largest) == (2, own), "the list counts the session's own"

    asyncio.run(scenario())


def _wrapped(lines: list[dict], place: int, kind: str) -> dict:
    """The `place`-th event of this kind in a sub-agent."""
    return [x for x in lines if x["kind"] == "ChildEvent" and x["body"]["kind"] == kind][place]


def _twice(lines: list[dict]) -> None:
    lines.insert(10, json.loads(json.dumps(_wrapped(lines, 0, "TaskStarted"))))


def _told_twice(lines: list[dict]) -> None:
    place = lines.index(_wrapped(lines, 0, "ModelCallStarted"))
    lines.insert(place, json.loads(json.dumps(_wrapped(lines, 0, "InstructionsSet"))))


def _renumbered(lines: list[dict]) -> None:
    for line in lines:
        if line["kind"] in ("ChildStarted", "ChildEvent") and line["body"]["child"] == 5:
            line["body"]["child"] = 7


def _end(lines: list[dict], child: int) -> dict:
    ends = [x for x in lines if x["kind"] == "ChildEvent" and x["body"]["kind"] == "TaskEnded"]
    return next(x for x in ends if x["body"]["child"] == child)


def _after_its_result(lines: list[dict]) -> None:
    lines.remove(end := _end(lines, 5))
    lines.insert(max(place for place, x in enumerate(lines) if x["kind"] == "ToolEnded") + 1, end)


def _after_its_end(lines: list[dict]) -> None:
    failed = {"task": 1, "extension": "x", "hook": "before_turn", "detail": "d"}
    end = _end(lines, 1)
    line = end | {"body": {"child": 1, "kind": "HookFailed", "event": failed}}
    lines.insert(lines.index(end) + 1, line)


def _nested(lines: list[dict]) -> None:
    body = _wrapped(lines, 0, "TaskEnded")["body"]
    body |= {"kind": "ChildEvent", "event": {"child": 1, "kind": "TaskEnded", "event": body["event"]}}


CHANGES: dict[str, Callable[[list[dict]], object]] = {
    "a size": lambda x: _wrapped(x, 1, "ModelCallStarted")["body"]["event"]["parts"]["user"].update(chars=1),
    "a request": lambda x: _wrapped(x, 1, "ModelCallStarted")["body"]["event"].update(digest="0" * 64),
    "its number": lambda x: _wrapped(x, 0, "ModelCallStarted")["body"].update(child=9),
    "another's call": lambda x: next(e for e in x if e["kind"] == "ChildStarted")["body"].update(call_id="y"),
    "its count": _renumbered,
    "instructions twice": _told_twice,
    "after its end": _after_its_end,
    "a task twice": _twice,
    "one in another": _nested,
    "a setting": lambda x: _wrapped(x, 0, "TaskEnded")["body"].update(
        kind="SettingChanged", event={"name": "step_limit", "value": 1}
    ),
    "after the result": _after_its_result,
    "no prompt": lambda x: x.remove(_wrapped(x, 0, "InstructionsSet")),
    "a result of no call": lambda x: _wrapped(x, 0, "ToolEnded")["body"]["event"].update(call_id="z"),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a session with sub-agents."""

    async def scenario() -> bytes:
        async with library(tmp_path_factory.mktemp("file"), lab="04") as opened:
            session = await opened.create(language="en")
            await run(session, HANDED)
            await until(lambda: session.committed == len(session.records))
            return b"".join(export(opened.journal, session.id))

    return asyncio.run(scenario())


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_is_not_believed_about_sub_agents(tmp_path: Path, file: bytes, change: str) -> None:
    head, *lines = [json.loads(line) for line in file.decode().splitlines()]
    CHANGES[change](lines)
    for seq, line in enumerate(lines, 1):
        line["seq"] = seq
    head["events"] = len(lines)
    data = "\n".join(json.dumps(each) for each in (head, *lines)).encode()

    async def scenario() -> None:
        async with library(tmp_path, lab="04") as opened:
            with pytest.raises(Problem) as raised:
                await bring_in(opened, io.BytesIO(data), "x.jsonl")
            assert raised.value.code in ("import_order", "import_figures", "import_kind")
            assert read_session(opened.journal, "x") is None

    asyncio.run(scenario())


def test_an_event_of_a_sub_agent_is_read_back_or_refused_as_what_it_is() -> None:
    with pytest.raises(JournalError) as raised:
        decode("ChildEvent", '{"child": 1, "kind": "SessionStarted", "event": {}}')
    assert raised.value.code == "journal_unknown_event"
    with pytest.raises(JournalError) as raised:
        decode("ChildEvent", '{"child": 1, "kind": "TaskEnded", "event": {"task": 1}}')
    assert raised.value.code == "journal_bad_event"


def test_a_moment_is_the_fold_of_its_events_and_counts_nothing_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="04") as opened:
            session = await opened.create(language="en")
            await run(session, HANDED)
            known = {id(entry) for child in session.state.children.values() for entry in child.state.history}
            for at in range(6, len(session.records) + 1, 5):
                moment = await moment_of(session, at)
                for child in moment.state.children.values():
                    assert all(id(entry) in known for entry in child.state.history)
                    assert child.seqs == session.state.children[child.event.child].seqs[: len(child.seqs)]

    asyncio.run(scenario())


def test_a_journal_from_before_is_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            session = await opened.create(language="en")
            await run(session, "Explain this project.")
        journal = Journal(f"sqlite:///{tmp_path / 'journal.db'}")
        assert not session.state.children and not any("Child" in row.kind for row in journal.rows([session.id]))
        journal.close()

    asyncio.run(scenario())
