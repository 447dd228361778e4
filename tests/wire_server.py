"""A real HTTP server on loopback for tests of the wire: it says exactly the bytes that a test gives it, may
stall or break off anywhere, and keeps what it was sent, byte for byte.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `pieces`: bytes are written at once and flushed, a number is a pause in seconds.

    framing: "chunked", or "close" for a body that ends with the connection. cut: break off without an end.
    """

    pieces: Sequence[bytes | float] = ()
    status: int = 200
    kind: str = "text/event-stream"
    headers: tuple[tuple[str, str], ...] = ()
    framing: str = "chunked"
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class WireServer:
    """Gives one answer after the other; the last one again and again. Use as `async with`."""

    answers: list[Answer]
    seen: list[Seen] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> "WireServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.seen.append(await _request(reader))
            answer = self.answers[min(len(self.seen), len(self.answers)) - 1]
            gone = asyncio.create_task(self._watch(reader))
            said = asyncio.create_task(_say(writer, answer))
            await asyncio.wait({gone, said}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            said.cancel()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        try:
            while await reader.read(1024):
                pass
        except ConnectionError:
            pass
        self.left.set()


async def _request(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    line, *rest = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest if each)}
    return Seen(line, headers, await reader.readexactly(int(headers.get("content-length", 0))))


async def _say(writer: asyncio.StreamWriter, answer: Answer) -> None:
    headers = [("Content-Type", answer.kind), ("Connection", "close"), *answer.headers]
    chunked = answer.framing == "chunked"
    if chunked:
        headers.append(("Transfer-Encoding", "chunked"))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    writer.write(f"HTTP/1.1 {answer.status} Status\r\n{head}\r\n".encode())
    for piece in answer.pieces:
        if isinstance(piece, float):
            await asyncio.sleep(piece)
            continue
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        await writer.drain()
    if chunked and not answer.cut:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


def delta(finish: str | None = None, **parts: Any) -> dict[str, Any]:
    """Return a chunk with one choice: delta(content="a")."""
    return {"choices": [{"index": 0, "delta": parts, "finish_reason": finish}]}


def event(chunk: object) -> bytes:
    """Return a chunk as one event of the stream."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def stream_of(*chunks: object, done: bool = True) -> bytes:
    """Return a whole stream."""
    return b"".join(event(chunk) for chunk in chunks) + (b"data: [DONE]\n\n" if done else b"")


def refusal(status: int, error: object, **headers: str) -> Answer:
    """Return an answer with an error in its JSON body."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    body = json.dumps({"error": error}, ensure_ascii=False).encode()
    return Answer([body], status, "application/json", named)
