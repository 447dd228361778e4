"""Takes the port, says what runs, and serves until it is told to end."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from harness.library import Setup
from harness.problems import Problem
from web.app import end_streams
from web.settings import WebSettings
from web.words import Words

# An open page holds a stream; at the end of the server it gets this long. Seconds.
GRACE_SECONDS = 3


class Server(uvicorn.Server):
    """uvicorn, but a signal only ends the serving: uvicorn would raise it again and cut off our own closing."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the pages' streams first: an open one would hold the server up to the end of its grace."""
        asyncio.get_running_loop().call_soon_threadsafe(end_streams, self.config.app)
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear the signals that end a program while serving."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens there. Problem: the port is taken, or the host is not ours."""
    if not 0 <= port < 65536:
        raise Problem("port_range", port=str(port))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    if sys.platform != "win32":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise Problem("port_taken", host=host, port=str(port), other=str(port + 1), reason=error.strerror) from error
    return listener


async def run(app: Callable[..., object], listener: socket.socket, announce: Callable[[], None]) -> None:
    """Serve `app` until a signal ends it; `announce` is called once the server answers."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_SECONDS, server_header=False)
    server = Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        announce()
    await serving


def announce(words: Words, made: Setup, settings: WebSettings) -> None:
    """Print where the page is, which model answers and why, and which sandbox is in force."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{settings.port}/" + (f"?token={settings.token}" if settings.token else "")
    lab, model, sandbox = made.lab, made.model, made.sandbox
    added = [made.labs[number] for number in made.extensions]
    extensions = "".join(
        words.t("start.extension", number=each.number, title=each.title[words.language]).unescape() for each in added
    )
    lines = [
        words.t("start.lab", number=lab.number, title=lab.title[words.language] + extensions),
        words.t("start.address", address=address),
        words.t("start.model", model=model.model, reason=words.code("model_reason", model.reason)),
        words.t("start.sandbox", sandbox=words.code("sandbox", sandbox.code)),
        words.t("start.workspace", folder=made.source),
        words.t("start.stop"),
    ]
    for line in lines:
        print(line.unescape(), flush=True)
