"""Spans are what the events say: of real sessions of several labs, live and out of the journal, whole and cut short."""

import asyncio
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harness import events as e
from harness.by_hand import choose_fault, compact_now, plan_by_hand, undo
from harness.hooks import Extension
from harness.loop import results_for_open_calls
from harness.recorded import Recorded
from harness.reopening import INTERRUPTED, resume
from harness.replay import fold
from harness.request import Request
from harness.session import Session
from harness.tracing.span import Span, name_trace
from harness.tracing.tracer import Tracer, spans_of, task_spans
from tests.checks_support import checking
from tests.children_support import FIXER, HANDED
from tests.children_support import finish as finish_all
from tests.harness_support import events, library, run, run_sample, until
from tests.tracing_support import assert_holds, inner, named

SAMPLES = {"04": (1, 4), "07": (1, 2, 3, 4, 5), "08": (1, 2, 3), "09": (1, 5), "10": (1,)}
NUMBERS = ["04", "05", "07", "08", "09", "10"]


@cache
def played(lab: str) -> tuple[str, tuple[Recorded, ...]]:
    """A session of a lab with its samples: its id and its records."""

    async def scenario(data: Path) -> tuple[str, tuple[Recorded, ...]]:
        opening = checking(data / "d") if lab == "05" else library(data, lab=lab)
        async with opening as opened:
            session = await opened.create(language="en")
            watched = Watched(session)
            for number in SAMPLES.get(lab, (1,)):
                await run_sample(session, number)
            assert watched.ended == [span for span in spans_of(session.id, session.records) if span.end]
            return session.id, tuple(session.records)

    with TemporaryDirectory() as data:
        return asyncio.run(scenario(Path(data)))


class Watched:
    """A tracer that follows a session while it runs, as an extension's would."""

    def __init__(self, session: Session) -> None:
        self.tracer, self._ended, emit = Tracer(session.id, requests=True), [], session._journal.append

        for recorded in session.records:
            self.tracer.follow(recorded)

        def append(session_id: str, recorded: Recorded, done: object) -> None:
            self._ended += self.tracer.follow(recorded, session.state)
            emit(session_id, recorded, done)  # type: ignore[arg-type]

        session._journal.append = append  # type: ignore[method-assign, assignment]

    @property
    def ended(self) -> list[Span]:
        return sorted(self._ended, key=lambda span: span.seq)


def one(spans: list[Span], name: str) -> Span:
    return next(span for span in spans if span.name == name)


@pytest.mark.parametrize("lab", NUMBERS)
def test_each_event_of_a_session_stands_in_a_span_that_nests_and_ends(lab: str) -> None:
    session, records = played(lab)
    spans = assert_holds(session, records)
    assert all(span.end is not None for span in spans)
    tasks = [each.seq for each in records if isinstance(each.event, e.TaskStarted)]
    roots = [span for span in spans if not span.parent]
    assert [(root.kind, root.trace) for root in roots] == [("AGENT", name_trace(session, seq)) for seq in tasks]
    assert all(root.asked and root.answer and not root.fault for root in roots)
    moments = {id(event): each.time for each in records for _, event in [inner(each)]}
    handed_on = {span.parent for span in spans if span.name.startswith("sub-agent")}
    for span in spans:
        assert span.begin == moments[id(span.begun)]
        if span.ended and span.id not in handed_on:
            assert span.end == moments[id(span.ended)], span.name
    above = {span.id: span for span in spans}
    for span in spans:
        holds = above[span.parent].name.split(" ")[0] if span.parent else ""
        assert holds in {"AGENT": ("", "task"), "LLM": ("turn", "compaction"), "TOOL": ("turn",)}.get(
            span.kind, ("turn", "task", "sub-agent")
        ), f"{span.name} in {holds}"


@pytest.mark.parametrize("lab", NUMBERS)
def test_the_spans_of_one_task_are_those_of_the_whole_session(lab: str) -> None:
    session, records = played(lab)
    whole = spans_of(session, records)
    for task in range(1, sum(isinstance(each.event, e.TaskStarted) for each in records) + 1):
        own = [(s.id, s.parent, s.name, s.begin, s.end, s.fault, s.model) for s in whole if s.task == task]
        found = task_spans(session, records, task)
        assert [(s.id, s.parent, s.name, s.begin, s.end, s.fault, s.model) for s in found] == own
        assert not any(span.request for span in found)
    assert task_spans(session, records, 0) == task_spans(session, records, 99) == []


