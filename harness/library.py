"""Opens, creates and lists sessions. Each has a copy of the workspace of its own, beside the journal.

Reading the journal and copying a folder are done in threads; everything else belongs to the event loop.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import by_hand, spills, tokens, trust
from harness.coding_tools.workspace_copy import copy_workspace
from harness.combining import combined, load_all, usual_settings
from harness.discovery import Lab, find
from harness.events import ExtensionsChanged, SessionStarted, WorkspaceTrusted
from harness.hooks import Extension
from harness.journal import Journal, JournalError, Recorded
from harness.messages import clean
from harness.model.gateway import Gateway
from harness.notes.offered import remembering
from harness.places import notes_folder, workspace_folder
from harness.reopening import settle
from harness.replay import State, fold
from harness.sandbox.detect import Sandbox
from harness.session import Busy, Session
from harness.session_events import ModelChosen
from harness.session_list import own_sessions
from harness.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Setup:
    """What the server was started with. `source` is the folder to copy, `label` its name on the page."""

    labs: dict[str, Lab]
    lab: Lab
    extensions: tuple[str, ...]
    source: Path
    label: str
    data: Path
    sandbox: Sandbox
    model: ModelChosen
    settings: Mapping[str, int]
    fault: str = ""


class Library:
    """The sessions of one server."""

    def __init__(self, setup: Setup, journal: Journal, gateway: Gateway) -> None:
        self.setup, self.journal, self._gateway = setup, journal, gateway
        self._open: dict[str, Session] = {}
        self._opening: dict[str, asyncio.Task[Session]] = {}

    async def create(self, *, language: str) -> Session:
        """Start a session. WorkspaceError: the folder cannot be copied."""
        setup, session_id = self.setup, secrets.token_urlsafe(9)
        # The rank file takes half a second to load; the first message to be measured must not wait in the loop.
        await asyncio.to_thread(tokens.encoding)
        await asyncio.to_thread(copy_workspace, setup.source, self.folder(session_id), setup.label)
        accepted = await asyncio.to_thread(trust.accepted, setup.data, setup.source)
        workspace = self._workspace(session_id, setup.label, setup.source, accepted)
        labs = combined(setup.labs, setup.lab, setup.extensions)
        session = self._session(session_id, setup.lab, load_all(labs), workspace)
        # The extensions may read files: not in the event loop.
        await session.looked.look(session.extensions, workspace)
        usual = usual_settings(labs)
        known = {name: value for name, value in setup.settings.items() if name in usual}
        session.emit(
            SessionStarted(
                lab=setup.lab.number, extensions=setup.extensions, workspace=clean(setup.label), language=language,
                settings=usual | known, source=clean(str(setup.source)),
            )
        )  # fmt: skip
        by_hand.choose_fault(session, setup.fault)
        if accepted:
            session.emit(WorkspaceTrusted(trusted=True, by="earlier", accepted=tuple(sorted(accepted))))
        session.prepare()
        session.keeper.keep(0)
        self._open[session_id] = session
        return session

    async def open(self, session_id: str) -> Session:
        """Return a session, from memory or from the journal. KeyError: there is none with this id.

        A session whose code or journal cannot be read raises LabError or JournalError.
        """
        session = self._open.get(session_id)
        if session and not session.failure:
            return session
        # One reading for all who ask meanwhile; nobody else waits for it.
        if session_id not in self._opening:
            self._opening[session_id] = asyncio.ensure_future(self._reopen(session_id))
        try:
            return await asyncio.shield(self._opening[session_id])
        finally:
            if (opening := self._opening.get(session_id)) and opening.done():
                del self._opening[session_id]

    async def latest(self) -> str | None:
        """Return the session to open first, or None: of those of this lab, these extensions and this folder, the one
        where something happened last. So one comes back to one's own last work, be it in a fork or not, and never to
        an imported session, whatever its events say.
        """
        setup = self.setup
        wanted = (setup.lab.number, setup.extensions, clean(str(setup.source)))
        own = own_sessions(self.journal, *wanted)
        return await asyncio.to_thread(lambda: next((each for each in own if self.folder(each).is_dir()), None))

    async def change_extensions(self, session: Session, names: tuple[str, ...]) -> None:
        """Switch a session to these extensions, by number or name; its lab and lab 01 stay.

        Raises Busy while something runs, LabError for one that is unknown or broken: then nothing has changed.
        """
        if session.status != "idle":
            raise Busy
        numbers = tuple(find(self.setup.labs, name).number for name in names)
        labs = combined(self.setup.labs, session.lab, names)
        extensions = load_all(labs)
        await session.looked.look(extensions, session.workspace)
        if session.status != "idle":
            raise Busy
        settings = {name: session.state.settings.get(name, value) for name, value in usual_settings(labs).items()}
        session.emit(ExtensionsChanged(extensions=numbers, settings=settings))
        session.extensions = extensions
        session.prepare()

    async def forget(self, session_id: str, failure: JournalError | None = None) -> bool:
        """Close a session; return whether it was open. `failure` tells who watches why no more is recorded in it."""
        if opening := self._opening.get(session_id):
            await asyncio.wait([opening])
        if session := self._open.pop(session_id, None):
            await session.stop()
            session.failure = failure or session.failure
            await session.close()
        return session is not None

    async def close(self) -> None:
        """Stop every session and commit what is queued."""
        for session in self._open.values():
            await session.close()
        await asyncio.to_thread(self.journal.close)

    async def _reopen(self, session_id: str) -> Session:
        """Read a session from the journal, also one whose journal had failed."""
        if failed := self._open.pop(session_id, None):
            await failed.close()
            self.journal.reopen(session_id)
        self._open[session_id] = session = await self._restore(session_id)
        return session

    async def _restore(self, session_id: str) -> Session:
        records = await asyncio.to_thread(self.journal.read, session_id)
        if not records or not isinstance(records[0].event, SessionStarted):
            raise KeyError(session_id)
        started = records[0].event
        state = await asyncio.to_thread(fold, [(each.seq, each.event) for each in records])
        lab = find(self.setup.labs, started.lab)
        source = Path(started.source) if started.source else None
        workspace = self._workspace(session_id, started.workspace, source, state.accepted)
        extensions = load_all(combined(self.setup.labs, lab, state.extensions))
        workspace = await asyncio.to_thread(remembering, workspace, state)
        session = self._session(session_id, lab, extensions, workspace, records, state)
        await asyncio.to_thread(spills.sweep, workspace.root, spills.named(records))
        try:
            await settle(session)
        except JournalError:
            # The next who opens it finds one whose writing has failed, and has the journal take its events again.
            self._open[session_id] = session
            raise
        await session.keeper.keep_if_missing(len(state.tasks))
        return session

    def _session(
        self,
        session_id: str,
        lab: Lab,
        extensions: tuple[Extension, ...],
        workspace: Workspace,
        records: list[Recorded] | None = None,
        state: State | None = None,
    ) -> Session:
        outside = (self.journal, self._gateway, self.setup.model)
        return Session(session_id, lab, extensions, workspace, *outside, records or [], state)

    def folder(self, session_id: str) -> Path:
        """Return where the copy of the workspace lies that a session works in."""
        return workspace_folder(self.setup.data, session_id)

    def _workspace(self, session_id: str, label: str, source: Path | None, accepted: frozenset[str]) -> Workspace:
        notes, data = notes_folder(self.setup.data, source) if source else None, self.setup.data
        return Workspace(self.folder(session_id), label, self.setup.sandbox, source, accepted, notes, answers=data)
