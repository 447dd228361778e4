"""The server around the application: its own thread, its own event loop, loopback only.

Knows uvicorn; knows nothing of chat.
"""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from offline_model.app import SLOW, OfflineApp
from offline_model.faults import Faults
from offline_model.script import load_flows

WINDOW = 32_768
DELAY = 0.015
START_SECONDS = 10.0


class OfflineServer:
    """The offline model in this process. Use start() and stop(), or `with`.

    scripts: the labs' offline.toml files. window: tokens. delay: seconds between two streamed pieces.
    fault: see `offline_model.faults`; `faults.set()` changes it while the server runs. A request may ask for
        another fault and window in its HTTP headers, see `offline_model.headers`.
    slow: seconds before a reply that is slow by fault.
    record: keep the body of every chat request in `requests`.
    """

    def __init__(
        self,
        scripts: Sequence[Path] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        window: int = WINDOW,
        fault: str = "",
        delay: float = DELAY,
        slow: float = SLOW,
        record: bool = False,
    ) -> None:
        self.faults = Faults(fault)
        flows = load_flows(scripts)
        self._app = OfflineApp(flows, window=window, faults=self.faults, delay=delay, slow=slow, record=record)
        self._host, self._port = host, port
        self._address = ""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: uvicorn.Server | None = None
        self._ready = threading.Event()

    @property
    def address(self) -> str:
        """Return the base URL, or "" while the server does not run."""
        return self._address

    @property
    def requests(self) -> list[bytes]:
        """Return the recorded bodies, oldest first; empty without record=True."""
        return self._app.requests

    def start(self) -> str:
        """Start the server and return its base URL, which ends in /v1. Raises OSError when the port is busy."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listener = socket.socket(family)
        if os.name == "posix":  # on Windows it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, self._port))
        except OSError:
            listener.close()
            raise
        port = listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, args=(listener,), name="offline-model", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise RuntimeError("the offline model did not start")
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._address = f"http://{host}:{port}/v1"
        return self._address

    def stop(self) -> None:
        """Stop the server; streams that are still open end. Calling it twice is harmless."""
        if self._thread is None or self._loop is None or self._server is None:
            return
        self._server.should_exit = True
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._app.closing.set)
        self._thread.join(START_SECONDS)
        self._thread, self._address = None, ""

    def __enter__(self) -> "OfflineServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, listener: socket.socket) -> None:
        # A cut stream is a wanted fault, and uvicorn would report each as an error.
        config = uvicorn.Config(
            self._app,
            lifespan="off",
            http="h11",
            ws="none",
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        self._server = uvicorn.Server(config)
        with contextlib.closing(listener):
            asyncio.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        assert self._server, "_run makes the server"
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._ready.set)
        await self._server.serve(sockets=[listener])