@pytest.mark.parametrize("lab", ["04", "05", "08", "10"])
def test_wherever_a_kill_comes_the_restart_closes_everything_at_the_last_moment_that_is_known(lab: str) -> None:
    session, records = played(lab)
    begun = next(place for place, each in enumerate(records) if isinstance(each.event, e.TaskStarted))
    # Of a long session some places: each is folded from its start.
    for count in range(begun + 1, len(records), 1 + len(records) // 60):
        state = fold((each.seq, each.event) for each in records[:count])
        if not state.running_task():
            continue
        late: list[e.Event] = []
        for number, child in state.children.items():
            if child.state.running_task():
                results = results_for_open_calls(child.state, INTERRUPTED)
                ends = [*results, e.TaskEnded(task=1, reason="interrupted", seconds=0.0)]
                late += [e.ChildEvent(child=number, event=each) for each in ends]
        late += results_for_open_calls(state, INTERRUPTED)
        late.append(e.TaskEnded(task=len(state.tasks), reason="interrupted", seconds=0.0))
        last = records[count - 1]
        more = [Recorded(last.seq + n, last.time + 200_000, event) for n, event in enumerate(late, 1)]
        spans = assert_holds(session, [*records[:count], *more])
        assert all(span.end is not None and span.end <= last.time for span in spans)
        assert [span.fault for span in spans if not span.parent][-1] == "interrupted"


def test_a_compaction_holds_its_summary_call_and_what_comes_after_is_marked(tmp_path: Path) -> None:
    spans = spans_of(*played("08"))
    compaction = one(spans, "compaction 1")
    summary = next(span for span in spans if span.parent == compaction.id)
    assert summary.name.startswith("summary call") and not summary.compacted
    assert isinstance(compaction.ended, e.ContextCompacted) and isinstance(compaction.begun, e.SummaryCallStarted)
    turns = [span for span in named(spans, "model")]
    assert [span.compacted for span in turns] == [span.seq > compaction.seq for span in turns]


def test_a_sub_agent_stands_below_its_call_and_ends_when_its_own_work_does() -> None:
    spans = spans_of(*played("04"))
    children = named(spans, "sub-agent")
    assert len(children) == 6
    by_id = {span.id: span for span in spans}
    for child in children:
        tool = by_id[child.parent]
        assert (tool.kind, tool.name, tool.child) == ("TOOL", "task", 0)
        assert child.asked and child.answer and tool.end == child.end
        assert any(span.parent == child.id and span.name == "turn 1" for span in spans)
    # The five side by side end one by one, though their results are told together.
    assert len({child.end for child in children[:5]}) == 5


async def _answered(session: Session, allowed: bool | None) -> None:
    session.start_task("Run the tests and tell me what they say.", language="en")
    await until(lambda: session.waiting)
    await asyncio.sleep(0.05)
    if allowed is None:
        await session.stop()
    else:
        assert session.waiting and session.answer(session.waiting.call_id, allowed)
        await until(lambda: session.status == "idle")


def test_waiting_for_a_person_is_apart_from_a_tools_own_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            session = await opened.create(language="en")
            for allowed in (True, False, None):
                await _answered(session, allowed)
            spans = assert_holds(session.id, session.records)
            asked, tools = named(spans, "approval"), [span for span in spans if span.kind == "TOOL"]
            assert [span.name for span in asked] == ["approval bash"] * 3
            assert [span.fault for span in asked] == ["", "denied", "stopped"]
            assert all(span.end - span.begin >= 0.05 for span in asked if span.end)
            assert tools[0].begin >= asked[0].end and tools[0].parent == asked[0].parent
            assert [span.fault for span in tools[1:]] == ["not_run", "stopped"]
            assert all(span.begin == span.end for span in tools[1:])
            assert [span.fault for span in spans if not span.parent] == ["", "", "stopped"]
            assert tools[0].tool and tools[0].tool["function"]["name"] == "bash"

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", ["server_error", "empty", "summary_empty", "summary_error"])
def test_what_failed_says_so_and_all_is_closed(tmp_path: Path, fault: str) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="07") as opened:
            session = await opened.create(language="en")
            if fault.startswith("summary"):
                await run_sample(session, 1)
            choose_fault(session, fault)
            await run_sample(session, 2)
            spans = assert_holds(session.id, session.records)
            assert all(span.end is not None for span in spans)
            root = [span for span in spans if not span.parent][-1]
            if fault.startswith("summary"):
                compaction = one(spans, "compaction 1")
                assert compaction.fault == events(session, e.CompactionRefused)[-1].reason and not root.fault
            else:
                assert root.fault == "failed"

    asyncio.run(scenario())


