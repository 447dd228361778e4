"""The open connection of one page: server-sent events until the page leaves or the server ends."""

import asyncio

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from harness.session import Session
from web.channel import Channel, Channels
from web.fragments import COMMENT
from web.lost import ready
from web.reading import Reading
from web.viewer import Viewer

HEARTBEAT = 15  # seconds; below what proxies take for a dead connection
STUCK = 30  # seconds that one write may take; then the page is let go, and comes back when it can
TOGETHER = 20  # events that may be rendered before others get their turn
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


def read_on(request: Request) -> int:
    """Return the journal number after which this page reads on: from Last-Event-ID, else from `after`."""
    for value in (request.headers.get("last-event-id"), request.query_params.get("after")):
        if value and value.isascii() and value.isdecimal() and len(value) < 12:
            return int(value)
    return 0


class EventStream:
    """An ASGI response."""

    def __init__(self, channels: Channels, session: Session, viewer: Viewer, after: int) -> None:
        self._channels, self._session, self._viewer, self._after = channels, session, viewer, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the page has left or the stream has ended."""
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        writing = asyncio.create_task(self._write(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # The server ends, and has waited long enough for a page that does not read.
            if not self._channels.closed:
                raise
        finally:
            leaving.cancel()
            writing.cancel()
            outcome = (await asyncio.gather(writing, leaving, return_exceptions=True))[0]
        # A page that is stuck or gone is nothing to report; a fault of ours is.
        if isinstance(outcome, Exception) and not isinstance(outcome, TimeoutError | OSError):
            raise outcome

    async def _write(self, send: Send) -> None:
        with self._channels.watch(self._session) as channel:
            reading = Reading(channel, self._viewer, self._after)
            await _chunk(send, COMMENT)
            while not self._channels.closed:
                changed = channel.changed
                await ready(self._session, self._viewer)
                for number, data in enumerate(reading.due(), start=1):
                    await _chunk(send, data)
                    if number % TOGETHER == 0:
                        await asyncio.sleep(0)
                if channel.ended or self._session.failure:
                    break
                await _rest(send, changed, channel, reading.wait())
            for data in reading.last_words():
                await _chunk(send, data)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _rest(send: Send, changed: asyncio.Event, channel: Channel, panel: float | None) -> None:
    """Wait for a change, or for the panel's time; say now and then that the connection is alive."""
    try:
        async with asyncio.timeout(HEARTBEAT if panel is None else panel):
            await changed.wait()
    except TimeoutError:
        if panel is None and not channel.ended:
            await _chunk(send, COMMENT)


async def _chunk(send: Send, data: bytes) -> None:
    async with asyncio.timeout(STUCK):
        await send({"type": "http.response.body", "body": data, "more_body": True})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
