"""One HTTP exchange over raw ASGI: read the body within a limit, answer, notice when the client has gone.

Knows nothing of chat.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from offline_model.checks import BadRequest

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_LIMIT = 16 * 1024 * 1024


class Link:
    """The exchange. `closing` is set when the server stops, so that nothing waits past that."""

    def __init__(self, receive: Receive, send: Send, closing: asyncio.Event) -> None:
        self._receive, self._send, self._closing = receive, send, closing
        self._over = asyncio.Event()

    async def body(self) -> bytes:
        """Return the whole body. Raises BadRequest when it is over the limit."""
        data = bytearray()
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError("the client has gone")
            data += message.get("body", b"")
            if len(data) > BODY_LIMIT:
                raise BadRequest(f"The body is larger than {BODY_LIMIT} bytes.", status=413)
            more = message.get("more_body", False)
        return bytes(data)

    async def answer(self, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Send a whole JSON answer."""
        length = (b"content-length", str(len(body)).encode())
        await self.open(status, b"application/json", (length, *headers))
        await self._send({"type": "http.response.body", "body": body})

    async def open(self, status: int, kind: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Send the head of an answer; the rest comes in pieces."""
        start = {"type": "http.response.start", "status": status}
        await self._send({**start, "headers": [(b"content-type", kind), *headers]})

    async def piece(self, data: bytes) -> None:
        """Send one more piece."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def close(self) -> None:
        """End an answer that was sent in pieces."""
        await self._send({"type": "http.response.body", "body": b""})

    async def watch(self) -> None:
        """Run beside an answer: note when the client goes away or the server stops."""
        gone = asyncio.ensure_future(self._until_gone())
        stop = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((gone, stop), return_when=asyncio.FIRST_COMPLETED)
            self._over.set()
        finally:
            for task in (gone, stop):
                task.cancel()
            await asyncio.gather(gone, stop, return_exceptions=True)

    async def pause(self, seconds: float | None) -> bool:
        """Wait so long (None: until the end). Return False when the exchange is over."""
        if seconds == 0:
            return not self._over.is_set()
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return True
        return False

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