def test_a_compaction_by_hand_is_a_trace_of_its_own_and_numbers_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="07", settings={"budget": 100_000}) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            await run_sample(session, 2)
            assert session.strategy
            cut = plan_by_hand(session.strategy, session.state, 1)[0].cut
            compact_now(session, focus="", keep=1, cut=cut, language="en")
            await until(lambda: session.status == "idle")
            undo(session, 1)
            await run_sample(session, 4)
            spans = assert_holds(session.id, session.records)
            compaction = one(spans, "compaction 1")
            assert (compaction.parent, compaction.task, compaction.fault) == ("", 0, "")
            assert compaction.trace == name_trace(session.id, compaction.seq)
            assert {span.trace for span in spans if span.task == 3} != {compaction.trace}
            assert not any(span.compacted for span in spans), "it was undone"

    asyncio.run(scenario())


def test_a_task_that_goes_on_has_another_root_in_the_same_trace(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="10") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            await resume(session, session.state.checkpoints[0][1].number, "person")
            await finish_all(session)
            spans = assert_holds(session.id, session.records)
            roots = [span for span in spans if not span.parent]
            assert [root.name for root in roots] == ["task 1", "task 1"] and len({root.trace for root in roots}) == 1
            assert roots[0].asked == roots[1].asked and roots[1].answer
            assert all(span.end is not None for span in spans)
            assert len(task_spans(session.id, session.records, 1)) == len(spans)

    asyncio.run(scenario())


def test_a_stop_closes_sub_agents_and_what_they_do(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="04") as opened:
            session = await opened.create(language="en")
            session.start_task(FIXER, language="en")
            await until(lambda: session.waiting)
            await session.stop()
            spans = assert_holds(session.id, session.records)
            assert all(span.end is not None for span in spans)
            faults = {span.name: span.fault for span in spans}
            assert faults["task 1"] == faults["sub-agent 1"] == faults["approval bash"] == "stopped"
            session.start_task(HANDED, language="en")
            await until(lambda: len(session.state.children) == 6)
            await session.stop()
            spans = assert_holds(session.id, session.records)
            assert all(span.end is not None for span in spans)

    asyncio.run(scenario())


def test_what_takes_no_time_stands_in_the_innermost_span_with_its_moment() -> None:
    session, records = played("09")
    spans = spans_of(session, records)
    told = [event for span in spans for _, event in span.happened]
    for kind in (e.ContextMeasured, e.ResultsDecided):
        wanted = [event for _, event in map(inner, records) if isinstance(event, kind)]
        assert wanted and [event for event in told if isinstance(event, kind)] == wanted
    for span in spans:
        assert all(span.begin <= moment <= (span.end or moment) for moment, _ in span.happened)


def test_a_request_that_an_extension_changed_on_its_way_is_the_one_that_was_sent(tmp_path: Path) -> None:
    def shout(request: Request) -> Request:
        last = request.messages[-1]
        return replace(request, messages=(*request.messages[:-1], last | {"content": last["content"].upper()}))

    async def scenario() -> None:
        async with library(tmp_path, lab="07") as opened:
            session = await opened.create(language="en")
            session.extensions += (Extension("shouting", before_send=shout),)
            await run(session, "Read incident-log.md and sort it.")
            spans = assert_holds(session.id, session.records)
            last = [span.request for span in named(spans, "model") if span.request][-1]
            assert last.messages[-1]["content"].isupper()

    asyncio.run(scenario())


def test_following_costs_the_same_however_long_the_session_is() -> None:
    session, records = played("07")
    tracer, counts = Tracer(session), []
    for recorded in [*records, *records, *records]:
        tracer.fold(recorded)
        counts.append(len(tracer.open))
    assert max(counts) <= 6 and counts[-1] == 0


def test_a_clock_that_goes_back_gives_no_negative_time() -> None:
    session, records = played("07")
    back = [Recorded(each.seq, 1_000_000 - each.seq, each.event) for each in records]
    assert all(span.end is not None and span.end >= span.begin for span in spans_of(session, back))
    assert time.time() > 1_000_000
