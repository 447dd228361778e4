"""Lab 08 over the real wire: when it acts, where it cuts, what it keeps, and that a failure changes nothing."""

import asyncio
import json
from pathlib import Path

import pytest

from harness import events as e
from harness.accounting import estimate
from harness.by_hand import change_setting, compact_now, plan_by_hand
from harness.compaction import parts_of
from harness.discovery import find_labs, load
from harness.replay import State
from harness.session import Session
from tests.harness_support import assert_rebuilt, events, library, run, run_sample, running, until
from web.figures import limits

ROOT = Path(__file__).parent.parent
LIMIT = {"en": "Do not change any file but report.py.", "zh": "除 report.py 外不要改动任何文件"}


def logs(folder: Path, count: int = 6, lines: int = 60) -> Path:
    """Write a folder of files of some 700 tokens each."""
    folder.mkdir()
    for number in range(count):
        text = "".join(f"- {number}.{n} Confirmed: valve {number}{n} was tight.\n" for n in range(lines))
        (folder / f"log-{number}.md").write_text(text)
    return folder


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_samples_show_what_they_promise(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="08", server=server) as opened:
                session = await opened.create(language=language)
                await run_sample(session, 1, language=language)
                [made] = session.state.compactions
                check_inside(session, made.event)
                assert "report.py" in session.state.history[-1].message.text
                assert "OK" in [r.message for r in session.state.history if r.category == "results"][-1].text
                await run_sample(session, 2, language=language)
                assert "9e41c7" not in session.state.history[-1].message.text
                await run_sample(session, 3, language=language)
                assert "9e41c7" in session.state.history[-1].message.text
                first, second = events(session, e.ContextCompacted)
                assert second.removed[0] == made.seq, "the earlier summary is brought up to date"
                assert LIMIT[language] in session.state.context.entries[0].wire["content"]
                await run_sample(session, 4, language=language)
                assert LIMIT[language] in session.state.history[-1].message.text
                assert_rebuilt(session, server.requests)
                assert first.summary in summary_requests(server.requests)[-1]["messages"][1]["content"]

    asyncio.run(scenario())


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("lab", "other"), [("08", "09"), ("09", "08")])
def test_beside_lab_09_no_reply_and_no_summary_is_cut(tmp_path: Path, lab: str, other: str, language: str) -> None:
    async def scenario() -> None:
        # With previews of its results the English task alone would not come to either threshold.
        async with library(tmp_path, lab=lab, extensions=(other,), settings={"trigger": 2_180}) as opened:
            session = await opened.create(language=language)
            for number in range(1, 1 + sum(len(group.samples) for group in session.lab.groups)):
                await run_sample(session, number, language=language)
            ended = events(session, e.ModelCallEnded, e.SummaryCallEnded)
            assert {each.finish for each in ended} == {"stop", "tool_calls"}
            assert {task.ended for task in session.state.tasks} == {"answered"}
            assert session.state.compactions

    asyncio.run(scenario())


def check_inside(session: Session, event: e.ContextCompacted) -> None:
    request = session.state.tasks[0].seq
    assert (event.trigger, event.unit, event.scope) == ("threshold", "tokens", "request")
    assert event.measured > event.budget == 3200 and event.measured_after == event.after.tokens < 3200
    assert event.pinned == (request,) and event.cut > request
    entries = session.state.context.entries
    assert [entry.seq for entry in entries[:2]] == [session.state.compactions[0].seq, request]
    assert entries[1].wire["content"] == session.state.tasks[0].text
    reads = [json.loads(c.arguments) for c in calls_of(session) if c.name == "read"]
    assert len(reads) == len({read["path"] for read in reads}) == 6, "no step is done twice"


def calls_of(session: Session) -> list:
    return [call for entry in session.state.history if entry.category == "assistant" for call in entry.message.calls]


def summary_requests(requests: list[bytes]) -> list[dict]:
    return [json.loads(raw) for raw in requests if b"<history>" in raw]


def test_before_every_call_there_is_a_measure_with_both_estimates(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="08") as opened:
            session = await opened.create(language="zh")
            await run_sample(session, 1, language="zh")
            measured = events(session, e.ContextMeasured)
            started = events(session, e.ModelCallStarted)
            assert len(measured) == len(started)
            assert measured[0].reported is None and measured[0].call == 0
            usage = {record.call: record.usage for record in session.state.calls}
            for each in measured[1:]:
                if each.reported is not None:
                    assert usage[each.call] and each.reported == usage[each.call].prompt <= each.exact
            read = measured[3]
            assert read.exact - read.reported > 2 * (read.simple - read.reported), "a quarter of Chinese is far too low"

    asyncio.run(scenario())


