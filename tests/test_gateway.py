"""The gateway against a real server over loopback: what goes out, what comes back, and how it fails."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.messages import ToolCall
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.model.provider import Provider
from harness.model.reply import MOST_CHARS, Reply
from harness.model.windows import Listed
from harness.request import Request
from harness.sizes import Usage
from tests.wire_server import Answer, WireServer, delta, event, refusal, stream_of

USAGE = {"prompt_tokens": 40, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 32}}
READ = {"type": "function", "function": {"name": "read", "description": "Läs", "parameters": {"b": 1, "a": 2}}}
REQUEST = Request("m", ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "你好 \u2028 é 😀"}))
HELLO = Answer([stream_of(delta(content="Hel"), delta("stop", content="lo"), {"choices": [], "usage": USAGE})])


def provider(url: str, key: str = "none") -> Provider:
    return Provider("compatible", "m", url, key, "base_url")


def run(
    answers: list[Answer], act: Callable[[WireServer, Gateway], Awaitable[Any]], key: str = "none", **options: Any
) -> Any:
    """Run `act` with a gateway to a server that gives `answers`."""

    async def whole() -> Any:
        async with WireServer(answers) as server:
            gateway = Gateway(provider(server.url, key), **options)
            try:
                return await asyncio.wait_for(act(server, gateway), 20)
            finally:
                await gateway.close()

    return asyncio.run(whole())


def ask(answers: list[Answer], request: Request = REQUEST, **options: Any) -> Reply:
    return run(answers, lambda _, gateway: gateway.stream(request, lambda text, kind: None), **options)


def failure(answers: list[Answer], request: Request = REQUEST, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(answers, request, **options)
    return caught.value


@pytest.mark.parametrize(
    "request_",
    [REQUEST, Request("m", REQUEST.messages, (READ,)), Request("m", REQUEST.messages, max_tokens=9)],
)
def test_the_bytes_on_the_wire_are_the_requests_own(request_: Request) -> None:
    async def act(server: WireServer, gateway: Gateway) -> bytes:
        await gateway.stream(request_, lambda text, kind: None)
        assert server.seen[0].line == "POST /v1/chat/completions HTTP/1.1"
        assert server.seen[0].headers["content-type"] == "application/json"
        assert server.seen[0].headers["authorization"] == "Bearer none"
        return server.seen[0].body

    body = run([HELLO], act)
    expected = json.dumps(request_.payload(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    assert body == expected.encode()
    assert body == request_.body()


def test_headers_of_a_call_go_out_with_it_alone_and_the_bytes_stay_the_same() -> None:
    async def act(server: WireServer, gateway: Gateway) -> None:
        await gateway.stream(REQUEST, lambda text, kind: None, headers={"X-Offline-Window": "2000"})
        await gateway.stream(REQUEST, lambda text, kind: None)
        assert [seen.headers.get("x-offline-window") for seen in server.seen] == ["2000", None]
        assert [seen.headers["content-type"] for seen in server.seen] == ["application/json"] * 2
        assert [seen.body for seen in server.seen] == [REQUEST.body()] * 2

    run([HELLO], act)


def test_a_reply_streams_and_is_whole() -> None:
    pieces: list[tuple[str, str]] = []
    reply = run([HELLO], lambda _, gateway: gateway.stream(REQUEST, lambda text, kind: pieces.append((text, kind))))
    assert pieces == [("Hel", "text"), ("lo", "text")]
    assert (reply.text, reply.finish, reply.marks) == ("Hello", "stop", ())
    assert reply.usage == Usage(40, 2, 32)
    assert reply.seconds > 0


def test_pieces_arrive_while_the_stream_runs() -> None:
    async def act(_: WireServer, gateway: Gateway) -> float:
        times: list[float] = []
        await gateway.stream(REQUEST, lambda text, kind: times.append(time.monotonic()))
        return times[1] - times[0]

    answer = Answer([event(delta(content="a")), 0.4, stream_of(delta("stop", content="b"))])
    assert run([answer], act) > 0.3


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_any_split_of_the_bytes_gives_the_same_reply(size: int) -> None:
    raw = stream_of(
        delta(reasoning_content="想"),
        delta(content="读 😀"),
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"path":'}}]),
        delta("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": '"数据"}'}}]),
        {"choices": [], "usage": USAGE},
    )
    raw = b": keep-alive\n\n" + raw.replace(b"\n", b"\r\n")
    reply = ask([Answer([raw[i : i + size] for i in range(0, len(raw), size)])])
    assert (reply.text, reply.reasoning) == ("读 😀", "想")
    assert reply.calls == (ToolCall("a", "read", '{"path":"数据"}'),)
    assert reply.usage == Usage(40, 2, 32)


def test_a_call_in_the_text_is_taken_only_if_its_tool_is_offered() -> None:
    call = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'
    answer = Answer([stream_of(delta("stop", content=f"Now. {call}"))])
    reply = ask([answer], Request("m", REQUEST.messages, (READ,)))
    assert (reply.text, reply.calls[0].name, reply.calls[0].from_text) == ("Now.", "read", True)
    assert "calls_in_text" in reply.marks
    assert ask([answer]).text == f"Now. {call}"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal(401, {"message": "Authentication Fails", "type": "authentication_error"}), "key"),
        (refusal(400, {"message": "too long", "code": "context_length_exceeded"}), "overflow"),
        (refusal(400, {"code": 400, "message": "no", "type": "exceed_context_size_error"}), "overflow"),
        (refusal(404, {"message": "The model `x` does not exist", "code": "model_not_found"}), "model_missing"),
        (refusal(402, {"message": "Insufficient Balance"}), "refused"),
        (refusal(301, {}, location="http://127.0.0.1:9/"), "refused"),
        (Answer([b"<html><body>Hello</body></html>"], kind="text/html"), "refused"),
        (Answer([b'{"choices": []}'], kind="application/json"), "refused"),
        (Answer([event({"error": {"code": 400, "message": "exceeds the available context size"}})]), "overflow"),
        (Answer([event(delta(content="a")), event({"error": {"message": "engine died"}})]), "server"),
        (Answer([event(delta(content="a")), b"data: {broken\n\n"]), "broken_stream"),
        (Answer([event(delta(content="a"))], cut=True), "broken_stream"),
        (Answer([event(delta(content="a"))], framing="close"), "broken_stream"),
    ],
)
def test_a_failure_has_its_kind_and_is_not_tried_again(answer: Answer, kind: str) -> None:
    async def act(server: WireServer, gateway: Gateway) -> tuple[str, int]:
        with pytest.raises(ModelError) as caught:
            await gateway.stream(REQUEST, lambda text, kind: None)
        return caught.value.kind, len(server.seen)

    assert run([answer], act) == (kind, 1)


def test_a_stream_that_ends_cleanly_without_a_reason_is_a_marked_reply() -> None:
    reply = ask([Answer([stream_of(delta(content="a"), done=False)])])
    assert (reply.text, reply.finish, reply.marks) == ("a", "", ("no_finish", "no_usage"))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(status: int) -> None:
    async def act(server: WireServer, gateway: Gateway) -> list[bytes]:
        await gateway.stream(REQUEST, lambda text, kind: None)
        return [seen.body for seen in server.seen]

    bodies = run([refusal(status, {"message": "busy"}, retry_after="0.05"), HELLO], act)
    assert bodies == [REQUEST.body()] * 2


def test_a_busy_server_is_not_asked_for_ever() -> None:
    async def act(server: WireServer, gateway: Gateway) -> tuple[ModelError, int]:
        with pytest.raises(ModelError) as caught:
            await gateway.stream(REQUEST, lambda text, kind: None)
        return caught.value, len(server.seen)

    error, times = run([refusal(429, {"message": "slow down"}, retry_after="0.05")], act)
    assert (error.kind, error.detail, times) == ("rate_limit", "slow down", 3)
    error, times = run([refusal(429, {"message": "slow down"}, retry_after="3600")], act)
    assert (error.kind, error.retry_after, times) == ("rate_limit", 3600.0, 1)


@pytest.mark.parametrize("pieces", [[], [event(delta(content="a"))]])
def test_a_stall_ends(pieces: list[bytes | float]) -> None:
    error = failure([Answer([*pieces, 5.0])], stall_seconds=0.2)
    assert (error.kind, error.detail) == ("timeout", "nothing came for 0.2 s")


def test_signs_of_life_keep_a_slow_stream_alive() -> None:
    waits = [b": keep-alive\n\n", 0.2] * 4
    assert ask([Answer([*waits, stream_of(delta("stop", content="a"))])], stall_seconds=0.5).text == "a"


@pytest.mark.parametrize("piece", [
    {"content": "x" * 4_000}, {"reasoning_content": "x" * 4_000}, {"content": "x" * (MOST_CHARS + 9)},
    {"tool_calls": [{"index": 0, "function": {"name": "read", "arguments": "x" * 4_000}}]},
])  # fmt: skip
def test_a_reply_without_an_end_is_ended(piece: dict[str, Any]) -> None:
    async def act(server: WireServer, gateway: Gateway) -> Reply:
        reply = await gateway.stream(REQUEST, lambda text, kind: None)
        await asyncio.wait_for(server.left.wait(), 5)
        return reply

    reply = run([Answer([event(delta(**piece))] * 300 + [30.0])], act)
    assert len(reply.text) + len(reply.reasoning) + sum(len(each.arguments) for each in reply.calls) <= MOST_CHARS
    assert (reply.finish, "endless" in reply.marks) == ("length", True)


def test_no_server_is_a_connection_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"

        async def act() -> None:
            gateway = Gateway(provider(url), retries=0)
            try:
                await gateway.stream(REQUEST, lambda text, kind: None)
            finally:
                await gateway.close()

        with pytest.raises(ModelError) as caught:
            asyncio.run(act())
    assert caught.value.kind == "connection" and caught.value.detail.startswith(url)


@pytest.mark.parametrize("pieces", [[20.0], [event(delta(content="a")), 20.0]])
def test_cancelling_closes_the_connection_at_once(pieces: list[bytes | float]) -> None:
    async def act(server: WireServer, gateway: Gateway) -> bool:
        task = asyncio.create_task(gateway.stream(REQUEST, lambda text, kind: None))
        while not server.seen:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.left.wait(), 1)
        return True

    assert run([Answer(pieces)], act)


def test_a_listener_that_fails_closes_the_connection() -> None:
    async def act(server: WireServer, gateway: Gateway) -> bool:
        with pytest.raises(ZeroDivisionError):
            await gateway.stream(REQUEST, lambda text, kind: print(1 / 0))
        await asyncio.wait_for(server.left.wait(), 1)
        return True

    assert run([Answer([event(delta(content="a")), 20.0])], act)


def test_the_key_is_never_in_an_error() -> None:
    key = "sk-1234567890abcdef"
    error = failure([refusal(401, {"message": f"Incorrect API key provided: {key}."})], key=key)
    assert (error.kind, error.detail) == ("key", "Incorrect API key provided: [key].")


def test_a_request_that_is_no_json_is_refused() -> None:
    for content in ("\ud800", float("nan")):
        error = failure([HELLO], Request("m", ({"role": "user", "content": content},)))
        assert error.kind == "refused"


def test_a_refused_option_is_left_out_once_and_for_all_and_marked() -> None:
    request = Request("m", REQUEST.messages, max_tokens=5)
    answers = [
        refusal(422, {"message": "Extra inputs are not permitted: stream_options"}),
        refusal(400, {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}),
        HELLO,
    ]

    async def act(server: WireServer, gateway: Gateway) -> tuple[list[dict[str, Any]], Reply]:
        await gateway.stream(request, lambda text, kind: None)
        reply = await gateway.stream(request, lambda text, kind: None)
        return [json.loads(seen.body) for seen in server.seen], reply

    bodies, reply = run(answers, act)
    assert len(bodies) == 4
    plain = {"model": "m", "messages": list(REQUEST.messages), "stream": True}
    assert bodies[1] == plain | {"max_tokens": 5}
    assert bodies[2] == bodies[3] == plain | {"max_completion_tokens": 5}
    assert reply.marks == ("adapted_request",)


def test_proxies_of_the_environment_do_not_catch_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask([HELLO], retries=0).text == "Hello"


def test_what_names_an_account_at_openai_goes_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")

    async def act(server: WireServer, gateway: Gateway) -> dict[str, str]:
        await gateway.stream(REQUEST, lambda text, kind: None)
        return server.seen[0].headers

    headers = run([HELLO], act)
    assert not {"openai-organization", "openai-project"} & headers.keys()
    assert "another" not in str(headers)


def test_the_models_of_a_server_are_listed() -> None:
    listed = json.dumps({"data": [{"id": "first", "max_model_len": 4096}, {"id": "second"}]}).encode()
    found = run([Answer([listed], kind="application/json")], lambda _, gateway: gateway.list_models())
    assert found == (Listed("first", 4096), Listed("second", None))
    for answer, kind in (
        (refusal(404, {"message": "no such path"}), "refused"),
        (refusal(401, {"message": "bad key"}), "key"),
        (Answer([b"{broken"], kind="application/json"), "broken_stream"),
    ):
        with pytest.raises(ModelError) as caught:
            run([answer], lambda _, gateway: gateway.list_models())
        assert caught.value.kind == kind
    assert run([Answer([b"<html>"], kind="text/html")], lambda _, gateway: gateway.list_models()) == ()
