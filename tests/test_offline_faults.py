"""Faults and windows that one request asks for: through the real gateway, beside requests that ask for none."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.model.provider import choose
from harness.model.reply import Reply
from harness.request import Request
from offline_model.faults import FAULTS
from offline_model.server import OfflineServer
from tests.offline_support import SCRIPTS, SYSTEM, log, summary_messages, user

PLAIN = Request("offline", (SYSTEM, user("Explain what is confirmed.")))
SUMMARY = Request("offline", tuple(summary_messages("[task 1 · result of read]\n" + log("en"))))
FAULT, WINDOW = "X-Offline-Fault", "X-Offline-Window"


@pytest.fixture(scope="module")
def one_server() -> Iterator[OfflineServer]:
    with OfflineServer(SCRIPTS, delay=0, slow=0.3, record=True) as running:
        yield running


@pytest.fixture
def server(one_server: OfflineServer) -> OfflineServer:
    one_server.faults.set("")
    one_server.requests.clear()
    return one_server


async def ask(server: OfflineServer, request: Request, headers: Mapping[str, str], **options: Any) -> Reply:
    provider = replace(choose({}, model=None, base_url=None, gguf=None), base_url=server.address)
    gateway = Gateway(provider, **{"retries": 0} | options)
    try:
        return await gateway.stream(request, lambda text, kind: None, headers=headers)
    finally:
        await gateway.close()


def outcome(server: OfflineServer, request: Request, headers: Mapping[str, str], **options: Any) -> str:
    """Return how the call ended: the kind of its failure, else why the reply ended, else "empty"."""
    try:
        reply = asyncio.run(ask(server, request, headers, **options))
    except ModelError as error:
        return error.kind
    return (reply.finish if reply.text or reply.calls else "empty") or "no finish"


@pytest.mark.parametrize(
    ("fault", "plain", "summary"),
    [
        ("key", "key", "key"),
        ("model_missing", "model_missing", "model_missing"),
        ("rate_limit", "rate_limit", "rate_limit"),
        ("server_error", "server", "server"),
        ("stall", "timeout", "timeout"),
        ("cut", "broken_stream", "broken_stream"),
        ("empty", "empty", "empty"),
        ("slow", "stop", "stop"),
        ("summary_empty", "stop", "empty"),
        ("summary_truncated", "stop", "length"),
        ("summary_tools", "stop", "tool_calls"),
        ("summary_long", "stop", "stop"),
        ("summary_stubborn", "stop", "stop"),
        ("summary_bare", "stop", "stop"),
        ("summary_error", "stop", "server"),
        ("summary_slow", "stop", "stop"),
        ("summary_thinking", "stop", "length"),
        ("summary_constraint", "stop", "stop"),
    ],
)
def test_a_fault_strikes_the_request_that_asks_for_it_and_no_other(
    server: OfflineServer, fault: str, plain: str, summary: str
) -> None:
    patience = {"stall_seconds": 0.6}
    assert outcome(server, PLAIN, {FAULT: fault}, **patience) == plain
    assert outcome(server, SUMMARY, {FAULT: fault}, **patience) == summary
    assert outcome(server, PLAIN, {}) == outcome(server, SUMMARY, {}) == "stop"
    assert {bytes(body) for body in server.requests} == {PLAIN.body(), SUMMARY.body()}, "the bytes stay the same"


def test_every_fault_is_tried_above() -> None:
    marks = test_a_fault_strikes_the_request_that_asks_for_it_and_no_other.pytestmark
    assert [case[0] for case in marks[0].args[1]] == list(FAULTS)


def test_two_sessions_at_once_have_a_fault_each_of_their_own(server: OfflineServer) -> None:
    async def both() -> list[Any]:
        asked = [ask(server, PLAIN, headers) for headers in ({FAULT: "server_error"}, {}, {FAULT: "empty"})]
        return await asyncio.gather(*asked, return_exceptions=True)

    failed, answered, empty = asyncio.run(both())
    assert failed.kind == "server" and answered.text and not empty.text


def test_a_requests_fault_stands_before_the_servers_own_and_uses_none_of_it_up(server: OfflineServer) -> None:
    server.faults.set("rate_limit:1")
    assert outcome(server, PLAIN, {FAULT: "empty"}) == "empty"
    assert outcome(server, PLAIN, {FAULT: "summary_error"}) == "stop", "this one strikes summaries"
    assert outcome(server, PLAIN, {}) == "rate_limit"
    assert outcome(server, PLAIN, {}) == "stop"


@pytest.mark.parametrize("fault", ["slow", "summary_slow"])
def test_what_is_slow_sends_nothing_for_a_while_and_then_comes_whole(server: OfflineServer, fault: str) -> None:
    assert outcome(server, SUMMARY, {FAULT: fault}, stall_seconds=0.15) == "timeout"
    assert outcome(server, PLAIN, {FAULT: fault}, stall_seconds=0.15) == ("timeout" if fault == "slow" else "stop")
    slow, plain = (asyncio.run(ask(server, SUMMARY, headers)) for headers in ({FAULT: fault}, {}))
    assert slow.text == plain.text
    body = json.loads(SUMMARY.body()) | {"stream": False}
    whole = httpx2.post(f"{server.address}/chat/completions", json=body, headers={FAULT: fault})
    assert whole.json()["choices"][0]["message"]["content"] == plain.text


@pytest.mark.parametrize(
    ("effort", "finish"), [("", "length"), ("high", "length"), ("minimal", "stop"), ("low", "stop")]
)
def test_a_summary_spoiled_by_thinking_is_whole_with_little_of_it(
    server: OfflineServer, effort: str, finish: str
) -> None:
    body = json.loads(SUMMARY.body()) | {"stream": False} | ({"reasoning_effort": effort} if effort else {})
    plain = httpx2.post(f"{server.address}/chat/completions", json=body).json()["choices"][0]
    url = f"{server.address}/chat/completions"
    choice = httpx2.post(url, json=body, headers={FAULT: "summary_thinking"}).json()["choices"][0]
    assert choice["finish_reason"] == finish
    assert (choice["message"]["content"] == plain["message"]["content"]) is (finish == "stop")
    assert plain["message"]["content"].startswith(choice["message"]["content"])


def test_a_summary_without_the_users_limits_is_whole_otherwise(server: OfflineServer) -> None:
    history = "[task 1 · user]\nSort it. Never delete a file.\n\n[task 1 · result of read]\n" + log("en")
    asked = Request("offline", tuple(summary_messages(history)))
    plain, bare = (asyncio.run(ask(server, asked, headers)).text for headers in ({}, {FAULT: "summary_constraint"}))
    assert "- Never delete a file." in plain and "Never delete" not in bare
    assert [line for line in bare.splitlines() if line[:2] == "##"] == [
        line for line in plain.splitlines() if line[:2] == "##"
    ]
    assert "Confirmed\n- 0" in bare and "Sort it." in bare


def test_a_failing_summary_is_a_500(server: OfflineServer) -> None:
    for streamed in (True, False):
        body = json.loads(SUMMARY.body()) | {"stream": streamed}
        answer = httpx2.post(f"{server.address}/chat/completions", json=body, headers={FAULT: "summary_error"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")


def test_a_window_holds_for_the_request_that_names_it(server: OfflineServer) -> None:
    assert outcome(server, PLAIN, {WINDOW: "20"}) == "overflow"
    assert outcome(server, PLAIN, {WINDOW: "40"}) == "length", "the answer has no more room than this"
    assert outcome(server, PLAIN, {}) == "stop"
    with pytest.raises(ModelError) as caught:
        asyncio.run(ask(server, SUMMARY, {WINDOW: "500"}))
    assert "maximum context length is 500 tokens" in caught.value.detail


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({FAULT: "sleepy"}, "there is no fault `sleepy`; choose one of: key, "),
        ({FAULT: "cut:2"}, "there is no fault `cut:2`"),
        ({WINDOW: "many"}, "`many` is no number of tokens"),
        ({WINDOW: "0"}, "`0` is no number of tokens"),
        ({WINDOW: "-5"}, "no number"),
        ({WINDOW: "2.5"}, "no number"),
        ({WINDOW: "²"}, "no number"),
        ({WINDOW: "9" * 5000}, "no number"),
    ],
)
def test_what_the_headers_cannot_mean_is_refused(server: OfflineServer, headers: dict[str, str], words: str) -> None:
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    answer = httpx2.post(f"{server.address}/chat/completions", content=PLAIN.body(), headers=raw)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert words in error["message"] and error["param"] in headers
