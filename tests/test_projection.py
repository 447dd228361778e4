"""`before_send` over the real wire: what it changes is sent, can be rebuilt, and changes no history."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness import events as e
from harness.hooks import Extension
from harness.recorded import decode, encode
from harness.replay import fold
from harness.request import Request
from harness.request_diff import pieces_at
from harness.tokens import IMAGE_TOKENS, size_of_message
from tests.harness_support import assert_rebuilt, events, library, run, running

NOTE = {"role": "user", "content": "A note of the extension."}


def shorter(request: Request) -> Request:
    """Show the first 20 characters of each result."""
    short = (m | {"content": m["content"][:20]} if m["role"] == "tool" else m for m in request.messages)
    return replace(request, messages=tuple(short))


def with_note(request: Request) -> Request:
    return replace(request, messages=(*request.messages[:1], NOTE, *request.messages[1:]))


def with_picture(request: Request) -> Request:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 2_000}}
    seen = {"role": "user", "content": [{"type": "text", "text": "What the page looks like:"}, picture]}
    return replace(request, messages=(*request.messages[:1], seen, *request.messages[1:]))


def without_first(request: Request) -> Request:
    return replace(request, messages=request.messages[1:])


@pytest.mark.parametrize("hook", [shorter, with_note, without_first, with_picture])
def test_a_projected_request_is_sent_and_rebuilt(tmp_path: Path, hook: Callable[[Request], Request]) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, server=server, settings={"budget": 100_000}) as opened:
                session = await opened.create(language="en")
                session.extensions += (Extension("own", before_send=hook),)
                await run(session, "Read incident-log.md and sort it.")
                await run(session, "Which are guesses?")
                plain = session.state.request()
                sent = [json.loads(raw)["messages"] for raw in server.requests if b"<history>" not in raw]
                assert sent[-1] == list(hook(replace(plain, messages=plain.messages[:-1])).messages)
                assert_rebuilt(session, server.requests)
                called = events(session, e.ModelCallStarted)[-1]
                assert called.messages == len(sent[-1]) and called.projected
                size = sum(size.chars for size in called.parts.values())
                tools = called.parts["tools"].chars
                text = "".join(json.dumps(m, ensure_ascii=False, separators=(",", ":")) for m in sent[-1])
                assert size == tools + len(text)
                pieces = pieces_at(session.state, session.state.calls[-1].seq)
                assert [piece.wire for piece in pieces if piece.category != "tools"] == sent[-1]
                again = fold((r.seq, decode(*encode(r.event))) for r in session.records)
                assert again.request() == session.state.request() and again.calls == session.state.calls

    asyncio.run(scenario())


def test_a_picture_counts_the_same_however_large_its_file_is() -> None:
    def sized(length: int) -> int:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * length}}
        return size_of_message({"role": "user", "content": [{"type": "text", "text": "Look"}, picture]}).tokens

    words = size_of_message({"role": "user", "content": "Look"}).tokens
    assert sized(10) == sized(5_000) == words + IMAGE_TOKENS


def careless(request: Request) -> Request:
    request.messages[-1]["content"] = "changed in place"
    return request


def other_tools(request: Request) -> Request:
    return replace(request, tools=())


def no_role(request: Request) -> Request:
    return replace(request, messages=({"content": "who?"},))


def test_a_hook_that_changes_messages_in_place_changes_no_history(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, server=server) as opened:
                session = await opened.create(language="en")
                session.extensions += (Extension("own", before_send=careless),)
                await run(session, "Read incident-log.md and sort it.")
                assert json.loads(server.requests[0])["messages"][-1]["content"] == "changed in place"
                assert session.state.request().messages[1]["content"] == "Read incident-log.md and sort it."
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


@pytest.mark.parametrize("hook", [other_tools, no_role])
def test_a_projection_that_is_none_is_reported_and_not_sent(tmp_path: Path, hook: Callable[[Request], Request]) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, server=server) as opened:
                session = await opened.create(language="en")
                session.extensions += (Extension("own", before_send=hook),)
                await run(session, "Read incident-log.md and sort it.")
                assert {event.hook for event in events(session, e.HookFailed)} == {"before_send"}
                assert not any(event.projected for event in events(session, e.ModelCallStarted))
                assert session.state.tasks[0].ended == "answered"
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())
