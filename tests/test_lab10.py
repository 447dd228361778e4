"""Lab 10: a long task is watched, compressed on three triggers, and each step that succeeds is saved."""

import asyncio
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import by_hand, stages
from harness import events as e
from harness.checkpoints import made
from harness.demands import demands_of
from harness.discovery import find_labs, load
from harness.exchange.in_place import in_place
from harness.exchange.transfer import bring_in, export
from harness.messages import AssistantMessage, SummaryMessage, ToolCall, UserMessage
from harness.problems import Problem
from harness.recorded import Recorded
from harness.reopening import resume
from harness.replay import State
from harness.result_events import FOLDER
from harness.session import Session
from harness.sizes import Usage
from harness.thresholds import percent_threshold, share, warning
from tests.checkpoints_support import assert_nothing_done_twice, finish, left_by_a_kill, seqs, state_at
from tests.harness_support import ROOT, assert_rebuilt, events, library, run, run_sample, running, until
from tests.web_session import FoldedSession
from web.catalogue import load as load_words
from web.feed import make_row
from web.figures import limits
from web.turns_chart import turns

LABS = find_labs(ROOT / "labs")
LANGUAGES = ["en", "zh"]
Lines = list[dict[str, Any]]


def reads(session: Session) -> list[str]:
    return [json.loads(each.arguments)["path"] for each in events(session, e.ToolEnded) if each.name == "read"]


def day(n: int, language: str) -> str:
    return f"day-{n:02}{'.zh' if language == 'zh' else ''}.csv"


