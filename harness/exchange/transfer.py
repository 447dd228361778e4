"""Takes a session out as a file and brings one in. The workspace does not travel: it is not in the journal.

What a file says is not believed (`session_file`, `recount`), and nothing is written before all of it has been checked.
"""

import asyncio
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from harness.by_hand import NAME_CHARS
from harness.coding_tools.workspace_copy import copy_workspace
from harness.events import ChildEvent, Event, HookFailed, SessionImported, SessionStarted
from harness.exchange import session_file
from harness.exchange.recount import recount
from harness.journal import Journal
from harness.library import Library
from harness.messages import clean
from harness.recorded import JournalError, Recorded, decode, encode

# The labs' own folders to work in.
DEMOS = Path(__file__).parent.parent.parent / "demo_workspace"
PIECE = 100  # events


def export(journal: Journal, session_id: str) -> Iterator[bytes]:
    """Return the file of a session in pieces: all that is committed now. KeyError: there is no such session.

    To be called, and read, in threads. It ends early, with a KeyError, where the session is deleted meanwhile.
    """
    if not (last := journal.length(session_id)):
        raise KeyError(session_id)
    return _pieces(journal, session_id, last)


async def bring_in(library: Library, file: BinaryIO, name: str) -> str:
    """Make a new session of a file and return its id. `name` is the file's, for the page.

    Its workspace is a fresh copy of its lab's own folder. A task that was running ends as after a kill, when the
    session is opened. Problem: the file is not sure, or it cannot be kept; then nothing of it is written.
    """
    labs, session_id = library.setup.labs, secrets.token_urlsafe(9)
    records = await asyncio.to_thread(lambda: recount(session_file.read(file), labs))
    started = records[0].event
    assert isinstance(started, SessionStarted), "no other event comes first"
    demo = labs[started.lab].demo
    # Its first event says which folder was copied, and that is another one here.
    started = replace(started, workspace=demo, source=clean(str(DEMOS / demo)))
    imported = SessionImported(file=" ".join(clean(name).split())[:NAME_CHARS])
    records = [replace(records[0], event=started), *records[1:], Recorded(len(records) + 1, time.time(), imported)]
    # In one go, so that a request that is given up leaves a whole session or none.
    await asyncio.to_thread(_keep, library, session_id, records, DEMOS / demo)
    return session_id


def _keep(library: Library, session_id: str, records: list[Recorded], demo: Path) -> None:
    folder = library.folder(session_id)
    copy_workspace(demo, folder, demo.name)
    try:
        library.journal.store(session_id, records)
    except JournalError:
        shutil.rmtree(folder.parent, ignore_errors=True)
        raise


def _pieces(journal: Journal, session_id: str, last: int) -> Iterator[bytes]:
    yield session_file.header(last).encode()
    for after in range(0, last, PIECE):
        rows = list(journal.rows([session_id], after=after, most=min(PIECE, last - after)))
        if not rows:
            raise KeyError(session_id)
        yield "".join(
            session_file.line(seq, moment, kind, _told(kind, body)) for _, seq, moment, kind, body in rows
        ).encode()


def _told(kind: str, body: str) -> str:
    """Return an event's body as others may read it: where the folder lies on this machine is nobody's business."""
    if kind not in ("SessionStarted", "HookFailed") and '"kind": "HookFailed"' not in body:
        return body
    return encode(_without_places(decode(kind, body)))[1]


def _without_places(event: Event) -> Event:
    match event:
        case SessionStarted():
            return replace(event, source="")
        case HookFailed():
            # What an extension raised may name files; of which kind it was is enough for who was not there.
            return replace(event, detail=event.detail.partition("(")[0])
        case ChildEvent():
            return replace(event, event=_without_places(event.event))
    return event
