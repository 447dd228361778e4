"""What the open pages of one session share: one watcher, one wake-up, and each event rendered once.

A page is no queue here. It keeps a number, up to where it has read, and takes what comes after it from the
session; so a page that reads slowly costs nothing and misses nothing. Knows no HTTP.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.events import TextDelta
from harness.session import Session

TICK = 0.05  # seconds between two pieces of a streaming reply: 20 a second, however fast the model is
KEPT = 8 * 1_048_576  # bytes of rendered events that are kept for pages that come back


class Channel:
    """One session's pages. Lives from the first page that watches to the last."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.pages = 0
        self.ended = False
        self._changed = asyncio.Event()
        self._frames: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0
        self._soon: asyncio.TimerHandle | None = None
        self._subscription = session.subscribe()
        self._watching = asyncio.create_task(self._watch())

    @property
    def changed(self) -> asyncio.Event:
        """Return the event that the next change sets. Take it before looking, and then wait for it."""
        return self._changed

    def frame(self, key: Hashable, render: Callable[[], bytes]) -> bytes:
        """Return what `render` returns, rendered once for all pages that ask with this key."""
        if key in self._frames:
            self._frames.move_to_end(key)
            return self._frames[key]
        made = self._frames[key] = render()
        self._size += len(made)
        while self._size > KEPT and len(self._frames) > 1:
            self._size -= len(self._frames.popitem(last=False)[1])
        return made

    def wake(self) -> None:
        """Let every page look for what is new."""
        woken, self._changed = self._changed, asyncio.Event()
        woken.set()

    def end(self) -> None:
        """Let every page's stream come to its end."""
        self.ended = True
        self._watching.cancel()
        if self._soon:
            self._soon.cancel()
        self._subscription.close()
        self.wake()

    async def _watch(self) -> None:
        async for item in self._subscription:
            if not isinstance(item, TextDelta):
                self.wake()
            elif self._soon is None:
                self._soon = asyncio.get_running_loop().call_later(TICK, self._tick)
        self.end()

    def _tick(self) -> None:
        self._soon = None
        self.wake()


@dataclass(slots=True)
class Channels:
    """The channels of an app. `closed` once the server is about to end."""

    closed: bool = False
    _open: dict[str, Channel] = field(default_factory=dict)

    @contextmanager
    def watch(self, session: Session) -> Iterator[Channel]:
        """Take part in the session's channel as one page."""
        channel = self._open.get(session.id)
        if channel is None or channel.ended:
            channel = self._open[session.id] = Channel(session)
        channel.pages += 1
        try:
            yield channel
        finally:
            channel.pages -= 1
            if not channel.pages:
                channel.end()
                if self._open.get(session.id) is channel:
                    del self._open[session.id]

    def pages(self) -> int:
        """Return how many pages watch now."""
        return sum(channel.pages for channel in self._open.values())

    def close(self) -> None:
        """End every stream, and refuse new ones. The server calls it before it waits for open connections."""
        self.closed = True
        for channel in list(self._open.values()):
            channel.end()
