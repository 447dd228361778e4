"""Lab 05 over the real wire: an early "done" is caught, what cannot be met ends honestly, and lab 07 on top of it."""

import asyncio
import json
from pathlib import Path

import pytest

from harness import events as e
from harness.checks import FILE, verdict
from harness.copies.fork import fork
from harness.session import Session
from tests.checks_support import DEMO, checking, outcomes
from tests.harness_support import assert_rebuilt, events, library, names, run, run_sample, running

LANGUAGES = ["en", "zh"]


def says(session: Session, task: int) -> tuple[str, int]:
    """Return what the row of a task's end says of its checks."""
    [ended] = [r.seq for r in session.records if isinstance(r.event, e.TaskEnded) and r.event.task == task]
    found = verdict(session.state, task, ended)
    return found.says, found.back


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_early_done_is_caught_and_what_the_check_prints_decides_what_comes_next(
    tmp_path: Path, language: str
) -> None:
    async def scenario() -> None:
        with running() as server:
            async with checking(tmp_path / "data", server=server) as opened:
                session = await opened.create(language=language)
                await run_sample(session, 1, language=language)
                assert outcomes(session) == [("failed", 1, True), ("passed", 0, False)]
                assert "test_group_of_ten" in events(session, e.Verified)[0].output
                assert "bash" not in {each.name for each in events(session, e.ToolEnded)}, "the agent ran nothing"
                edits = [each.arguments for each in events(session, e.ToolEnded) if each.name == "edit"]
                assert ["ADULT_FROM" in each for each in edits] == [True, False] and "GROUP_FROM" in edits[1]
                # Nothing is approved for the check: only the two edits were asked about.
                assert len(events(session, e.ApprovalRequested)) == 2
                [sent] = events(session, e.FollowUpAdded)
                assert ("exit code 1" if language == "en" else "退出码是 1") in sent.text and sent.extension == "verify"
                assert len(session.state.tasks) == 1 and says(session, 1) == ("passed", 1)
                await run_sample(session, 2, language=language)
                assert outcomes(session)[2:] == [("passed", 0, False)] and len(events(session, e.FollowUpAdded)) == 1
                assert "FAIL" not in session.state.history[-1].message.text
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


