"""What a real Phoenix has of our sessions, read back over its own interface: live, and sent later."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import events as e
from harness.recorded import Recorded
from harness.replay import rebuild
from harness.tracing.sending import send_later
from harness.tracing.span import Span
from harness.tracing.tracer import spans_of
from tests.harness_support import ROOT, run, run_sample
from tests.phoenix_support import Phoenix, eventually, phoenix
from tests.tracing_support import inner
from tests.web_support import Web, serving

pytestmark = pytest.mark.timeout(900)
LAST = 40  # messages of a long request


@dataclass(frozen=True)
class Sent:
    """A session whose spans were sent: its records, its spans, and what Phoenix has of them."""

    session: str
    records: tuple[Recorded, ...]
    spans: list[Span]
    there: list[dict[str, Any]]


@pytest.fixture(scope="module")
def server() -> Iterator[Phoenix]:
    with phoenix() as running:
        yield running


@pytest.fixture(scope="module")
def project() -> str:
    return f"lab-{os.getpid()}-{time.time_ns()}"


@pytest.fixture(scope="module")
def sent(server: Phoenix, project: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sent]:
    """Lab 07's samples with lab 06 on top, lab 06's own, and a long session; all sent while they ran."""
    played: dict[str, tuple[str, tuple[Recorded, ...]]] = {}
    with pytest.MonkeyPatch.context() as patch:
        aim(patch, server.address, project)
        with serving(tmp_path_factory.mktemp("07"), lab="07", extensions=("06",)) as web:
            played["07"] = play(web, [1, 2, 3, 4, 5])
        with serving(tmp_path_factory.mktemp("06"), lab="06") as web:
            played["06"] = play(web, [1, 2, 3])
            played["long"] = play(web, [3] * 14)
        found = {}
        for name, (session, records) in played.items():
            spans = spans_of(session, records)
            found[name] = Sent(session, records, spans, server.spans(project, len(spans), session))
    return found


def aim(patch: pytest.MonkeyPatch, address: str, project: str) -> None:
    patch.setenv("PHOENIX_COLLECTOR_ENDPOINT", address)
    patch.setenv("PHOENIX_PROJECT_NAME", project)
    for name in [each for each in os.environ if each.startswith("OPENINFERENCE_")] + ["PHOENIX_API_KEY"]:
        patch.delenv(name, raising=False)


def play(web: Web, samples: list[int]) -> tuple[str, tuple[Recorded, ...]]:
    session = web.session()
    for number in samples:
        web.run(run_sample(session, number), 90)
    sends = next(each.sending for each in session.extensions if each.sending)
    count = len(spans_of(session.id, session.records))
    stands = eventually(lambda: sends(session.id), lambda now: now and now.sent >= count)
    assert stands and (stands.sent, stands.waiting, stands.lost, stands.fault) == (count, 0, 0, "")
    return session.id, tuple(session.records)


def tree(there: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Name, kind and name of the parent of each span, in order of begin."""
    names = {span["context"]["span_id"]: span["name"] for span in there}
    own = [(span["start_time"], span["name"], span["span_kind"], names.get(span["parent_id"], "")) for span in there]
    return [each[1:] for each in sorted(own)]


def own_tree(spans: list[Span]) -> list[tuple[str, str, str]]:
    names = {span.id: span.name for span in spans}
    own = [(round(span.begin, 6), span.name, span.kind, names.get(span.parent, "")) for span in spans]
    return [each[1:] for each in sorted(own)]


def usages(records: tuple[Recorded, ...]) -> list[tuple[int | None, int | None, int | None]]:
    ended = [event for _, event in map(inner, records) if isinstance(event, e.ModelCallEnded | e.SummaryCallEnded)]
    return [(event.usage.prompt, event.usage.completion, event.usage.cached) for event in ended]


@pytest.mark.parametrize("name", ["07", "06", "long"])
def test_each_session_and_each_tree_is_there_as_the_journal_has_it(
    sent: dict[str, Sent], server: Phoenix, project: str, name: str
) -> None:
    own = sent[name]
    assert len(own.there) == len(own.spans)
    assert sorted(tree(own.there)) == sorted(own_tree(own.spans))
    assert {span["attributes"]["session.id"] for span in own.there} == {own.session}
    listed = {each["session_id"]: each for each in server.all(f"/v1/projects/{project}/sessions")}
    assert listed.keys() == {each.session for each in sent.values()}
    tasks = [span for span in own.spans if not span.parent]
    assert len(listed[own.session]["traces"]) == len(tasks)
    roots = [span for span in own.there if not span["parent_id"]]
    told = sorted((span["attributes"]["input.value"], span["attributes"]["output.value"]) for span in roots)
    assert told == sorted((span.asked, span.answer) for span in tasks)
    traces = {each["trace_id"] for each in server.all(f"/v1/projects/{project}/traces")}
    assert {span["context"]["trace_id"] for span in own.there} <= traces


@pytest.mark.parametrize("name", ["07", "06", "long"])
def test_tokens_are_those_that_were_reported(sent: dict[str, Sent], server: Phoenix, project: str, name: str) -> None:
    own = sent[name]
    calls = [span["attributes"] for span in own.there if span["span_kind"] == "LLM"]
    names = ("prompt", "completion", "prompt_details.cache_read")
    found = [tuple(call.get(f"llm.token_count.{each}") for each in names) for call in calls]
    assert sorted(found, key=str) == sorted(usages(own.records), key=str)
    assert not any("token_count" in name for span in own.there if span["span_kind"] != "LLM"
                   for name in span["attributes"])  # fmt: skip
    listed = {each["session_id"]: each for each in server.all(f"/v1/projects/{project}/sessions")}[own.session]
    assert listed["token_count_prompt"] == sum(prompt or 0 for prompt, _, _ in usages(own.records))
    assert listed["token_count_completion"] == sum(completion or 0 for _, completion, _ in usages(own.records))


