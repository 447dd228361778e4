"""Deletes a session for good: what is recorded of it and its folder. Nothing else in this program removes an event."""

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

from harness.library import Library
from harness.problems import Problem
from harness.recorded import JournalError


async def delete(library: Library, session_id: str) -> None:
    """Delete a session, also one that this version cannot open. KeyError: there is none with this id.

    What runs in it is stopped first, and those who watch are told. JournalError: the journal still has it all.
    Problem: the journal has nothing of it any more, but a part of its folder is still there.
    """
    deleted = JournalError("session_deleted")
    was_open = await library.forget(session_id, deleted)
    # Only an id that is known may become a path.
    if not was_open and not await asyncio.to_thread(library.journal.length, session_id):
        raise KeyError(session_id)
    await asyncio.to_thread(library.journal.delete, session_id)
    # Who asked for it in between has read what is now gone.
    await library.forget(session_id, deleted)
    await asyncio.to_thread(_remove, library.folder(session_id).parent)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        _unlock(folder)
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        raise Problem("folder_kept", folder=folder)


def _unlock(folder: Path) -> None:
    """Allow what a command in the workspace may have forbidden its owner."""
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            with contextlib.suppress(OSError):
                if not path.is_symlink():
                    path.chmod(0o700)
