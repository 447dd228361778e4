"""Lab 04 over the real wire: the same question with and without sub-agents, what stays out, and what its text says."""

import asyncio
import io
from pathlib import Path

import pytest

from harness import events as e
from harness.children import spent_inside
from harness.exchange.transfer import bring_in, export
from harness.proofs import proved
from harness.session import Session
from tests.children_support import assert_folds_alike, assert_sent, assert_valid, inside
from tests.harness_support import ROOT, assert_rebuilt, events, library, run_sample, running, until

LANGUAGES = ["en", "zh"]
HANDED, DETAIL, ALONE, FIXER = 1, 2, 3, 4
LOGS = ("alder", "birch", "cedar", "hazel", "rowan")


def readme(language: str) -> str:
    name = "README.zh.md" if language == "zh" else "README.md"
    return (ROOT / "labs/04-sub-agents" / name).read_text("utf-8")


def answer(session: Session) -> str:
    return session.state.history[-1].message.text


def points(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_answer_with_and_without_and_what_stays_out(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="04", server=server) as opened:
                session = await opened.create(language=language)
                await run_sample(session, HANDED, language=language)
                handed = answer(session)
                assert len(session.state.children) == 5 and len(points(handed)) == 14
                tasks = [each.text for _, each in inside(session, e.TaskStarted)]
                assert [log in task for log, task in zip(LOGS, tasks, strict=True)] == [True] * 5
                assert not any(ship in tasks[0] for ship in LOGS[1:]), "each is told its own log only"
                await run_sample(session, DETAIL, language=language)
                assert "26" not in answer(session) and "11:05" in answer(session)
                assert ("says nothing about" if language == "en" else "没有提到") in answer(session)
                await run_sample(session, ALONE, language=language)
                assert points(answer(session)) == points(handed), "the same answer"
                # What the sample's text says: in English two and a half times, in Chinese twice.
                before, last = (max(x.size.chars for x in session.state.calls if x.task == n) for n in (2, 3))
                assert round(2 * last / before) / 2 == (2.5 if language == "en" else 2), (before, last)
                for child in session.state.children.values():
                    totals = child.state.context.totals
                    assert max(totals, key=lambda part: totals[part].chars) == "results", "most of it is one log"
                    half = totals["results"].chars * 2 > child.state.context.total.chars
                    assert half is (language == "en"), "the Chinese text says only that it is the largest part"
                await run_sample(session, DETAIL, language=language)
                assert "26" in answer(session), "now it is known"
                assert len(session.state.children) == 5
                assert_sent(session, server.requests)
                assert_rebuilt(session, server.requests)
                found = proved(session.state, session.records)
                assert {"handed_on", "side_by_side"} <= found and "child_allowed" not in found

    asyncio.run(scenario())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_text_gives_the_figures_of_a_run(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="04") as opened:
            handed, alone = [await opened.create(language=language) for _ in range(2)]
            await run_sample(handed, HANDED, language=language)
            await run_sample(alone, ALONE, language=language)
            own, inner, other = handed.state.spent, spent_inside(handed.state), alone.state.spent
            chars = (own.largest.chars, other.largest.chars)
            sums = ((own + inner).requests, own.requests, inner.requests, other.requests)
            for value in (*chars, *(each.chars for each in sums)):
                assert f"{value:,}" in readme(language), value
            assert own.reported == own.calls and inner.reported == inner.calls

    asyncio.run(scenario())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_fixer_asks_and_its_report_is_all_that_comes_back(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="04", server=server) as opened:
                session = await opened.create(language=language)
                await run_sample(session, FIXER, language=language)
                assert [each.name for _, each in inside(session, e.ApprovalRequested)] == ["bash", "edit", "bash"]
                assert not events(session, e.ApprovalRequested), "the agent itself asked for nothing"
                assert "age <= CHILD_UNTIL" in (session.workspace.root / "fares.py").read_text("utf-8")
                assert ("The tests pass" if language == "en" else "测试全部通过") in answer(session)
                sent = session.state.request().body().decode()
                assert "Traceback" not in sent and "self.assertEqual" not in sent
                # The text says so: what the runs printed of how they went is quoted.
                assert all(line in sent for line in ("FAIL: test_child_of_twelve", "FAILED (failures=1)", "OK"))
                assert "child_allowed" in proved(session.state, session.records)
                assert_sent(session, server.requests)

    asyncio.run(scenario())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_denied_call_ends_the_fixer_and_not_the_agent(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="04") as opened:
            session = await opened.create(language=language)
            await run_sample(session, FIXER, allow=False, language=language)
            [ended] = events(session, e.ToolEnded)
            assert ended.ok and ("not allowed" if language == "en" else "没有获得允许") in ended.text
            assert session.state.tasks[0].ended == "answered"

    asyncio.run(scenario())


def test_what_goes_wrong_on_purpose_goes_wrong_as_the_text_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="04", settings={"step_limit": 3}) as opened:
            session = await opened.create(language="en")
            await run_sample(session, FIXER)
            assert "without an answer" in answer(session) and "passes" not in answer(session)
            assert "age <= CHILD_UNTIL" in (session.workspace.root / "fares.py").read_text("utf-8")
            session.emit(e.SettingChanged(name="step_limit", value=30))
            await run_sample(session, FIXER)
            assert "The tests pass in the last run." in answer(session)
            assert "`edit`" not in answer(session), "nothing was left to change"

    asyncio.run(scenario())


@pytest.mark.parametrize("others", [("08",), ("09",), ("10",), ("02", "03", "05", "07"), ("09", "10")])
def test_with_other_labs_on_the_same_samples_work(tmp_path: Path, others: tuple[str, ...]) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="04", extensions=others, server=server) as opened:
                session = await opened.create(language="en")
                # Five logs in one reply are more than lab 08's small window holds, and it shortens no result.
                for number in (HANDED, FIXER) if others == ("08",) else (HANDED, ALONE, FIXER):
                    await run_sample(session, number)
                    assert session.state.tasks[-1].ended == "answered"
                assert not inside(session, e.FollowUpAdded, e.CheckpointSaved, e.BoundaryMeasured)
                assert all(child.state.tasks[-1].ended == "answered" for child in session.state.children.values())
                assert_valid(session.state)
                assert_sent(session, server.requests)
                assert_folds_alike(session)
                await until(lambda: session.committed == len(session.records))
                data = b"".join(export(opened.journal, session.id))
                again = await opened.open(await bring_in(opened, io.BytesIO(data), "x.jsonl"))
                assert_folds_alike(again)

    asyncio.run(scenario())
