"""When a session's snapshots are taken: after each task and for each checkpoint, in a thread, before anything goes on.

Knows nothing of journals or of the page.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from harness.copies import manifest, snapshots
from harness.copies.putting_back import put_back
from harness.events import Event, TaskEnded

Done = TypeVar("Done")


class Keeper:
    """Takes the snapshots of one workspace. All methods belong to the event loop's thread.

    store: the folder of the snapshots, beside the workspace.
    """

    def __init__(self, workspace: Path) -> None:
        self.store = snapshots.store_of(workspace)
        self._workspace = workspace
        self._taking: asyncio.Task[Any] | None = None

    def follow(self, event: Event) -> None:
        """At the end of a task begin to take its snapshot."""
        if isinstance(event, TaskEnded):
            self.keep(event.task)

    def keep(self, task: int) -> None:
        """Begin to take the snapshot of the end of `task`; 0 is before the first one."""
        self._begin(lambda: snapshots.take(self.store, self._workspace, task), None)

    async def keep_step(self, number: int, like: int) -> int:
        """Take the snapshot of checkpoint `number`; return the number of the one that holds it, 0 where none does.

        like: the one of the checkpoint before, 0 for none. Stopped while it waits, the snapshot is taken all the same.
        """
        work = functools.partial(snapshots.take_step, self.store, self._workspace, number, like)
        return await asyncio.shield(self._begin(work, 0))

    def put_back(self, number: int) -> "asyncio.Task[bool]":
        """Begin to let the workspace be what the snapshot of checkpoint `number` holds; its result: whether it is."""
        return self._begin(lambda: put_back(self.store, self._workspace, number), False)

    async def keep_if_missing(self, task: int) -> None:
        """Take the snapshot of the end of `task`, the newest one, where a kill or an older version left none."""
        if self._taking is None and not await asyncio.to_thread(manifest.load, self.store, task):
            self.keep(task)

    async def done(self) -> None:
        """Wait until no snapshot is being taken."""
        if self._taking and not self._taking.done():
            await asyncio.wait([self._taking])

    async def then(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do `work`, which may write to the workspace, once no snapshot is being taken.

        Stopped while it waits, the work begins all the same and meets the stop at its first step: so it can say
        that it ended.
        """
        try:
            await self.done()
        except asyncio.CancelledError:
            if running := asyncio.current_task():
                running.cancel()
        await work()

    def _begin(self, work: Callable[[], Done], otherwise: Done) -> "asyncio.Task[Done]":
        self._taking = begun = asyncio.create_task(self._behind(self._taking, work, otherwise))
        return begun

    async def _behind(self, before: "asyncio.Task[Any] | None", work: Callable[[], Done], otherwise: Done) -> Done:
        if before:
            await asyncio.wait([before])
        try:
            return await asyncio.to_thread(work)
        except Exception:  # a snapshot must never cost the session anything; without one, a fork says so
            logging.getLogger(__name__).exception("no snapshot was taken or put back")
            return otherwise
