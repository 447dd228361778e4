"""Spans on their way: what they hold, what they must not hold, and that no task ever waits for them."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import events as e
from harness.masking import MASK, learn
from harness.recorded import Recorded
from harness.session import Session
from harness.sizes import Usage
from harness.tracing import sender as sender_module
from harness.tracing.attributes import attributes, happenings
from harness.tracing.messages import TEXT_CHARS
from harness.tracing.place import Place, place_of
from harness.tracing.sender import Sender
from harness.tracing.sending import send_later
from harness.tracing.standing import Sending
from harness.tracing.tracer import spans_of
from harness.watching import Happened
from tests.checkpoints_support import left_by_a_kill
from tests.harness_support import ROOT, library, names, run, run_sample, running, until

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the group `observability` is not installed")

from tests.collector import Collector, collecting, free_port, told  # noqa: E402

KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for name in ("API_KEY", "CLIENT_HEADERS", "PROJECT_NAME"):
        monkeypatch.delenv(f"PHOENIX_{name}", raising=False)
    address = "http://127.0.0.1:1"
    if "collector" in request.fixturenames:
        address = request.getfixturevalue("collector").address
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", address)
    monkeypatch.setattr(sender_module, "PAUSE", 0.1)
    monkeypatch.setattr(sender_module, "GATHER", 0.02)


def stands(session: Session) -> Sending:
    found = next(each.sending for each in session.extensions if each.sending)(session.id)
    assert found
    return found


async def sent(session: Session) -> int:
    """Wait until all spans of a session were sent; return how many."""
    count = len([span for span in spans_of(session.id, session.records) if span.end])
    await until(lambda: stands(session).sent >= count)
    assert (stands(session).sent, stands(session).waiting, stands(session).lost) == (count, 0, 0)
    return count


def test_a_task_is_sent_while_it_runs_with_its_messages_and_its_tokens(tmp_path: Path, collector: Collector) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="07", extensions=("06",)) as opened:
            session = await opened.create(language="en")
            assert stands(session) == Sending(collector.address)
            await run_sample(session, 1)
            await run_sample(session, 2)
            assert await sent(session) == len(collector.spans)
            assert not any(name == "HookFailed" for name in names(session))
            first, ids = collector.spans[0], [span.span_id for span in collector.spans]
            assert len(set(ids)) == len(ids) and len(first.trace_id) == 16
            [resource] = {
                each.resource.SerializeToString() for one in collector.requests for each in one.resource_spans
            }
            assert b"openinference.project.name" in resource and b"context-lab" in resource
            call = collector.attributes("model call 2")
            ended = next(each.event for each in session.records if isinstance(each.event, e.ModelCallEnded)
                         and each.event.call == 2)  # fmt: skip
            assert call["llm.token_count.prompt"] == call["gen_ai.usage.input_tokens"] == ended.usage.prompt
            assert call["llm.token_count.total"] == ended.usage.prompt + ended.usage.completion
            assert call["llm.token_count.prompt_details.cache_read"] == ended.usage.cached
            assert call["llm.input_messages.3.message.tool_call_id"] == call[
                "llm.input_messages.2.message.tool_calls.0.tool_call.id"]  # fmt: skip
            assert call["llm.output_messages.0.message.content"] == ended.text
            assert json.loads(call["llm.tools.0.tool.json_schema"])["function"]["name"]
            assert json.loads(call["llm.invocation_parameters"])["stream"] is True
            assert json.loads(call["input.value"])["messages"][1]["role"] == "user"
            parts = json.loads(call["gen_ai.input.messages"])
            assert [each["role"] for each in parts] == ["user", "assistant", "tool"]
            assert call["gen_ai.response.finish_reasons"].values[0].string_value == "stop"
            sizes = json.loads(call["metadata"])["size"]
            assert sizes["results"]["characters"] > 1000 and set(sizes["user"]) == {"characters", "tokens_estimated"}

    asyncio.run(scenario())


def test_nobody_who_counts_is_not_zero() -> None:
    async def scenario() -> list[Recorded]:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as data:
            async with library(Path(data), lab="01") as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                return list(session.records)

    records = [
        replace(each, event=replace(each.event, usage=Usage())) if isinstance(each.event, e.ModelCallEnded) else each
        for each in asyncio.run(scenario())
    ]
    for span in spans_of("s", records):
        found = attributes(span)
        assert not any("token_count" in name or "usage" in name for name in found)
        assert found["session.id"] == found["gen_ai.conversation.id"] == "s"


def test_no_secret_and_no_endless_text_leaves_the_session(tmp_path: Path, collector: Collector) -> None:
    async def scenario() -> None:
        own = "the-servers-own-words-1"
        learn([own])
        (tmp_path / "w").mkdir()
        (tmp_path / "w" / "notes.md").write_text(f"password = {KEY}\n{own}\n")
        async with library(tmp_path / "d", lab="07", extensions=("06",), source=tmp_path / "w") as opened:
            session = await opened.create(language="en")
            await run(session, f"Read notes.md. My key is {KEY}. {'long ' * 10_000}")
            session.emit(e.HookFailed(task=1, extension="x", hook="on_stop", detail=f"token {KEY}"))
            await run(session, "From that: what is confirmed?")
            await sent(session)
            whole = b"".join(each.SerializeToString() for each in collector.requests)
            assert KEY.encode() not in whole and own.encode() not in whole and MASK.encode() in whole
            asked = collector.attributes("task 1")["input.value"]
            assert len(asked) < TEXT_CHARS + 100 and asked.endswith("more characters left out]")
            assert MASK in collector.attributes("read")["output.value"]

    (tmp_path / "d").mkdir()
    asyncio.run(scenario())


HIDING = {
    "OPENINFERENCE_HIDE_INPUTS": ["and sort it"],
    "OPENINFERENCE_HIDE_OUTPUTS": ["### Confirmed\n\n"],
    "OPENINFERENCE_HIDE_INPUT_MESSAGES": ["You work in one folder"],
    "OPENINFERENCE_HIDE_INPUT_TEXT": ["You work in one folder"],
    "OPENINFERENCE_HIDE_LLM_TOOLS": ["old_text", '"parameters"'],
    "OPENINFERENCE_HIDE_LLM_INVOCATION_PARAMETERS": ["include_usage"],
}


@pytest.mark.parametrize("variable", HIDING)
def test_what_is_to_be_hidden_is_hidden_under_every_name(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    def of_calls() -> str:
        found = [told(span.attributes) for span in collector.spans if span.name.startswith("model call")]
        return "\n".join(str(value) for each in found for value in each.values())

    async def scenario(project: str) -> None:
        monkeypatch.setenv("PHOENIX_PROJECT_NAME", project)
        async with library(tmp_path / project, lab="06", source=ROOT / "demo_workspace/incident-log") as opened:
            session = await opened.create(language="en")
            await run(session, "Read incident-log.md and sort it.")
            await sent(session)

    for project in ("open", "hidden"):
        (tmp_path / project).mkdir()
    asyncio.run(scenario("open"))
    before = of_calls()
    words = [word for word in HIDING[variable] if word in before]
    assert words, "the words are in it where nothing is hidden"
    collector.requests.clear()
    monkeypatch.setenv(variable, "true")
    asyncio.run(scenario("hidden"))
    after = of_calls()
    # What came back of a tool is an input of the next call.
    assert not [word for word in words if word in after]


def test_where_nobody_listens_tasks_go_on_and_spans_wait_and_go_later(tmp_path: Path, monkeypatch: Any) -> None:
    port = free_port()
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", f"http://127.0.0.1:{port}")

    async def scenario() -> None:
        async with library(tmp_path, lab="06") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            await until(lambda: stands(session).fault)
            assert (stands(session).fault, stands(session).sent) == ("unreachable", 0)
            assert stands(session).detail == "ConnectionError"
            await run_sample(session, 3)
            assert [task.ended for task in session.state.tasks] == ["answered"] * 2
            with collecting(port) as collector:
                await sent(session)
                assert stands(session).fault == "" and len(collector.spans) == stands(session).sent

    asyncio.run(scenario())


def test_what_finds_no_room_is_lost_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "MOST_SPANS", 5)

    async def scenario() -> None:
        async with library(tmp_path, lab="06") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            count = len(spans_of(session.id, session.records))
            await until(lambda: stands(session).lost == count - 5)
            assert stands(session).waiting == 5

    monkeypatch.setenv("PHOENIX_PROJECT_NAME", "no-room")
    asyncio.run(scenario())


def test_a_refusal_loses_what_it_refuses_and_says_so(tmp_path: Path, collector: Collector) -> None:
    async def scenario() -> None:
        collector.status = 401
        async with library(tmp_path, lab="06") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 3)
            count = len(spans_of(session.id, session.records))
            await until(lambda: stands(session).lost == count)
            assert (stands(session).fault, stands(session).detail) == ("refused", "HTTP 401")
            collector.status = 200
            result = send_later(session.id, session.records)
            assert (result.sent, result.fault, len(collector.spans)) == (count, "", count)

    asyncio.run(scenario())


def test_a_slow_collector_never_holds_up_the_loop(tmp_path: Path, collector: Collector) -> None:
    async def scenario() -> None:
        collector.seconds = 1.0
        async with library(tmp_path, lab="06") as opened:
            session = await opened.create(language="en")
            longest, done = 0.0, False

            async def watch() -> None:
                nonlocal longest
                while not done:
                    began = time.thread_time()
                    await asyncio.sleep(0)
                    longest = max(longest, time.thread_time() - began)

            watching = asyncio.ensure_future(watch())
            for number in (1, 2, 3):
                await run_sample(session, number)
            done = True
            await watching
            assert stands(session).sent < len(spans_of(session.id, session.records)), "it was still sending"
            assert longest < 0.5, "seconds of CPU in one step of the loop"

    asyncio.run(scenario())


def test_a_restart_closes_in_the_trace_what_the_kill_cut_short(tmp_path: Path, collector: Collector) -> None:
    async def scenario() -> None:
        with running() as model:
            async with library(tmp_path / "a", lab="06", server=model) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                await run_sample(session, 2)
                cut = [each.seq for each in session.records if isinstance(each.event, e.ToolStarted)][-1]
                await sent(session)
                left_by_a_kill(session, tmp_path / "a", cut, tmp_path / "b")
            collector.requests.clear()
            # Another process knows nothing of the first one's spans.
            sender_module.sender.cache_clear()
            async with library(tmp_path / "b", lab="06", server=model) as opened:
                again = await opened.open(session.id)
                await until(lambda: "task 2" in collector.names)
                cut_short = [span for span in spans_of(again.id, again.records) if span.fault == "interrupted"]
                assert (
                    sorted(collector.names) == sorted(span.name for span in cut_short) == ["bash", "task 2", "turn 4"]
                )
                root = told(next(span for span in collector.spans if span.name == "task 2").attributes)
                assert root["error.type"] == "interrupted" and root["input.value"].startswith("A test of this")

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    asyncio.run(scenario())


def test_a_span_that_cannot_be_written_costs_only_itself(collector: Collector) -> None:
    task = [
        e.ModelChosen(model="m", provider="offline", reason="no_key"),
        e.InstructionsSet(system="s", tools=()),
        e.TaskStarted(task=1, text="hello", language="en"),
        e.ModelCallStarted(call=1, task=1, turn=1, messages=2, parts={}, digest=""),
        e.ModelCallEnded(call=1, task=1, turn=1, text="a", calls=(), reasoning="", finish="stop", seconds=1.0,
                         usage=Usage(2**80, -1, None)),
        e.TaskEnded(task=1, reason="answered", seconds=1.0),
    ]  # fmt: skip
    records = [Recorded(seq, (float("nan"), 1e300, -5.0, 2.0)[seq % 4], event) for seq, event in enumerate(task, 1)]
    result = send_later("s", records, collector.address)
    assert (result.sent, result.fault) == (3, "") and len(collector.spans) == 3


@pytest.mark.parametrize("missing", ["opentelemetry", "openinference"])
def test_without_the_packages_the_lab_runs_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == missing or each == "harness.tracing.otlp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setenv("PHOENIX_PROJECT_NAME", f"without-{missing}")

    async def scenario() -> None:
        async with library(tmp_path, lab="06") as opened:
            session = await opened.create(language="en")
            await until(lambda: stands(session).fault)
            await run_sample(session, 1)
            assert (stands(session).fault, stands(session).waiting) == ("missing_packages", 0)
            assert session.state.tasks[0].ended == "answered" and "HookFailed" not in names(session)
            assert send_later(session.id, session.records).fault == "missing_packages"

    asyncio.run(scenario())


CHILD = """
import asyncio, sys
from pathlib import Path
from tests.harness_support import library, run_sample