def test_what_the_agent_does_depends_on_what_the_check_printed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with checking(tmp_path / "data") as opened:
            session = await opened.create(language="en")
            path = session.workspace.root / "tickets.py"
            path.write_text(path.read_text().replace("> GROUP_FROM", ">= GROUP_FROM"))
            await run_sample(session, 1)
            assert outcomes(session) == [("passed", 0, False)], "the second fault was not there"

    asyncio.run(scenario())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_check_that_cannot_be_met_ends_honestly(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        async with checking(tmp_path / "data") as opened:
            session = await opened.create(language=language)
            await run_sample(session, 1, language=language)
            await run_sample(session, 3, language=language)
            assert outcomes(session)[2:] == [("failed", 1, True)] * 3 + [("failed", 1, False)]
            assert says(session, 1) == ("passed", 1) and says(session, 2) == ("failed", 3)
            text = (session.workspace.root / "test_tickets.py").read_bytes()
            assert text == (DEMO / "test_tickets.py").read_bytes(), "what the user forbade was not done"
            answer = session.state.history[-1].message.text
            assert ("still reports a failure" if language == "en" else "仍然报告失败") in answer

    asyncio.run(scenario())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_agent_cannot_weaken_the_check_of_its_own_task(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        async with checking(tmp_path / "data") as opened:
            session = await opened.create(language=language)
            await run_sample(session, 4, language=language)
            made = events(session, e.Verified)
            assert 'command = "true"' in (session.workspace.root / FILE).read_text()
            assert {each.command for each in made} == {"python3 -m unittest -q -f"} and all(x.changed for x in made)
            assert outcomes(session) == [("failed", 1, True), ("passed", 0, False)]
            await run_sample(session, 2, language=language)
            assert len(events(session, e.Verified)) == len(made), "nobody accepted the new command"
            [told] = [each for each in session.state.instructions.sources if each.kind == "check"]
            assert (told.problem, told.wanted) == ("untrusted", "30 s: true")
            assert says(session, 1) == ("passed", 1) and says(session, 2) == ("untrusted", 0)
            assert "InstructionsSet" in names(session)[names(session).index("TaskEnded") :], "and it is told"

    asyncio.run(scenario())


@pytest.mark.parametrize("language", LANGUAGES)
def test_lab_07_on_top_cuts_in_front_of_the_task_and_what_was_sent_back_goes_with_its_own(
    tmp_path: Path, language: str
) -> None:
    async def scenario() -> None:
        with running() as server:
            named = {"lab": "07", "extensions": ("verify",), "settings": {"budget": 1500}}
            async with checking(tmp_path / "data", DEMO, server=server, **named) as opened:
                session = await opened.create(language=language)
                texts = [sample.task[language] for group in lab(opened).groups for sample in group.samples]
                await run(session, texts[0], language=language)
                assert not session.state.compactions, "nothing stands before the first task"
                await run(session, texts[1], language=language)
                [made] = session.state.compactions
                assert made.event.cut == session.state.tasks[1].seq
                [sent] = [entry for entry in made.removed if getattr(entry.message, "author", "") == "extension"]
                assert sent.task == 1 and "check_output" in sent.message.text
                assert {entry.task for entry in made.removed} == {1}
                asked = next(json.loads(raw) for raw in server.requests if b"<history>" in raw)
                assert "[task 1 · harness]" in asked["messages"][1]["content"], "the summariser reads whose it is"
                assert not made.event.demands
                order = names(session)
                last = [order.index(name, made.seq - 1 - 5) for name in ("BoundaryMeasured", "ContextCompacted")]
                assert order[: last[0]][-1] == "Verified", "first the check, then the cut"
                assert says(session, 1) == ("passed", 1) and says(session, 2) == ("passed", 0)
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


def lab(opened):  # noqa: ANN001, ANN201
    return opened.setup.labs["05"]


def test_lab_07_waits_until_the_check_has_given_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        named = {"lab": "07", "extensions": ("05",), "settings": {"budget": 600}}
        async with checking(tmp_path / "data", DEMO, **named) as opened:
            session = await opened.create(language="en")
            samples = [sample.task["en"] for group in lab(opened).groups for sample in group.samples]
            await run(session, samples[0])
            await run(session, samples[2])
            order, cut = names(session), session.state.compactions[0]
            begins = session.state.tasks[1].seq
            inside = order[begins:]
            assert inside.count("Verified") == 4 and inside.count("ContextCompacted") == 1
            assert inside.index("BoundaryMeasured") > max(i for i, name in enumerate(inside) if name == "Verified")
            assert cut.event.cut == begins and says(session, 2) == ("failed", 3)

    asyncio.run(scenario())


def test_it_works_with_every_lab_in_the_list_and_without_a_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01", extensions=("verify",)) as opened:
            session = await opened.create(language="en")
            [told] = [each for each in session.state.instructions.sources if each.kind == "check"]
            assert told.problem == "check_none" and told.start == told.end
            await run_sample(session, 3)
            assert session.state.tasks[0].ended == "answered" and not events(session, e.CheckStarted)
            assert says(session, 1) == ("check_none", 0)

    asyncio.run(scenario())


def test_a_check_survives_a_restart_and_a_fork(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with checking(tmp_path / "data") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            key = session.id
        async with checking(tmp_path / "data") as opened:
            session = await opened.open(key)
            assert outcomes(session) == [("failed", 1, True), ("passed", 0, False)] and session.state.accepted
            await run_sample(session, 2)
            assert outcomes(session)[-1] == ("passed", 0, False)
            forked = await fork(opened, session, 1)
            assert forked.workspace.accepted and outcomes(forked) == outcomes(session)[:2]
            await run_sample(forked, 3)
            assert outcomes(forked)[2:] == [("failed", 1, True)] * 3 + [("failed", 1, False)]

    asyncio.run(scenario())
