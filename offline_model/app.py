"""The HTTP face: routes, errors, streaming and faults, as a raw ASGI application.

Knows the wire and asks `respond` for the reply; knows nothing of how that is made.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from offline_model import wire
from offline_model.chat import ChatRequest, Reply
from offline_model.checks import BadRequest, parse
from offline_model.faults import Faults, due
from offline_model.headers import Asked, read_headers
from offline_model.link import Link, Receive, Send
from offline_model.respond import is_summary, respond
from offline_model.script import Flow
from offline_model.tokens import PrefixMemory, count, count_reply, shorten

MODEL = "offline"
HTTP_FAULTS = {
    "key": BadRequest("Incorrect API key provided.", status=401, code="invalid_api_key"),
    "model_missing": BadRequest("The model does not exist.", status=404, code="model_not_found"),
    "rate_limit": BadRequest("Rate limit reached.", status=429, code="rate_limit_exceeded"),
    "server_error": BadRequest("The server had an error.", status=500),
    "summary_error": BadRequest("The server had an error.", status=500),
}
# How long what is slow lets wait, in seconds: long enough to be seen, short enough to be waited for.
SLOW = 8.0
SLOW_FAULTS = ("slow", "summary_slow")


class OfflineApp:
    """The application.

    window: tokens. delay: seconds between two streamed pieces. slow: seconds before a reply that is slow.
    """

    def __init__(self, flows: Sequence[Flow], *, window: int, faults: Faults, delay: float, slow: float, record: bool):
        self.flows, self.window, self.faults, self.delay, self.slow = tuple(flows), window, faults, delay, slow
        self.requests: list[bytes] = []
        self.closing = asyncio.Event()
        self._record = record
        self._memory = PrefixMemory()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        link = Link(receive, send, self.closing)
        try:
            await self._route(scope, link)
        except BadRequest as error:
            retry = ((b"retry-after", b"1"),) if error.status == 429 else ()
            await link.answer(error.status, wire.failure(error), retry)
        except ConnectionError:
            pass

    async def _route(self, scope: dict[str, Any], link: Link) -> None:
        method, path = scope["method"], scope["path"]
        if path == "/v1/models" and method == "GET":
            await link.answer(200, wire.models(MODEL, self.window))
        elif path == "/v1/chat/completions" and method == "POST":
            await self._chat(await link.body(), read_headers(scope["headers"]), link)
        elif path in ("/v1/models", "/v1/chat/completions"):
            raise BadRequest(f"Not allowed method {method} for {path}.", status=405)
        else:
            raise BadRequest(f"Unknown request URL: {method} {path}.", status=404, code="unknown_url")

    async def _chat(self, body: bytes, asked: Asked, link: Link) -> None:
        if self._record:
            self.requests.append(body)
        request = parse(body)
        summary, window = is_summary(request), asked.window or self.window
        fault = due(asked.fault, summary=summary) if asked.fault else self.faults.take(summary=summary)
        if fault in HTTP_FAULTS:
            raise HTTP_FAULTS[fault]
        prompt = sum(count(part) for part in request.parts)
        check_window(prompt, window)
        cached = self._memory.cached(request.parts)
        # Whoever writes a summary knows how long it may get: also where the window has less room than was asked for.
        most = request.max_tokens and min(request.max_tokens, window - prompt)
        reply = within(respond(replace(request, max_tokens=most), self.flows, fault), most, window - prompt)
        used = wire.Counted(prompt, count_reply(reply), cached)
        watcher = asyncio.ensure_future(link.watch())
        try:
            await (self._stream if request.stream else self._whole)(link, request, reply, used, fault)
        finally:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher

    async def _whole(self, link: Link, request: ChatRequest, reply: Reply, used: wire.Counted, fault: str) -> None:
        if fault == "stall":
            await link.pause(None)
            return
        if fault in SLOW_FAULTS and not await link.pause(self.slow):
            return
        body = wire.completion(request, reply, used, _identity(request), int(time.time()))
        if fault == "cut":
            await link.open(200, b"application/json", ((b"content-length", str(len(body)).encode()),))
            await link.piece(body[: len(body) // 2])
            return
        await link.answer(200, body)

    async def _stream(self, link: Link, request: ChatRequest, reply: Reply, used: wire.Counted, fault: str) -> None:
        await link.open(200, b"text/event-stream; charset=utf-8", ((b"cache-control", b"no-cache"),))
        events = list(wire.chunks(request, reply, used, _identity(request), int(time.time())))
        if fault in SLOW_FAULTS and not await link.pause(self.slow):
            return
        # A fault in the stream strikes in its middle, when a part of the reply has been seen.
        end = len(events) if fault not in ("stall", "cut") else max(1, len(events) // 2)
        for event in events[:end]:
            if not await link.pause(self.delay):
                return
            await link.piece(event)
        if fault == "stall":
            await link.pause(None)
        elif fault != "cut":
            await link.piece(wire.DONE)
            await link.close()


def check_window(prompt: int, window: int) -> None:
    """Do nothing if `prompt` tokens leave room in the window. BadRequest: they don't."""
    if prompt < window:
        return
    raise BadRequest(
        f"This model's maximum context length is {window} tokens. However, your messages resulted in "
        f"{prompt} tokens. Please reduce the length of the messages.",
        code="context_length_exceeded",
        param="messages",
    )


def within(reply: Reply, limit: int | None, room: int) -> Reply:
    """Return `reply`, cut to `limit` and to the `room` left in the window, both in tokens."""
    most = min(room, room if limit is None else limit)
    if count_reply(reply) <= most:
        return reply
    # A call that was cut has broken arguments, so calls are dropped and only text is left.
    return Reply(shorten(reply.text, most), (), "length")


def _identity(request: ChatRequest) -> str:
    return "chatcmpl-" + hashlib.sha256(b"\n".join(request.parts)).hexdigest()[:20]