@pytest.mark.parametrize("name", ["07", "06", "long"])
def test_every_message_of_every_request_is_there(sent: dict[str, Sent], name: str) -> None:
    own = sent[name]
    numbered, longest = [(each.seq, each.event) for each in own.records], 0
    there = {span["name"]: span["attributes"] for span in own.there if span["span_kind"] == "LLM"}
    for span in own.spans:
        if span.kind != "LLM":
            continue
        told, request = there[span.name], rebuild(numbered, span.begun.call)  # type: ignore[union-attr]
        for place, message in enumerate(request.messages):
            own_name = f"llm.input_messages.{place}.message"
            assert told[f"{own_name}.role"] == message["role"]
            assert told.get(f"{own_name}.content", "") == message["content"]
            assert told.get(f"{own_name}.tool_call_id") == message.get("tool_call_id")
            for number, call in enumerate(message.get("tool_calls", [])):
                of_call = f"{own_name}.tool_calls.{number}.tool_call"
                assert told[f"{of_call}.id"] == call["id"]
                assert told[f"{of_call}.function.name"] == call["function"]["name"]
        assert f"llm.input_messages.{len(request.messages)}.message.role" not in told
        assert told["llm.system"] == "openai" and told["llm.model_name"] == "offline"
        longest = max(longest, len(request.messages))
    assert name != "long" or longest >= LAST


def test_a_compaction_is_a_span_with_its_figures_and_its_call(sent: dict[str, Sent]) -> None:
    own = sent["07"]
    made = [event for _, event in map(inner, own.records) if isinstance(event, e.ContextCompacted)]
    there = {span["name"]: span for span in own.there}
    for event in made:
        span = there[f"compaction {event.number}"]
        told = span["attributes"]
        assert told["output.value"] == event.summary and "<history>" in told["input.value"]
        wanted = {
            "strategy": "task boundary", "trigger": "task ended", "unit": "characters", "threshold": 1500,
            "before": event.measured, "after": event.measured_after, "cut": event.cut,
            "messages_removed": len(event.removed), "messages_kept": len(event.kept),
            "removed": list(event.removed), "kept": list(event.kept),
        }  # fmt: skip
        assert {name: told.get(f"metadata.{name}") for name in wanted} == wanted
        inside = [each["name"] for each in own.there if each["parent_id"] == span["context"]["span_id"]]
        assert inside == [f"summary call {call}" for call in event.calls]
    assert len(made) >= 2
    later = [told for name, told in ((s["name"], s["attributes"]) for s in own.there) if name.startswith("model call")]
    marked = [told.get("gen_ai.conversation.compacted") for told in later]
    assert set(marked) == {None, True} and "gen_ai.conversation.compacted" not in there["summary call 4"]["attributes"]


def test_what_failed_and_who_was_waited_for_can_be_told_apart(sent: dict[str, Sent]) -> None:
    there = sent["06"].there
    failed = [span for span in there if span["status_code"] == "ERROR"]
    assert [(span["name"], span["status_message"]) for span in failed] == [("read", "error")]
    [event] = failed[0]["events"]
    assert event["name"] == "exception" and "does not exist" in event["attributes"]["exception.message"]
    asked = [span for span in there if span["name"].startswith("approval")]
    assert len(asked) == 3 and all(span["attributes"]["output.value"] == "allowed (person)" for span in asked)
    tools = [span["attributes"] for span in there if span["span_kind"] == "TOOL"]
    assert all(told["tool.name"] and told["tool.id"] and told["tool.json_schema"] for told in tools)


def test_what_phoenix_missed_is_sent_later_and_never_doubled(
    server: Phoenix, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        silent = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    aim(monkeypatch, silent, project)
    with serving(tmp_path, lab="07", extensions=("06",)) as web:
        session = web.session()
        for number in (1, 2):
            web.run(run_sample(session, number))
        sends = next(each.sending for each in session.extensions if each.sending)
        stands = eventually(lambda: sends(session.id), lambda now: now and now.fault)
        assert stands and stands.fault == "unreachable" and stands.waiting and not stands.sent
    later, spans = f"{project}-later", spans_of(session.id, session.records)
    for _ in range(2):
        result = send_later(session.id, session.records, server.address, later)
        assert (result.sent, result.waiting, result.fault) == (len(spans), 0, "")
        there = server.spans(later, len(spans))
        assert sorted(tree(there)) == sorted(own_tree(spans))
        [listed] = server.all(f"/v1/projects/{later}/sessions")
        assert listed["session_id"] == session.id
        assert listed["token_count_prompt"] == sum(prompt or 0 for prompt, _, _ in usages(tuple(session.records)))
    # The same session in another project of the same Phoenix has spans of its own there.
    other = f"{project}-other"
    send_later(session.id, session.records, server.address, other)
    assert sorted(tree(server.spans(other, len(spans)))) == sorted(own_tree(spans))
    assert len(server.spans(later, len(spans))) == len(spans)


def test_a_command_sends_a_session_out_of_the_journal(
    server: Phoenix, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path, lab="01") as web:
        session = web.session()
        web.run(run(session, "Describe this project: what is it for?"))
        spans = spans_of(session.id, session.records)
    named = f"{project}-command"
    aim(monkeypatch, "http://127.0.0.1:1", named)
    database = f"sqlite:///{tmp_path / 'journal.db'}"
    command = ["export", session.id, "--as", "otlp", "--endpoint", server.address, "--database", database]
    ended = subprocess.run([sys.executable, ROOT / "server.py", *command], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert sorted(tree(server.spans(named, len(spans)))) == sorted(own_tree(spans))