def test_a_report_from_before_a_cut_is_void(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="08") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            compacted = events(session, e.ContextCompacted)[0]
            records = [each.event for each in session.records]
            following = next(x for x in records[records.index(compacted) :] if isinstance(x, e.ModelCallStarted))
            assert sum(size.tokens for size in following.parts.values()) == compacted.after.tokens
            after = next(x for x in records[records.index(following) :] if isinstance(x, e.ContextMeasured))
            assert after.call == following.call, "the next report holds again"

    asyncio.run(scenario())


def test_strictly_above_and_a_trigger_by_hand_counts_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = logs(tmp_path / "logs")
        async with library(tmp_path, lab="08", source=source, settings={"trigger": 10_000}) as opened:
            session = await opened.create(language="en")
            await run(session, "Read log-0.md and sort it.")
            size = events(session, e.ContextMeasured)[-1].estimate
        for trigger, cuts in ((size, 0), (size - 1, 1)):
            folder = tmp_path / str(trigger)
            folder.mkdir()
            async with library(folder, lab="08", source=source, settings={"trigger": trigger, "keep": 1}) as opened:
                session = await opened.create(language="en")
                await run(session, "Read log-0.md and sort it.")
                assert events(session, e.ContextMeasured)[-1].threshold == trigger
                tried = events(session, e.ContextCompacted, e.CompactionRefused)
                assert len(tried) == cuts

    asyncio.run(scenario())


def test_a_cut_at_the_very_start_is_said_once_and_asks_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            settings = {"trigger": 300, "keep": 50_000, "window": 60_000}
            async with library(tmp_path, lab="08", server=server, settings=settings) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                refused = events(session, e.CompactionRefused)
                assert [(each.reason, each.failures) for each in refused] == [("nothing_to_cut", 0)]
                assert not summary_requests(server.requests)

    asyncio.run(scenario())


NEWS = (e.ContextMeasured, e.ModelCallFailed)


def test_an_overflow_is_compacted_once_and_sent_once_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = logs(tmp_path / "logs")
        with running() as server:
            # The lab believes in a window that the provider does not have.
            settings = {"trigger": 60_000, "keep": 600, "window": 2000}
            async with library(tmp_path, lab="08", server=server, settings=settings, source=source) as opened:
                session = await opened.create(language="en")
                await run(session, "Read log-0.md and sort it.")
                await run(session, "Read log-1.md and sort it.")
                [failed] = events(session, e.ModelCallFailed)
                [made] = events(session, e.ContextCompacted)
                assert failed.kind == "overflow" and made.trigger == "overflow"
                told = [each.event for each in session.records if isinstance(each.event, NEWS)]
                place = told.index(failed)
                assert isinstance(told[place - 1], e.ContextMeasured) and told[place - 1] not in told[place:]
                measured = limits(session.records, session.state.calls)
                assert measured[failed.call] == told[place - 1] and len(measured) == len(session.state.calls) - 1
                assert [task.ended for task in session.state.tasks] == ["answered", "answered"]
                assert_rebuilt(session, [raw for raw in server.requests])

    asyncio.run(scenario())


def test_an_overflow_that_stays_ends_the_task_with_its_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = logs(tmp_path / "logs", lines=400)
        async with library(tmp_path, lab="08", source=source, settings={"window": 2000, "trigger": 60_000}) as opened:
            session = await opened.create(language="en")
            await run(session, "Read log-0.md and sort it.")
            assert session.state.tasks[0].ended == "failed"
            assert [each.kind for each in events(session, e.ModelCallFailed)][-1] == "overflow"
            assert len(events(session, e.ModelCallFailed)) <= 2

    asyncio.run(scenario())


def test_a_summary_cut_by_length_is_asked_once_more_with_the_least_thinking(tmp_path: Path) -> None:
    async def scenario(fault: str, cuts: int) -> None:
        folder = tmp_path / fault
        folder.mkdir()
        with running(fault) as server:
            async with library(folder, lab="08", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                asked = summary_requests(server.requests)
                assert [each.get("reasoning_effort") for each in asked[:2]] == [None, "minimal"]
                assert (
                    asked[0]["messages"] == asked[1]["messages"]
                    and asked[0]["max_tokens"] == asked[1]["max_tokens"] == 640
                )
                assert len(events(session, e.ContextCompacted)) == cuts
                if not cuts:
                    assert events(session, e.CompactionRefused)[0].reason == "summary_cut_off"
                    assert session.state.context.entries == session.state.history
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario("summary_thinking", 1))
    asyncio.run(scenario("summary_truncated", 0))