@pytest.mark.parametrize("language", LANGUAGES)
def test_thirty_steps_in_a_small_window(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                session = await opened.create(language=language)
                await run_sample(session, 1, language=language)
                assert reads(session) == [day(n, language) for n in range(1, 31)], "each once, in order"
                assert session.state.tasks[0].ended == "answered" and not events(session, e.CompactionRefused)
                made = events(session, e.ContextCompacted)
                assert len(made) >= 4 and {each.trigger for each in made} == {"threshold"}
                assert all(each.measured > each.budget == 2800 and each.measured_after < 2800 for each in made)
                assert len(events(session, e.SummaryCallStarted)) == len(made)
                newest = events(session, e.ModelCallEnded)[-1].text
                for order in ("O-0403", "O-0703", "O-1108", "O-1905", "O-2302", "O-2806", "O-1204", "O-2507"):
                    assert order in newest, "known from the summary"
                await run_sample(session, 2, language=language)
                assert "O-0205" in events(session, e.ModelCallEnded)[-1].text and len(reads(session)) == 30
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


@pytest.mark.parametrize("language", LANGUAGES)
def test_lab_09_beside_it_leaves_room_between_two_compactions(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10", extensions=("09",)) as opened:
            session = await opened.create(language=language)
            await run_sample(session, 1, language=language)
            assert reads(session) == [day(n, language) for n in range(1, 31)]
            assert not events(session, e.CompactionRefused, e.HookFailed)
            made = events(session, e.ContextCompacted)
            # Thirty steps: a summary for every other one would be dearer than what it frees.
            assert 4 <= len(made) <= 6 and not session.state.breaker.open
            assert all(each.left < 0.9 * each.budget and each.measured_after < each.budget for each in made)
            # Each was by lab 09, whose threshold is the lower one, and the page counts all of them.
            assert {each.strategy for each in made} == {"budgets"}
            shown = turns(session.state, "estimated", limits(session.records, session.state.calls))
            assert shown.past == len(made)

    asyncio.run(scenario())


def test_the_newest_six_rounds_stay_and_the_request_and_the_headings_are_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            for made in session.state.compactions:
                state = state_at(session.records, made.seq)
                kinds = [type(entry.message) for entry in state.context.entries]
                assert kinds[:2] == [SummaryMessage, UserMessage] and kinds.count(AssistantMessage) == 6
                assert state.context.entries[1].message.text == session.state.tasks[0].text
                heads = re.findall(r"^## (.*)$", made.event.summary, re.MULTILINE)
                assert heads == ["Decisions", "To do", "Key information", "Rejected options"]
                whole = made.summary.message.content
                assert all(demand in whole for demand in demands_of([session.state.history[0]]))

    asyncio.run(scenario())


def test_a_large_result_is_cut_at_once_and_lies_in_a_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            spilled = [each for event in events(session, e.ResultsDecided) for each in event.decisions if each.text]
            [decision] = spilled
            assert decision.verdict == "single" and decision.chars > 1200 >= len(decision.text)
            assert (session.workspace.root / decision.file).read_text() == (
                session.state.results[decision.call_id].message.text
            )
            assert decision.file.startswith(f"{FOLDER}/") and decision.file in decision.text
            # Before the next call, not at some threshold.
            decided = next(r.seq for r in session.records if getattr(r.event, "decisions", ())[:1] == (decision,))
            between = session.records[session.state.results[decision.call_id].seq : decided - 1]
            assert not [each for each in between if isinstance(each.event, e.ModelCallStarted)]

    asyncio.run(scenario())


def test_the_agent_marks_three_stages_and_each_gives_way_far_below_the_threshold(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 3)
                ended = [(each.name, each.by) for each in events(session, e.StageEnded)]
                assert ended == [(f"days {n}1 to {n}3", "agent") for n in range(3)]
                made = events(session, e.ContextCompacted)
                assert [each.trigger for each in made] == ["stage"] * 3 and all(not each.kept for each in made)
                assert all(each.measured < each.budget for each in made)
                assert reads(session) == [day(n + 10 * ten, "en") for ten in range(3) for n in (1, 2, 3)]
                for compaction in session.state.compactions:
                    entries = state_at(session.records, compaction.seq).context.entries
                    assert [entry.category for entry in entries] == ["summary", "user"]
                assert session.state.tasks[0].ended == "answered" and session.state.stage_ended == 0
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


def test_a_person_ends_a_stage_while_the_task_runs_and_only_then(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10", settings={"window": 100_000}) as opened:
            session = await opened.create(language="en")
            with pytest.raises(Problem) as caught:
                stages.end_stage(session, "")
            assert caught.value.code == "no_stages"
            session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
            await until(lambda: len(session.state.checkpoints) == 10)
            stages.end_stage(session, "  the first\nten ")
            stage = len(session.records)
            await finish(session)
            assert events(session, e.StageEnded) == [e.StageEnded(task=1, name="the first ten", by="person")]
            [made] = session.state.compactions
            assert made.event.trigger == "stage"
            assert all(entry.seq < stage for entry in made.removed) and all(seq > stage for seq in made.event.kept)
            assert reads(session) == [day(n, "en") for n in range(1, 31)]
            with pytest.raises(Problem) as caught:
                stages.end_stage(session, "")
            assert caught.value.code == "no_stages" and len(events(session, e.StageEnded)) == 1
            plan, _ = by_hand.plan_by_hand(session.strategy, session.state, 0)
            assert (
                not plan.kept + plan.pinned
                and plan.removed != by_hand.plan_by_hand(session.strategy, session.state, 1)[0].removed
            )
            by_hand.compact_now(session, focus="", keep=0, cut=plan.cut, language="en")
            await finish(session)
            assert [each.event.trigger for each in session.state.compactions] == ["stage", "by hand"]
            assert [entry.category for entry in session.state.context.entries] == ["summary"]
            with pytest.raises(Problem) as caught:
                by_hand.compact_now(session, focus="", keep=0, cut=0, language="en")
            assert caught.value.code == "nothing_to_compact"
            assert session.state.stage_ended == 0
            await run(session, "Which way of matching was rejected?")
            assert "O-0205" in events(session, e.ModelCallEnded)[-1].text

    asyncio.run(scenario())


def test_too_little_is_no_reason_for_a_summary(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10") as opened:
            session = await opened.create(language="en")
            session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
            await until(lambda: len(session.state.checkpoints) == 1)
            stages.end_stage(session, "")
            await until(lambda: bool(events(session, e.CompactionRefused)))
            assert events(session, e.CompactionRefused)[-1].reason == "little_gain"
            _, job = by_hand.plan_by_hand(session.strategy, session.state, 1)
            for language in ("en", "zh"):
                assert str(job.least) in load_words(language).t("stage.then")
            assert not events(session, e.SummaryCallStarted)

    asyncio.run(scenario())


def test_a_stage_whose_summary_was_cut_short_by_a_kill_is_compacted_after_the_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            (tmp_path / "first").mkdir()
            async with library(tmp_path / "first", lab="10", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 3)
            made = session.state.compactions[0]
            asked = seqs(session.records, e.SummaryCallStarted)[0]
            # While the summary is written, and when it has just taken effect but no step has been saved since.
            for seq in (asked, made.seq):
                into = tmp_path / str(seq)
                left_by_a_kill(session, tmp_path / "first", seq, into)
                async with library(into, lab="10", server=server) as opened:
                    again = await opened.open(session.id)
                    assert again.state.stage_ended == seqs(session.records, e.StageEnded)[0]
                    await finish(again)
                    assert [each.event.trigger for each in again.state.in_force] == ["stage"] * 3
                    assert [each.name for each in events(again, e.StageEnded)] == [
                        each.name for each in events(session, e.StageEnded)
                    ], "each stage is marked once"
                    assert_nothing_done_twice(again.records)

    asyncio.run(scenario())


def test_rounds_that_are_too_large_themselves_do_not_all_stay(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"event_chars": 0, "rounds_kept": 20}
        async with library(tmp_path, lab="10", settings=settings) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            assert session.state.tasks[0].ended == "answered"
            for made in session.state.compactions:
                entries = state_at(session.records, made.seq).context.entries
                assert sum(entry.category == "assistant" for entry in entries) < 20
            assert len(session.state.compactions) >= 4

    asyncio.run(scenario())


def test_a_refused_request_is_compacted_and_sent_once_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10", settings={"compress_at": 1000}) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            assert "overflow" in {each.event.trigger for each in session.state.compactions}
            assert session.state.tasks[0].ended == "answered" and len(set(reads(session))) == 30

    asyncio.run(scenario())


def test_a_summary_that_was_made_to_forget_makes_it_read_again_and_a_checkpoint_before_it_helps(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10", settings={"confirm_summary": 1}) as opened:
            session = await opened.create(language="en")

            async def go_on(forget: bool) -> None:
                while session.status != "idle":
                    if session.proposed:
                        text = session.proposed.text
                        session.confirmations.answer(re.sub(r"^- read .*\n?", "", text, flags=re.M) if forget else text)
                        forget = False
                    await asyncio.sleep(0.01)

            session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
            await go_on(forget=True)
            assert session.state.tasks[0].ended == "answered" and len(reads(session)) == 36
            assert reads(session)[12:18] == [day(n, "en") for n in range(1, 7)]
            await resume(session, 12, "person")
            await go_on(forget=False)
            assert session.state.tasks[0].ended == "answered"
            assert reads(session)[36:] == [day(n, "en") for n in range(13, 31)], "nothing is read twice"

    asyncio.run(scenario())


def test_an_older_checkpoint_takes_back_the_summaries_that_came_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="10", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                numbers = [made.event.number for made in session.state.in_force]
                assert len(numbers) >= 4
                await resume(session, 3, "person")
                # Nothing runs between the event and the first look at it.
                assert not session.state.in_force and not any(
                    entry.category == "summary" for entry in session.state.context.entries
                )
                await finish(session)
                again = [made.event.number for made in session.state.in_force]
                assert min(again) > max(numbers)
                assert_nothing_done_twice(session.records)
                # And on to one of the first way: what was in force there is in force again.
                state = session.state
                await resume(session, 30, "person")
                in_force = state.in_force[-1]
                assert in_force.event.number == max(numbers)
                [summary] = [entry for entry in state.context.entries if entry.category == "summary"]
                assert summary.seq == in_force.seq and summary.wire["role"] == "system"
                assert state.checkpoints[29][1].summary == in_force.event.summary
                await finish(session)
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


def test_everything_is_watched(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            measured = events(session, e.ContextMeasured)
            assert len(measured) == len([each for each in events(session, e.ModelCallStarted)])
            assert {warning(each.estimate, each.window) for each in measured} == {0, 50, 70}
            first = measured[0]
            assert first.exact == events(session, e.ModelCallStarted)[0].parts["system"].tokens + sum(
                events(session, e.ModelCallStarted)[0].parts[part].tokens for part in ("tools", "user")
            )

    asyncio.run(scenario())
    assert percent_threshold(128_000, 70) == 89_600 and percent_threshold(4000, 70) == 2800
    assert share(2000, 4000) == 50 and warning(3399, 4000) == 70 and warning(3400, 4000) == 85


def test_the_summariser_reads_all_or_only_the_newest_part() -> None:
    settings = LABS["10"].settings
    strategy = load(LABS["10"]).compaction
    assert strategy
    for chars in (0, 20_000):
        _, job = strategy(State(), settings | {"read_chars": chars}, "", 1)
        assert job.asked.reading.whole == chars and job.asked.limit == 0 and job.least == 300
    presets = {each.id: each.settings for each in LABS["10"].presets}
    assert presets["small"].items() <= settings.items()
    assert presets["article"] == {
        "window": 0, "compress_at": 70, "rounds_kept": 6, "event_chars": 8000, "read_chars": 20_000,
    }  # fmt: skip


def test_a_failing_summary_changes_nothing_and_the_task_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10", settings={"window": 5000}) as opened:
            session = await opened.create(language="en")
            by_hand.choose_fault(session, "summary_bare")
            session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
            await until(lambda: session.state.breaker.open == "failures")
            by_hand.choose_fault(session, "")
            by_hand.change_setting(session, "rounds_kept", 5)
            await finish(session)
            refused = {each.reason for each in events(session, e.CompactionRefused)}
            assert refused <= {"summary_headings", "breaker_failures"}
            assert session.state.tasks[0].ended == "answered" and len(session.state.compactions) >= 1
            assert reads(session) == [day(n, "en") for n in range(1, 31)]

    asyncio.run(scenario())


# As a file.


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a session with stages, checkpoints, a restart and a checkpoint that a person chose."""

    async def scenario() -> bytes:
        data = tmp_path_factory.mktemp("first")
        with running() as server:
            async with library(data, lab="10", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 3)
                session.start_task(session.lab.groups[0].samples[0].task["en"], language="en")
                await until(lambda: len(session.state.checkpoints) > 16)
            async with library(data, lab="10", server=server) as opened:
                session = await opened.open(session.id)
                await until(lambda: len(session.state.checkpoints) > 26)
                stages.end_stage(session, "half of it")
                await finish(session)
                await resume(session, 20, "person")
                await finish(session)
                await until(lambda: session.committed == len(session.records))
                return b"".join(export(opened.journal, session.id))

    return asyncio.run(scenario())


def imported(file: bytes, data: Path) -> Session:
    async def scenario() -> Session:
        async with library(data, lab="10") as opened:
            return await opened.open(await bring_in(opened, io.BytesIO(file), "orders.jsonl"))

    return asyncio.run(scenario())


def test_a_session_with_stages_and_resumes_travels(file: bytes, tmp_path: Path) -> None:
    session = imported(file, tmp_path)
    assert [each.by for each in events(session, e.TaskResumed)] == ["restart", "person"]
    assert {each.by for each in events(session, e.StageEnded)} == {"agent", "person"}
    assert session.status == "idle" and session.state.tasks[-1].ended == "answered"


def change(lines: Lines, kind: str, **values: object) -> None:
    """Change the last event of a kind."""
    body = next(line["body"] for line in reversed(lines) if line.get("kind") == kind)
    assert body.keys() >= values.keys()
    body.update(values)


def put(lines: Lines, before: str, kind: str, **body: object) -> None:
    """Put an event in front of the first one of a kind."""
    place = next(i for i, line in enumerate(lines) if line.get("kind") == before)
    lines.insert(place, {"seq": lines[place]["seq"], "time": lines[place]["time"], "kind": kind, "body": body})
    lines[0]["events"] += 1
    for line in lines[place + 1 :]:
        line["seq"] += 1


NOTHING: dict[str, object] = {"summary": "", "rounds": [], "workspace": 0}
DISHONEST: dict[str, tuple[Callable[[Lines], None], str]] = {
    "a resume to a checkpoint that is not there": (lambda x: change(x, "TaskResumed", number=999), "TaskResumed"),
    "a resume to another task's checkpoint": (lambda x: change(x, "TaskResumed", number=1), "TaskResumed"),
    "a resume of another task": (lambda x: change(x, "TaskResumed", task=1), "TaskResumed"),
    "a person's resume while the task runs": (
        lambda x: put(x, "TaskEnded", "TaskResumed", number=1, task=1, by="person"), "TaskResumed",
    ),
    "a restart that goes to another checkpoint": (
        lambda x: put(x, "TaskEnded", "TaskResumed", number=1, task=1, by="restart"), "TaskResumed",
    ),
    "a restart where nothing ran": (
        lambda x: put(x, "TaskStarted", "TaskResumed", number=1, task=1, by="restart"), "TaskResumed",
    ),
    "a checkpoint without a step": (
        lambda x: put(x, "TaskEnded", "CheckpointSaved", number=13, task=1, turn=13, **NOTHING), "CheckpointSaved",
    ),
    "a checkpoint of another number": (lambda x: change(x, "CheckpointSaved", number=2), "CheckpointSaved"),
    "a checkpoint of another turn": (lambda x: change(x, "CheckpointSaved", turn=2), "CheckpointSaved"),
    "a checkpoint with another summary": (lambda x: change(x, "CheckpointSaved", summary="do it"), "CheckpointSaved"),
    "a checkpoint with other rounds": (lambda x: change(x, "CheckpointSaved", rounds=[1, 2]), "CheckpointSaved"),
    "a checkpoint with a snapshot to come": (lambda x: change(x, "CheckpointSaved", workspace=500), "CheckpointSaved"),
    "a checkpoint of another task": (lambda x: change(x, "CheckpointSaved", task=1), "CheckpointSaved"),
    "a stage that the agent did not mark": (
        lambda x: put(x, "TaskEnded", "StageEnded", task=1, name="a", by="agent"), "StageEnded",
    ),
    "a stage at once while a task ran": (lambda x: change(x, "StageEnded", at_once=True), "StageEnded"),
    "a stage of another name": (lambda x: change(x, "StageEnded", by="agent"), "StageEnded"),
    "a stage before any task": (
        lambda x: put(x, "TaskStarted", "StageEnded", task=0, name="a", by="person"), "StageEnded",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DISHONEST)
def test_a_dishonest_file_is_refused(file: bytes, tmp_path: Path, name: str) -> None:
    spoil, kind = DISHONEST[name]
    lines = [json.loads(line) for line in file.splitlines()]
    spoil(lines)
    spoiled = b"\n".join(json.dumps(line).encode() for line in lines)
    with pytest.raises(Problem) as caught:
        imported(spoiled, tmp_path)
    assert caught.value.code == "import_order" and caught.value.values["kind"] == kind
    assert not list((tmp_path / "sessions").glob("*"))


def test_a_reply_to_a_call_that_a_kill_cut_short_is_refused() -> None:
    session = FoldedSession().begin()
    session.task("Read the files.")
    session.call_started()
    call = ToolCall("c1", "read", '{"path":"day-01.csv"}')
    session.call_ended("", call)
    session.tool(call, "a")
    session.add(made(session.state, rounds=6, workspace=0))
    session.call_started()
    seconds = {"usage": Usage(1, 1), "seconds": 0.1}
    late = e.ModelCallEnded(call=2, task=1, turn=1, text="late", calls=(), reasoning="", finish="stop", **seconds)
    assert in_place(session.state, Recorded(len(session.records) + 1, 0.0, late))
    session.add(e.TaskResumed(number=1, task=1, by="restart"))
    assert not in_place(session.state, Recorded(len(session.records) + 1, 0.0, late))


def test_a_call_that_a_kill_cut_short_is_not_shown_as_going_on() -> None:
    session = FoldedSession().begin()
    session.task("Read the files.")
    session.call_started()
    call = ToolCall("c1", "read", '{"path":"day-01.csv"}')
    session.call_ended("", call)
    session.tool(call, "a")
    session.add(made(session.state, rounds=6, workspace=0))
    cut_short = session.call_started()
    assert make_row(session, cut_short).live
    session.add(e.TaskResumed(number=1, task=1, by="restart"))
    assert not make_row(session, cut_short).live
    assert make_row(session, session.call_started()).live


def test_what_came_from_elsewhere_never_goes_on_by_itself(file: bytes, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in file.splitlines()]
    cut = next(i for i, line in enumerate(lines) if line.get("kind") == "CheckpointSaved") + 1
    lines = [lines[0] | {"events": cut - 1}, *lines[1:cut]]
    session = imported(b"\n".join(json.dumps(line).encode() for line in lines), tmp_path)
    assert session.state.settings["resume_by_itself"] == 1 and not events(session, e.TaskResumed)
    assert session.state.tasks[-1].ended == "interrupted"
