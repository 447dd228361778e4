"""A new session that begins where a task of another one ended: the same events, the same workspace, its own way on."""

import asyncio
import secrets
import shutil
import time
from dataclasses import replace
from pathlib import Path

from harness.copies import snapshots
from harness.events import CheckpointSaved, SessionForked, SessionImported, TaskEnded, TaskStarted
from harness.library import Library
from harness.problems import Problem
from harness.recorded import Recorded
from harness.session import Busy, Session


async def fork(library: Library, session: Session, task: int) -> Session:
    """Return a new session that goes on from the end of `task`; 0 is before the first one. `session` stays as it is.

    Raises KeyError: there is no such task; Busy: it still runs; Problem: its workspace was not kept, or the new
    session cannot be written. Then nothing of the new session is left.
    """
    if session.failure:
        raise session.failure
    records, session_id = _until_end_of(task, session), secrets.token_urlsafe(9)
    # What came from a file stays so, although that was said after all of it.
    later = (each for each in session.records[len(records) :] if isinstance(each.event, SessionImported))
    records += [replace(each, seq=seq) for seq, each in enumerate(later, len(records) + 1)]
    records.append(Recorded(len(records) + 1, time.time(), SessionForked(session=session.id, task=task)))
    await session.keeper.done()
    # In one go, so that a request that is given up leaves a whole session or none.
    await asyncio.to_thread(_write, library, session_id, records, session.keeper.store, task)
    return await library.open(session_id)


def _until_end_of(task: int, session: Session) -> list[Recorded]:
    """Return what happened up to the end of `task`. What a person changed after it belongs to the time after it."""
    records = session.records
    if task == 0:
        first = next((each.seq for each in records if isinstance(each.event, TaskStarted)), len(records) + 1)
        return records[: first - 1]
    # A task that was resumed after its end has several; the files are those of the last.
    for recorded in reversed(records):
        if isinstance(recorded.event, TaskEnded) and recorded.event.task == task:
            return records[: recorded.seq]
    if any(each.task == task for each in session.state.tasks):
        raise Busy
    raise KeyError(task)


def _write(library: Library, session_id: str, records: list[Recorded], store: Path, task: int) -> None:
    """Write the workspace, the snapshots and, last of all, the journal, which makes them a session."""
    workspace = library.folder(session_id)
    try:
        snapshots.restore(store, task, workspace)
        saved = (each.event for each in records if isinstance(each.event, CheckpointSaved))
        steps = {each.workspace for each in saved if each.task == task and each.workspace}
        snapshots.share(store, snapshots.store_of(workspace), task, steps)
        library.journal.store(session_id, records)
    except Exception as error:
        shutil.rmtree(workspace.parent, ignore_errors=True)
        if isinstance(error, OSError):
            raise Problem("fork_failed", reason=error.strerror or str(error)) from error
        raise
