"""Hands what happens in a session to those who watch it, in order, and only what is safely journalled."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from harness.events import TextDelta
from harness.journal import Recorded

Watched = Recorded | TextDelta
# A watcher that falls this far behind is let go; it comes back and reads on from the journal.
BACKLOG = 1_000


class Subscription:
    """One watcher. Iterate over it; it ends when the session closes or the watcher is too slow."""

    def __init__(self, feed: "Feed") -> None:
        self._feed = feed
        self._queue: asyncio.Queue[Watched | None] = asyncio.Queue(BACKLOG + 1)

    def put(self, item: Watched) -> bool:
        """Queue one item; False when the watcher is too far behind."""
        if self._queue.qsize() >= BACKLOG:
            self.end()
            return False
        self._queue.put_nowait(item)
        return True

    def end(self) -> None:
        """Let the iteration come to its end."""
        if not self._queue.full():
            self._queue.put_nowait(None)

    def close(self) -> None:
        """Stop watching."""
        self._feed.remove(self)

    async def __aiter__(self) -> AsyncIterator[Watched]:
        while (item := await self._queue.get()) is not None:
            yield item


class Feed:
    """All watchers of a session, and what waits for its commit."""

    def __init__(self, committed: int) -> None:
        self.committed = committed
        self._watchers: set[Subscription] = set()
        self._outgoing: deque[Watched] = deque()

    def subscribe(self) -> Subscription:
        """Start watching: everything from now on."""
        subscription = Subscription(self)
        self._watchers.add(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Forget a watcher."""
        self._watchers.discard(subscription)

    def push(self, item: Watched) -> None:
        """Take one item; it goes out once everything before it is committed."""
        self._outgoing.append(item)
        self._send()

    def commit(self, seq: int) -> None:
        """Events up to journal number `seq` are safe now."""
        self.committed = max(self.committed, seq)
        self._send()

    def end(self) -> None:
        """End every watcher's iteration."""
        for watcher in list(self._watchers):
            watcher.end()

    def _send(self) -> None:
        while self._outgoing:
            item = self._outgoing[0]
            if isinstance(item, Recorded) and item.seq > self.committed:
                return
            self._outgoing.popleft()
            self._watchers = {watcher for watcher in self._watchers if watcher.put(item)}
