"""A real server on loopback for tests: sessions, offline model, app and uvicorn, in a thread of their own."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette

from harness import by_hand
from harness.library import Library
from harness.session import Session
from tests.harness_support import Recorder, library
from web.app import create_app, end_streams
from web.settings import WebSettings

T = TypeVar("T")
MINE = {"X-Context-Lab": "1"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, read to its end. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Message:
    """One server-sent event; `id` is None where it has none, `data` is its lines joined."""

    id: int | None
    data: str


class Stream:
    """An open stream of server-sent events, read message by message."""

    def __init__(self, port: int, path: str, headers: Mapping[str, str]) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=20)
        self.connection.request("GET", path, headers=dict(headers))
        self.answer = self.connection.getresponse()

    def next(self) -> Message | None:
        """Return the next message, or None when the server has ended the stream."""
        number, data = None, []
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "id":
                number = int(value)
            elif name == "data":
                data.append(value)
            elif line == "\n" and data:
                return Message(number, "\n".join(data))
        return None

    def until(self, number: int) -> list[Message]:
        """Return all messages up to the one with this id."""
        read: list[Message] = []
        while not read or read[-1].id != number:
            message = self.next()
            assert message, "the stream ended"
            read.append(message)
        return read

    def close(self) -> None:
        self.connection.close()


@dataclass
class Web:
    """The server while it runs in its own thread and event loop."""

    port: int
    loop: asyncio.AbstractEventLoop
    app: Starlette
    library: Library
    settings: WebSettings
    server: uvicorn.Server
    streams: list[Stream] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, work: Coroutine[Any, Any, T], seconds: float = 30) -> T:
        """Run `work` in the server's loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds)

    def session(self) -> Session:
        """Start a session; what it starts with is journalled."""
        session = self.run(self.library.create(language="en"))
        self.run(_journalled(session))
        return session

    def ask(
        self, path: str, method: str = "GET", body: bytes | str = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send one request; `headers` may replace Host."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body or None, dict(headers or {}))
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, named, answer.read())
        finally:
            connection.close()

    def post(self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] = MINE) -> Reply:
        """Send a form."""
        return self.ask(path, "POST", urlencode(fields), FORM | dict(headers))

    def stream(self, path: str, headers: Mapping[str, str] | None = None) -> Stream:
        """Open a stream; it is closed with the server."""
        self.streams.append(Stream(self.port, path, headers or {}))
        return self.streams[-1]

    def change(self, session: Session, times: int) -> int:
        """Record `times` small events in the session; return the number of the last, once it may be shown."""

        async def change() -> int:
            for _ in range(times):
                by_hand.change_setting(session, "budget", session.state.settings["budget"] + 1)
            return await _journalled(session)

        return self.run(change())

    def pages(self) -> int:
        """Return how many pages watch now."""
        return self.app.state.site.channels.pages()

    def drop(self) -> None:
        """Break every open connection, as a network does that fails."""

        async def drop() -> None:
            for connection in list(self.server.server_state.connections):
                connection.transport.abort()

        self.run(drop())

    def raw(self, request: bytes) -> bytes:
        """Send bytes as they are and return all that comes until the server closes or two seconds pass."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            connection.sendall(request)
            connection.settimeout(2)
            received = b""
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                while chunk := connection.recv(65536):
                    received += chunk
        return received


async def _journalled(session: Session) -> int:
    last = len(session.records)
    while session.committed < last:
        await asyncio.sleep(0.002)
    return last


@contextlib.contextmanager
def serving(
    data: Path, *, port: int = 0, lab: str = "07", model: Recorder | None = None, **settings: Any
) -> Iterator[Web]:
    """Run a server over `data`. `settings` are those of WebSettings, and perhaps `source` and `extensions`."""
    started: list[Web] = []
    ready, ended = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(data, port, lab, model, settings, started, ready, ended)), daemon=True
    )
    thread.start()
    try:
        assert ready.wait(60) and started, "the server did not start"
        yield started[0]
    finally:
        for stream in started[0].streams if started else []:
            stream.close()
        ended.set()
        thread.join(20)
        assert not thread.is_alive(), "the server did not end"


async def _serve(
    data: Path,
    port: int,
    lab: str,
    model: Recorder | None,
    settings: dict[str, Any],
    started: list[Web],
    ready: threading.Event,
    ended: threading.Event,
) -> None:
    try:
        with socket.create_server(("127.0.0.1", port)) as listener:
            more = {name: settings.pop(name) for name in ("source", "extensions") if name in settings}
            async with library(data, lab=lab, server=model, **more) as opened:
                chosen = WebSettings(**({"host": "127.0.0.1"} | settings), port=listener.getsockname()[1])
                app = create_app(opened, chosen)
                config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=5)
                server = uvicorn.Server(config)
                serve = asyncio.create_task(_quiet(server, listener))
                while not server.started and not serve.done():
                    await asyncio.sleep(0.01)
                started.append(Web(chosen.port, asyncio.get_running_loop(), app, opened, chosen, server))
                ready.set()
                while not ended.is_set() and not serve.done():
                    await asyncio.sleep(0.02)
                end_streams(app)
                server.should_exit = True
                await serve
    finally:
        ready.set()


async def _quiet(server: uvicorn.Server, listener: socket.socket) -> None:
    # uvicorn's own serve() wants the signals, which belong to the main thread.
    await server._serve([listener])  # noqa: SLF001
