"""The loop over the real wire: tools, approvals, Stop, and what ends a task that runs away."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from harness import by_hand
from harness import events as e
from harness.library import Library
from harness.session import Busy, Session
from tests.harness_support import assert_rebuilt, events, library, names, run, run_sample, running, until

Scenario = Callable[[Library, Session], Awaitable[None]]


def play(folder: Path, scenario: Scenario, *, lab: str = "01", fault: str = "", **options: object) -> None:
    """Run `scenario` on a fresh session, and hold every request to what the journal rebuilds."""

    async def whole() -> None:
        with running(fault) as server:
            async with library(folder, lab=lab, server=server, **options) as opened:  # type: ignore[arg-type]
                session = await opened.create(language="en")
                await scenario(opened, session)
                assert_rebuilt(session, server.requests)

    asyncio.run(whole())


def test_the_agent_finds_fixes_and_proves(tmp_path: Path) -> None:
    async def scenario(_: Library, session: Session) -> None:
        await run_sample(session, 2)
        results = events(session, e.ToolEnded)
        assert [event.name for event in results] == ["bash", "read", "edit", "bash"]
        assert "FAILED" in results[0].text and "FAILED" not in results[-1].text and "OK" in results[-1].text
        asked = events(session, e.ApprovalRequested)
        assert [event.name for event in asked] == ["bash", "edit", "bash"]
        assert "+        if grams <= limit:" in asked[1].preview
        assert session.state.tasks[0].ended == "answered"

    play(tmp_path, scenario)


def test_denied_means_that_nothing_is_run(tmp_path: Path) -> None:
    async def scenario(_: Library, session: Session) -> None:
        await run_sample(session, 2, allow=False)
        answered = events(session, e.ApprovalAnswered)
        assert [(event.allowed, event.by) for event in answered] == [(False, "person")]
        assert not events(session, e.ToolStarted)
        result = events(session, e.ToolEnded)[0]
        assert not result.ok and "did not allow" in result.text
        assert session.state.tasks[0].ended == "answered"

    play(tmp_path, scenario)


def test_no_answer_means_no(tmp_path: Path) -> None:
    async def scenario(_: Library, session: Session) -> None:
        by_hand.change_setting(session, "approval_seconds", 1)
        session.start_task("Run the tests.", language="en")
        await until(lambda: session.status == "waiting")
        assert not session.answer("another call", True)
        await until(lambda: session.status == "idle")
        assert [(event.allowed, event.by) for event in events(session, e.ApprovalAnswered)] == [(False, "timeout")]
        assert not session.answer(events(session, e.ApprovalAnswered)[0].call_id, True), "too late"
        assert not events(session, e.ToolStarted)

    play(tmp_path, scenario)


def children() -> set[int]:
    return {process.pid for process in psutil.Process(os.getpid()).children(recursive=True)}


def test_stop_ends_a_running_command_and_leaves_a_valid_history(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "test_slow.py").write_text("import time, unittest\nprint('on', flush=True)\ntime.sleep(60)\n")

    async def scenario(_: Library, session: Session) -> None:
        before = children()
        session.start_task("Run the tests.", language="en")
        await until(lambda: session.status == "waiting")
        session.answer(session.waiting.call_id, True)  # type: ignore[union-attr]
        await until(lambda: children() - before)
        began = time.monotonic()
        await session.stop()
        assert time.monotonic() - began < 5
        assert children() == before
        assert session.status == "idle"
        assert session.state.tasks[0].ended == "stopped"
        assert names(session)[-2:] == ["ToolEnded", "TaskEnded"]
        assert not session.state.unanswered
        await run(session, "What is this project? Explain it.")
        assert session.state.tasks[1].ended == "answered"

    (tmp_path / "data").mkdir()
    play(tmp_path / "data", scenario, source=slow)


def test_stop_while_the_reply_streams_keeps_what_had_come(tmp_path: Path) -> None:
    async def whole() -> None:
        with running(delay=0.05) as server:
            async with library(tmp_path, lab="07", server=server) as opened:
                session = await opened.create(language="en")
                session.start_task("Invent a new colour.", language="en")
                await until(lambda: session.partial and len(session.partial[1]) > 20)
                await session.stop()
                ended = events(session, e.ModelCallEnded)[-1]
                assert ended.finish == "stopped" and len(ended.text) > 20 and not ended.calls
                assert session.state.history[-1].message.text == ended.text
                assert session.partial is None
                await run(session, "And again?")
                assert_rebuilt(session, server.requests)

    asyncio.run(whole())


def test_one_task_at_a_time(tmp_path: Path) -> None:
    async def scenario(_: Library, session: Session) -> None:
        session.start_task("Run the tests.", language="en")
        with pytest.raises(Busy):
            session.start_task("Another.", language="en")
        assert len(session.state.tasks) == 1
        await session.stop()
        assert session.state.tasks[0].ended == "stopped", "also when Stop comes before the first step"
        await run(session, "Explain this project.")
        assert session.state.tasks[1].ended == "answered"

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("fault", "kind"), [("key", "key"), ("cut", "broken_stream"), ("model_missing", "model_missing")]
)
def test_a_provider_that_fails_ends_the_task_with_its_kind(tmp_path: Path, fault: str, kind: str) -> None:
    async def scenario(_: Library, session: Session) -> None:
        await run(session, "Run the tests.")
        failed = events(session, e.ModelCallFailed)
        assert [event.kind for event in failed] == [kind]
        assert session.state.tasks[0].ended == "failed"
        assert failed[0].detail not in session.state.request().body().decode()

    play(tmp_path, scenario, fault=fault)


def test_a_reply_with_nothing_in_it_is_asked_for_once_more(tmp_path: Path) -> None:
    async def scenario(_: Library, session: Session) -> None:
        await run(session, "Run the tests.")
        assert [event.marks for event in events(session, e.ModelCallEnded)] == [("empty",), ("empty",)]
        ended = events(session, e.TaskEnded)[0]
        assert (ended.reason, ended.detail) == ("failed", "empty")
        assert [entry.category for entry in session.state.context.entries] == ["user"]

    play(tmp_path, scenario, fault="empty")


def test_the_step_limit_ends_a_task(tmp_path: Path) -> None:
    async def scenario(_: Library, session: Session) -> None:
        by_hand.change_setting(session, "step_limit", 2)
        await run_sample(session, 2)
        assert session.state.tasks[0].ended == "step_limit"
        assert len(events(session, e.ModelCallEnded)) == 2
        assert not session.state.unanswered
        by_hand.change_setting(session, "step_limit", 9)
        await run_sample(session, 3)
        assert session.state.tasks[1].ended == "answered"

    play(tmp_path, scenario)
