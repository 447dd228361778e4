"""When a session's snapshots are taken: after each task, in a thread, and before the next task does anything.

Knows nothing of journals or of the page.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from harness.copies import manifest, snapshots
from harness.events import Event, TaskEnded


class Keeper:
    """Takes the snapshots of one workspace. All methods belong to the event loop's thread.

    store: the folder of the snapshots, beside the workspace.
    """

    def __init__(self, workspace: Path) -> None:
        self.store = snapshots.store_of(workspace)
        self._workspace = workspace
        self._taking: asyncio.Task[None] | None = None

    def follow(self, event: Event) -> None:
        """At the end of a task begin to take its snapshot."""
        if isinstance(event, TaskEnded):
            self.keep(event.task)

    def keep(self, task: int) -> None:
        """Begin to take the snapshot of the end of `task`; 0 is before the first one."""
        self._taking = asyncio.create_task(self._take(self._taking, task))

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

    async def _take(self, before: "asyncio.Task[None] | None", task: int) -> None:
        if before:
            await asyncio.wait([before])
        try:
            await asyncio.to_thread(snapshots.take, self.store, self._workspace, task)
        except Exception:  # a snapshot must never cost the session anything; without one, a fork says so
            logging.getLogger(__name__).exception("no snapshot was taken")
