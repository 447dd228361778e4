"""The offline model over the real wire: shapes, streaming, usage, limits, faults, and what a broken body gets."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from offline_model.faults import FAULTS, Faults
from offline_model.server import OfflineServer
from tests.offline_support import ROOT, SCRIPTS, SYSTEM, TOOLS, called, log, summary_messages, user

SORT = [SYSTEM, user("Read incident-log.md and sort it.")]
DONE_READ = [*SORT, *called("read", {"path": "incident-log.md"}, log("en"))]


@pytest.fixture(scope="module")
def one_server() -> Iterator[OfflineServer]:
    with OfflineServer(SCRIPTS, delay=0, record=True) as running:
        yield running


@pytest.fixture
def server(one_server: OfflineServer) -> OfflineServer:
    one_server.faults.set("")
    one_server.requests.clear()
    return one_server


@pytest.fixture
def client(server: OfflineServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.address, api_key="none", max_retries=0, timeout=10) as made:
        yield made


def complete(client: openai.OpenAI, messages: list[Any], **options: Any) -> Any:
    return client.chat.completions.create(model="offline", messages=messages, **options)


def stream(client: openai.OpenAI, messages: list[Any], **options: Any) -> list[Any]:
    with complete(client, messages, stream=True, **options) as chunks:
        return list(chunks)


def text_of(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def tokens(*parts: Any) -> int:
    sizes = (len(json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode()) for part in parts)
    return sum(-(-size // 4) for size in sizes)


def test_models(client: openai.OpenAI) -> None:
    models = client.models.list().data
    assert [model.id for model in models] == ["offline"]
    assert models[0].max_model_len == 32_768  # type: ignore[attr-defined]


def test_a_whole_answer(client: openai.OpenAI) -> None:
    answer = complete(client, DONE_READ, tools=TOOLS)
    assert answer.object == "chat.completion" and answer.model == "offline"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.content.startswith("### Confirmed")
    assert answer.choices[0].message.tool_calls is None


def test_a_streamed_answer_is_the_whole_answer_in_small_pieces(client: openai.OpenAI) -> None:
    whole = complete(client, DONE_READ, tools=TOOLS).choices[0].message.content
    chunks = stream(client, DONE_READ, tools=TOOLS)
    assert text_of(chunks) == whole
    assert len(chunks) > 50
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks][-2:] == [None, "stop"]
    assert all(chunk.usage is None for chunk in chunks), "not asked for"


def test_usage_comes_in_a_last_chunk_without_choices(client: openai.OpenAI) -> None:
    chunks = stream(client, DONE_READ, tools=TOOLS, stream_options={"include_usage": True})
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == tokens(TOOLS, *DONE_READ)
    assert chunks[-1].usage.completion_tokens == -(-len(text_of(chunks).encode()) // 4)
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)


def test_the_stream_ends_with_done(server: OfflineServer) -> None:
    body = {"model": "offline", "messages": DONE_READ, "stream": True}
    answer = httpx2.post(f"{server.address}/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("\n\ndata: [DONE]\n\n")


def test_a_streamed_tool_call(client: openai.OpenAI) -> None:
    chunks = stream(client, SORT, tools=TOOLS)
    calls = [chunk.choices[0].delta.tool_calls[0] for chunk in chunks if chunk.choices[0].delta.tool_calls]
    assert calls[0].id and calls[0].function.name == "read"
    assert json.loads("".join(call.function.arguments for call in calls)) == {"path": "incident-log.md"}
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_the_same_request_gets_the_same_reply(client: openai.OpenAI) -> None:
    one, two = (complete(client, SORT, tools=TOOLS).choices[0].message for _ in range(2))
    assert one == two


def test_cached_tokens_are_those_of_the_shared_prefix() -> None:
    moved = [{"role": "system", "content": "It is 12:01."}, *DONE_READ[1:]]
    asked = [(SORT, TOOLS), (DONE_READ, TOOLS), (moved, TOOLS), (moved, []), (moved, [])]
    with OfflineServer(SCRIPTS, delay=0) as server:
        with openai.OpenAI(base_url=server.address, api_key="none", max_retries=0) as client:
            used = [complete(client, messages, **({"tools": t} if t else {})).usage for messages, t in asked]
    cached = [usage.prompt_tokens_details.cached_tokens for usage in used]
    assert cached == [0, tokens(TOOLS, *SORT), tokens(TOOLS), 0, tokens(*moved)]


def test_max_tokens_cuts_the_answer(client: openai.OpenAI) -> None:
    answer = complete(client, DONE_READ, max_tokens=10)
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.content == "### Confirmed\n\n- 07:48 the gates refuse 11 "[:40]
    assert answer.usage.completion_tokens == 10


def test_max_tokens_never_cuts_a_character_in_two(client: openai.OpenAI) -> None:
    asked = [SYSTEM, user("把 notes.md 归类"), *called("read", {"path": "notes.md"}, "- 已确认：门开着。")]
    for limit in range(1, 8):
        content = complete(client, asked, max_tokens=limit).choices[0].message.content or ""
        assert "\ufffd" not in content


def test_a_call_that_does_not_fit_is_dropped(client: openai.OpenAI) -> None:
    answer = complete(client, SORT, tools=TOOLS, max_tokens=2)
    assert answer.choices[0].finish_reason == "length"
    assert not answer.choices[0].message.tool_calls


@pytest.mark.parametrize("streamed", [False, True])
def test_overflow_is_refused_before_anything_streams(streamed: bool) -> None:
    with OfflineServer(SCRIPTS, delay=0, window=400) as server:
        with openai.OpenAI(base_url=server.address, api_key="none", max_retries=0) as client:
            assert complete(client, SORT, stream=False)
            with pytest.raises(openai.BadRequestError) as caught:
                complete(client, DONE_READ, stream=streamed)
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 400 tokens" in caught.value.message


def test_an_answer_that_the_window_has_no_room_for_is_cut() -> None:
    room = 30
    with OfflineServer(SCRIPTS, delay=0, window=tokens(*DONE_READ) + room) as server:
        with openai.OpenAI(base_url=server.address, api_key="none", max_retries=0) as client:
            answer = complete(client, DONE_READ)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == room


@pytest.mark.parametrize("room", [120, 200])
def test_a_summary_is_written_for_the_room_that_the_window_has(room: int) -> None:
    asked = {"role": "system", "content": "Summarise the history.\n## Confirmed\n## Unverified\n## Open points"}
    messages = [
        asked,
        user(f"<history>\n[task 1 · user]\nSort it.\n\n[task 1 · result of read]\n{log('en')}\n</history>"),
    ]
    with OfflineServer(SCRIPTS, delay=0, window=tokens(*messages) + room) as server:
        with openai.OpenAI(base_url=server.address, api_key="none", max_retries=0) as client:
            answer = complete(client, messages, max_tokens=4_000)
    assert answer.choices[0].finish_reason == "stop"
    assert room // 2 < answer.usage.completion_tokens <= room
    assert "## Open points" in answer.choices[0].message.content


@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [
        ("key", openai.AuthenticationError, "invalid_api_key"),
        ("model_missing", openai.NotFoundError, "model_not_found"),
        ("rate_limit", openai.RateLimitError, "rate_limit_exceeded"),
        ("server_error", openai.InternalServerError, None),
    ],
)
def test_http_faults(server: OfflineServer, client: openai.OpenAI, fault: str, error: Any, code: str | None) -> None:
    server.faults.set(f"{fault}:2")
    for streamed in (False, True):
        with pytest.raises(error) as caught:
            complete(client, SORT, stream=streamed)
        assert caught.value.code == code
    assert complete(client, SORT), "the fault was set for two requests"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_cut_connection(server: OfflineServer, streamed: bool) -> None:
    server.faults.set("cut")
    body = {"model": "offline", "messages": DONE_READ, "stream": streamed}
    seen = b""
    with httpx2.stream("POST", f"{server.address}/chat/completions", json=body) as answer:
        with pytest.raises(httpx2.RemoteProtocolError):
            for piece in answer.iter_bytes():
                seen += piece
    assert seen and b"[DONE]" not in seen


def test_a_stalled_stream_says_something_and_then_nothing(server: OfflineServer, client: openai.OpenAI) -> None:
    server.faults.set("stall:1")
    seen = []
    with pytest.raises((openai.APITimeoutError, httpx2.ReadTimeout)):
        with complete(client.with_options(timeout=0.5), DONE_READ, stream=True) as chunks:
            seen += list(iter(chunks))
    assert complete(client, SORT), "the server goes on"


def test_stop_ends_a_stalled_stream_at_once() -> None:
    server = OfflineServer(SCRIPTS, delay=0, fault="stall")
    url = server.start()
    body = {"model": "offline", "messages": SORT, "stream": True}
    with httpx2.stream("POST", f"{url}/chat/completions", json=body, timeout=10) as answer:
        pieces = answer.iter_bytes()  # held, since dropping it would close the connection
        assert next(pieces)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 3
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{url}/models")


def test_an_empty_reply(server: OfflineServer, client: openai.OpenAI) -> None:
    server.faults.set("empty")
    assert text_of(stream(client, DONE_READ)) == ""
    answer = complete(client, DONE_READ)
    assert answer.choices[0].message.content is None and answer.choices[0].finish_reason == "stop"


HISTORY = "[task 1 · user]\nSort it.\n\n[task 1 · result of read]\n" + log("en")


def test_summary_faults_leave_other_requests_alone(server: OfflineServer, client: openai.OpenAI) -> None:
    asked = summary_messages(HISTORY)
    good = complete(client, asked).choices[0].message.content
    server.faults.set("summary_empty:1")
    assert complete(client, DONE_READ).choices[0].message.content
    assert complete(client, asked).choices[0].message.content is None
    assert complete(client, asked).choices[0].message.content == good


@pytest.mark.parametrize(
    ("fault", "finish", "check"),
    [
        ("summary_truncated", "length", lambda m: len(m.content) < 600 and "## Open points" not in m.content),
        ("summary_tools", "tool_calls", lambda m: m.content is None and m.tool_calls[0].function.name == "read"),
        ("summary_bare", "stop", lambda m: "##" not in m.content and "k-19" in m.content),
        ("summary_long", "stop", lambda m: len(m.content) > 900),
        ("summary_stubborn", "stop", lambda m: len(m.content) > 900),
    ],
)
def test_spoiled_summaries(server: OfflineServer, client: openai.OpenAI, fault: str, finish: str, check: Any) -> None:
    server.faults.set(fault)
    choice = complete(client, summary_messages(HISTORY)).choices[0]
    assert choice.finish_reason == finish
    assert check(choice.message)


def test_the_long_summary_gets_shorter_when_asked_and_the_stubborn_one_does_not(
    server: OfflineServer, client: openai.OpenAI
) -> None:
    asked = [*summary_messages(HISTORY), {"role": "assistant", "content": "x" * 1000}, user("At most 900 characters.")]
    server.faults.set("summary_long")
    assert len(complete(client, asked).choices[0].message.content) <= 900
    server.faults.set("summary_stubborn")
    assert len(complete(client, asked).choices[0].message.content) > 900


def test_unknown_faults_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no fault `sleepy`"):
        Faults("sleepy")
    with pytest.raises(ValueError, match="whole number"):
        Faults("stall:often")
    assert len(set(FAULTS)) == len(FAULTS) == 18


CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}
GOOD = {"model": "offline", "messages": [user("hi")]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        ([], "must be a JSON object"),
        ({"messages": [user("hi")]}, "provide a model"),
        ({"model": "offline"}, "`messages` must be a list"),
        ({**GOOD, "messages": []}, "at least one message"),
        ({**GOOD, "messages": ["hi"]}, "must be an object"),
        ({**GOOD, "messages": [{"role": "robot", "content": "x"}]}, "Invalid role: `robot`"),
        ({**GOOD, "messages": [{"role": "user"}]}, "`content` is missing"),
        ({**GOOD, "messages": [{"role": "user", "content": 5}]}, "string or a list of parts"),
        ({**GOOD, "messages": [{"role": "user", "content": "x", "tool_calls": [CALL]}]}, "Only an assistant"),
        ({**GOOD, "messages": [{"role": "tool", "content": "x"}]}, "needs a `tool_call_id`"),
        ({**GOOD, "messages": [user("a"), RESULT]}, "must be a response to a preceding message"),
        ({**GOOD, "messages": [user("a"), ASKS]}, "No result for: c1"),
        ({**GOOD, "messages": [user("a"), ASKS, user("b")]}, "No result for: c1"),
        ({**GOOD, "messages": [user("a"), ASKS, user("b"), RESULT]}, "No result for: c1"),
        ({**GOOD, "messages": [user("a"), ASKS, RESULT, RESULT]}, "must be a response"),
        ({**GOOD, "messages": [user("a"), {"role": "assistant", "tool_calls": [{"id": "c"}]}]}, "tool call needs"),
        ({**GOOD, "tools": "read"}, "A list was expected"),
        ({**GOOD, "tools": [{}]}, "`function.name`"),
        ({**GOOD, "stream": "yes"}, "`stream` must be true or false"),
        ({**GOOD, "stream_options": True}, "must be an object"),
        ({**GOOD, "max_tokens": 0}, "positive whole number"),
        ({**GOOD, "max_tokens": True}, "positive whole number"),
        ({**GOOD, "reasoning_effort": 3}, "must be a string"),
    ],
)
def test_a_broken_body_gets_a_json_error(server: OfflineServer, body: Any, words: str) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = httpx2.post(f"{server.address}/chat/completions", content=content)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert words in error["message"]
    assert error["type"] == "invalid_request_error"
    assert set(error) == {"message", "type", "param", "code"}


def test_what_a_lenient_client_may_send(client: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "Read"}, {"type": "image_url", "image_url": {"url": "x"}}]
    parts.append({"type": "text", "text": "incident-log.md and sort it."})
    messages = [{"role": "developer", "content": "x"}, {"role": "user", "content": parts}]
    answer = complete(client, messages, tools=TOOLS, max_completion_tokens=500, temperature=0, seed=1)
    assert answer.choices[0].message.tool_calls[0].function.name == "read"


def test_a_lone_surrogate_harms_nobody(server: OfflineServer) -> None:
    body = b'{"model":"offline","messages":[{"role":"user","content":"\\ud800 what is \\udc00?"}]}'
    answer = httpx2.post(f"{server.address}/chat/completions", content=body)
    assert answer.status_code == 200
    assert answer.json()["usage"]["prompt_tokens"] > 5


def test_paths_methods_and_sizes(server: OfflineServer) -> None:
    assert httpx2.get(f"{server.address}/chat/completions").status_code == 405
    assert httpx2.get(f"{server.address}/embeddings").json()["error"]["code"] == "unknown_url"
    with socket.create_connection(server.address[7:-3].split(":"), timeout=20) as raw:
        raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 17000000\r\n\r\n")
        with_body = threading.Thread(target=_pour, args=(raw, 17_000_000), daemon=True)
        with_body.start()
        assert raw.recv(64).startswith(b"HTTP/1.1 413")


def _pour(raw: socket.socket, size: int) -> None:
    try:
        for _ in range(size // 100_000):
            raw.sendall(b"x" * 100_000)
    except OSError:
        pass


def test_requests_are_recorded_as_they_came(server: OfflineServer) -> None:
    body = b'{ "model" : "offline", "messages": [{"role":"user","content":"\xe4\xbd\xa0\xe5\xa5\xbd"}] }'
    httpx2.post(f"{server.address}/chat/completions", content=body)
    assert server.requests == [body]


def test_nothing_is_recorded_unless_asked() -> None:
    with OfflineServer(SCRIPTS) as server:
        httpx2.post(f"{server.address}/chat/completions", json=GOOD)
        assert server.requests == []


def test_streams_run_side_by_side_and_can_be_watched() -> None:
    with OfflineServer(SCRIPTS, delay=0.01) as server:
        began, ends = time.monotonic(), []

        def watch() -> None:
            body = {"model": "offline", "messages": DONE_READ, "stream": True}
            httpx2.post(f"{server.address}/chat/completions", json=body, timeout=30)
            ends.append(time.monotonic() - began)

        threads = [threading.Thread(target=watch) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert min(ends) > 1, "100 pieces, 10 ms each"
    assert max(ends) < 3 * min(ends)


def test_it_listens_on_loopback_and_says_when_the_port_is_busy(server: OfflineServer) -> None:
    assert server.address.startswith("http://127.0.0.1:")
    port = int(server.address.rsplit(":", 1)[1].removesuffix("/v1"))
    with pytest.raises(OSError):
        OfflineServer(port=port).start()


def test_the_command(server: OfflineServer) -> None:
    command = [sys.executable, "-m", "offline_model"]
    with subprocess.Popen([*command, "--port", "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout
            line = running.stdout.readline()
            address = next(word for word in line.split() if word.startswith("http"))
            body = {"model": "offline", "messages": SORT, "tools": TOOLS}
            answer = httpx2.post(f"{address}/chat/completions", json=body).json()
            assert answer["choices"][0]["message"]["tool_calls"], "the labs' scripts are loaded"
        finally:
            running.terminate()
    port = server.address.rsplit(":", 1)[1].removesuffix("/v1")
    for wrong in (["--fault", "sleepy"], ["--port", port]):
        done = subprocess.run([*command, *wrong], cwd=ROOT, capture_output=True, text=True, timeout=30)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1 and "can't start" in done.stderr