async def main():
    async with library(Path(sys.argv[1]), lab="06") as opened:
        await run_sample(await opened.create(language="en"), 1)

asyncio.run(main())
"""


@pytest.mark.parametrize("there", [True, False])
def test_the_end_of_the_process_sends_what_waits_but_waits_for_nobody(tmp_path: Path, there: bool) -> None:
    with collecting() as collector:
        address = collector.address if there else "http://127.0.0.1:1"
        environment = {"PYTHONPATH": str(ROOT), "PHOENIX_COLLECTOR_ENDPOINT": address, "PATH": "/usr/bin:/bin"}
        command = [sys.executable, "-c", CHILD, tmp_path]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT, timeout=60)
        assert ended.returncode == 0 and "opentelemetry" not in ended.stderr and "Error" not in ended.stderr
        assert ("task 1" in collector.names) is there


def test_events_that_found_no_room_are_made_up_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sender_module, "MOST_EVENTS", 8)
    monkeypatch.setattr(sender_module, "GATHER", 0.2)
    monkeypatch.setenv("PHOENIX_PROJECT_NAME", "few-events")
    with collecting() as collector:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", collector.address)

        async def scenario() -> None:
            async with library(tmp_path, lab="06") as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                await asyncio.sleep(0.5)
                await run_sample(session, 3)
                session.emit(e.SessionNamed(name="x"))
                await asyncio.sleep(0.5)
                session.emit(e.SessionNamed(name="y"))
                await sent(session)
                assert sorted(collector.names) == sorted(span.name for span in spans_of(session.id, session.records))

        asyncio.run(scenario())


@pytest.mark.parametrize(
    ("variables", "address", "shown"),
    [
        ({}, "http://127.0.0.1:6006/v1/traces", "http://127.0.0.1:6006"),
        ({"COLLECTOR_ENDPOINT": "http://h:1/v1/traces/"}, "http://h:1/v1/traces", "http://h:1"),
        ({"COLLECTOR_ENDPOINT": "https://h/base"}, "https://h/base/v1/traces", "https://h/base"),
        ({"COLLECTOR_ENDPOINT": "http://me:secret@h:1"}, "http://me:secret@h:1/v1/traces", "http://h:1"),
        ({"COLLECTOR_ENDPOINT": "http://[::1]:7"}, "http://[::1]:7/v1/traces", "http://[::1]:7"),
        ({"COLLECTOR_ENDPOINT": "localhost:6006"}, "", ""),
        ({"COLLECTOR_ENDPOINT": "http://h:notaport"}, "", ""),
    ],
)
def test_where_spans_go(variables: dict[str, str], address: str, shown: str) -> None:
    place = place_of({f"PHOENIX_{name}": value for name, value in variables.items()})
    assert (place.address, place.shown, place.project) == (address, shown, "context-lab")


def test_the_keys_go_along_and_are_never_shown(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"PHOENIX_API_KEY": "abc", "PHOENIX_CLIENT_HEADERS": "X-One=a%20b,bad,x-two=2"}
    place = place_of(named, collector.address, "p")
    assert dict(place.headers) == {"x-one": "a b", "x-two": "2", "authorization": "Bearer abc"}
    assert "abc" not in repr(place)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    records = [Recorded(1, 1.0, e.TaskStarted(task=1, text="x", language="en")),
               Recorded(2, 2.0, e.TaskEnded(task=1, reason="answered", seconds=1.0))]  # fmt: skip
    assert send_later("s", records).sent == 1
    assert collector.headers[0]["authorization"] == "Bearer abc" and collector.headers[0]["x-one"] == "a b"
    assert collector.headers[0]["content-type"] == "application/x-protobuf"


def test_an_address_that_is_none_is_said_and_nothing_starts() -> None:
    made = Sender(place_of({"PHOENIX_COLLECTOR_ENDPOINT": "nonsense"}))
    made.put(Happened("s", Recorded(1, 1.0, e.SessionNamed(name="x")), None))  # type: ignore[arg-type]
    assert made.stands("s") == Sending("", fault="bad_address") and not made._thread
    assert send_later("s", [], "nonsense").fault == "bad_address"
    assert Place("", "", "p") == place_of({}, "ftp://h", "p")


def test_what_took_no_time_and_what_failed_become_events() -> None:
    task = [
        e.TaskStarted(task=1, text="hello", language="en"),
        e.FollowUpAdded(task=1, extension="verify", text=f"again, {KEY}"),
        e.TaskEnded(task=1, reason="failed", seconds=1.0, detail="overflow"),
    ]
    [span] = spans_of("s", [Recorded(seq, float(seq), event) for seq, event in enumerate(task, 1)])
    added, failed = happenings(span)
    assert added[:2] == ("FollowUpAdded", 2.0) and added[2]["text"] == f"again, {MASK}"
    assert failed == ("exception", 3.0, {"exception.type": "failed", "exception.message": "overflow"})
