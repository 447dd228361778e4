"""A second process for tests/test_kill.py: it opens a session, goes on with its task and says what it has shown.

Started by a fork server, so that a start costs some milliseconds and not the time of the imports.
"""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

from harness.request import digest
from harness.session import Session
from harness.tokens import encoding
from tests.harness_support import library

# Loaded once, before any child is forked.
encoding()
TASKS = 2


def child(data: Path, address: str, session_id: str, pipe: Connection) -> None:
    """Open or create the session, tell its context, and run its tasks until this process is killed or they are done."""
    asyncio.run(_run(data, address, session_id, pipe))


async def _run(data: Path, address: str, session_id: str, pipe: Connection) -> None:
    settings = {"approval_seconds": 30}
    server = SimpleNamespace(address=address)
    async with library(data, lab="10", extensions=("09",), settings=settings, server=server) as opened:  # type: ignore[arg-type]
        if session_id:
            session = await opened.open(session_id)
        else:
            session = await opened.create(language="en")
        # What a restart finds, before anything goes on: nothing has run in between.
        state = session.state
        pipe.send(("opened", session.id, len(session.records), digest(state.request())))
        watching = asyncio.ensure_future(_tell(session, pipe))
        while True:
            while session.status != "idle":
                if session.waiting:
                    session.answer(session.waiting.call_id, True)
                await asyncio.sleep(0.005)
            if sum(task.ended == "answered" for task in state.tasks) >= TASKS:
                break
            task = session.lab.groups[0].samples[0].task["en"]
            session.start_task(task, language="en")
        await asyncio.sleep(0.05)
        pipe.send(("done", session.id, session.committed, ""))
        watching.cancel()


async def _tell(session: Session, pipe: Connection) -> None:
    shown = 0
    while True:
        if session.committed > shown:
            shown = session.committed
            pipe.send(("shown", session.id, shown, ""))
        await asyncio.sleep(0.002)