def test_a_demand_that_a_person_strikes_out_stands_beside_the_summary(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="08", settings={"trigger": 60_000, "window": 60_000}) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            change_setting(session, "confirm_summary", 1)
            assert session.strategy
            plan, _ = plan_by_hand(session.strategy, session.state, 1)
            compact_now(session, focus="", keep=1, cut=plan.cut, language="en")
            await until(lambda: session.proposed)
            assert session.proposed and LIMIT["en"] in session.proposed.text
            assert session.confirmations.answer(session.proposed.text.replace(LIMIT["en"], "none")) == ""
            await until(lambda: session.status == "idle")
            [made] = session.state.compactions
            assert LIMIT["en"] not in made.event.summary and LIMIT["en"] in made.event.beside

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("provider", "model", "tokens"),
    [("openai", "gpt-4o-mini", 16_384), ("openai", "gpt-5", 26_214), ("compatible", "gpt-4o", 26_214)],
)
def test_a_summary_gets_no_more_than_the_model_writes(provider: str, model: str, tokens: int) -> None:
    lab = find_labs(ROOT / "labs")["08"]
    state, strategy = State(), load(lab).compaction
    settings = {**lab.settings, **next(each for each in lab.presets if each.id == "article").settings}
    state.apply(1, e.SessionStarted(lab="08", extensions=(), workspace="w", language="en", settings=settings))
    state.apply(2, e.ModelChosen(model=model, provider=provider, reason="openai_key", window=128_000))
    assert strategy and strategy(state, settings, "", 1)[1].asked.reply_tokens == tokens


def test_three_failures_open_the_breaker_and_a_cut_by_hand_closes_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = logs(tmp_path / "logs")
        with running("summary_empty") as server:
            settings = {"trigger": 700, "keep": 300, "window": 60_000}
            async with library(tmp_path, lab="08", server=server, settings=settings, source=source) as opened:
                session = await opened.create(language="en")
                for number in range(4):
                    await run(session, f"Read log-{number}.md and sort it.")
                refused = [each for each in events(session, e.CompactionRefused) if each.reason != "nothing_to_cut"]
                assert [each.failures for each in refused[:3]] == [1, 2, 3]
                assert {each.reason for each in refused[3:]} == {"breaker_failures"}
                asked = len(summary_requests(server.requests))
                assert asked == 3 and session.state.breaker.open == "failures"
                server.faults.set("")
                await run(session, "Which are confirmed?")
                assert len(summary_requests(server.requests)) == asked, "it stays open by itself"
                assert session.strategy
                plan, _ = plan_by_hand(session.strategy, session.state, 1)
                compact_now(session, focus="", keep=1, cut=plan.cut, language="en")
                await until(lambda: session.status == "idle")
                assert len(events(session, e.ContextCompacted)) == 1 and not session.state.breaker.open

    asyncio.run(scenario())


def test_two_passes_that_do_not_help_end_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = logs(tmp_path / "logs", count=8, lines=12)
        with running() as server:
            # System prompt and tools alone are past this threshold.
            settings = {"trigger": 100, "keep": 200, "window": 60_000}
            async with library(tmp_path, lab="08", server=server, settings=settings, source=source) as opened:
                session = await opened.create(language="en")
                for number in range(8):
                    await run(session, f"Read log-{number}.md and sort it.")
                assert session.state.breaker.open == "no_progress"
                made = events(session, e.ContextCompacted)
                assert len(made) == 2 and all(each.measured_after > each.budget for each in made)
                before = len(summary_requests(server.requests))
                await run(session, "Which are confirmed?")
                assert len(summary_requests(server.requests)) == before

    asyncio.run(scenario())


def test_a_pass_that_would_help_is_made_though_two_did_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = logs(tmp_path / "logs", count=6, lines=150)
        settings = {"trigger": 2000, "keep": 400, "window": 60_000}
        async with library(tmp_path, lab="08", settings=settings, source=source) as opened:
            session = await opened.create(language="en")
            for number in range(6):
                await run(session, f"Read log-{number}.md and sort it.")
            largest = max(each.estimate for each in events(session, e.ContextMeasured))
            assert len(events(session, e.ContextCompacted)) > 2 and largest < 9_000

    asyncio.run(scenario())


def test_the_preview_is_what_compact_now_does(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="08", settings={"trigger": 60_000, "window": 60_000}) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            assert session.strategy and not session.state.compactions
            plan, job = plan_by_hand(session.strategy, session.state, 1)
            assert plan.trigger == "by hand" and plan.measured == estimate(session.state).exact and job.demands
            removed, stays = parts_of(session.state.context, plan)
            compact_now(session, focus="", keep=1, cut=plan.cut, language="en")
            await until(lambda: session.status == "idle")
            [made] = session.state.compactions
            assert list(made.removed) == removed and session.state.context.entries[1:] == stays
            assert LIMIT["en"] in made.event.demands and LIMIT["en"] in made.summary.wire["content"]

    asyncio.run(scenario())
