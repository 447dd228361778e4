"""Runs work in the background so that no fault of ours goes unheard, and waits for what goes on there."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from harness.recorded import JournalError


def in_background(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Begin `work` in the running event loop; what it raises goes to the log."""
    task = asyncio.create_task(work)
    task.add_done_callback(_retrieve)
    return task


async def settled(done: Callable[[], bool], seconds: float) -> None:
    """Wait until `done` holds, but no longer than so many seconds."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        await asyncio.sleep(0.002)


def _retrieve(task: "asyncio.Task[None]") -> None:
    # The page hears of a failed journal through the session; anything else is a fault of ours, for the log.
    error = None if task.cancelled() else task.exception()
    if error and not isinstance(error, JournalError):
        logging.getLogger(__name__).error("a task failed", exc_info=error)
