"""Opens, creates and lists sessions. Each has a copy of the workspace of its own, beside the journal.

Reading the journal and copying a folder are done in threads; everything else belongs to the event loop.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness import tokens
from harness.coding_tools.workspace_copy import copy_workspace
from harness.discovery import BASE_LAB, Lab, find, load
from harness.events import SessionStarted, TaskEnded, TaskStarted
from harness.hooks import Extension
from harness.journal import Journal, Recorded
from harness.loop import results_for_open_calls
from harness.messages import AssistantMessage, clean
from harness.model.gateway import Gateway
from harness.replay import State, fold
from harness.sandbox.detect import Sandbox
from harness.session import Session
from harness.session_events import ModelChosen
from harness.workspace import Workspace

# For every session: turns a task may take, seconds that an approval waits.
DEFAULTS = {"step_limit": 30, "approval_seconds": 300}
INTERRUPTED = "The server stopped before this had ended. What it had done until then may stand."


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


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A line in the list of sessions. `time` is Unix seconds, `tasks` a number, `first` the first task's text."""

    id: str
    time: float
    lab: str
    tasks: int
    first: str


class Library:
    """The sessions of one server."""

    def __init__(self, setup: Setup, journal: Journal, gateway: Gateway) -> None:
        self.setup, self._journal, self._gateway = setup, journal, gateway
        self._open: dict[str, Session] = {}
        self._opening: dict[str, asyncio.Task[Session]] = {}

    async def create(self, *, language: str) -> Session:
        """Start a session. WorkspaceError: the folder cannot be copied."""
        setup, session_id = self.setup, secrets.token_urlsafe(9)
        # The rank file takes half a second to load; the first message to be measured must not wait in the loop.
        await asyncio.to_thread(tokens.encoding)
        copy = await asyncio.to_thread(copy_workspace, setup.source, self._folder(session_id), setup.label)
        workspace = replace(copy, sandbox=setup.sandbox)
        extensions = self._load(setup.lab, setup.extensions)
        session = self._session(session_id, setup.lab, extensions, workspace)
        known = {name: value for name, value in setup.settings.items() if name in self._settings(session)}
        session.emit(
            SessionStarted(
                lab=setup.lab.number, extensions=setup.extensions, workspace=clean(setup.label), language=language,
                settings=self._settings(session) | known, source=clean(str(setup.source)),
            )
        )  # fmt: skip
        session.prepare()
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
        """Return the newest session of this lab, these extensions and this workspace, or None."""
        setup = self.setup
        wanted = (setup.lab.number, setup.extensions, clean(str(setup.source)))
        started = await asyncio.to_thread(self._journal.read_kind, "SessionStarted")
        for session_id, recorded in reversed(started):
            event = recorded.event
            assert isinstance(event, SessionStarted), "read_kind returns events of the kind asked for"
            if (event.lab, event.extensions, event.source) == wanted and self._folder(session_id).is_dir():
                return session_id
        return None

    async def sessions(self) -> list[SessionInfo]:
        """Return every session, the newest first."""
        started = await asyncio.to_thread(self._journal.read_kind, "SessionStarted")
        tasks = await asyncio.to_thread(self._journal.read_kind, "TaskStarted")
        texts: dict[str, list[str]] = {}
        for session_id, recorded in tasks:
            assert isinstance(recorded.event, TaskStarted), "read_kind returns events of the kind asked for"
            texts.setdefault(session_id, []).append(recorded.event.text)
        lines = []
        for session_id, recorded in reversed(started):
            assert isinstance(recorded.event, SessionStarted), "read_kind returns events of the kind asked for"
            own = texts.get(session_id, [""])
            number = len(texts.get(session_id, []))
            lines.append(SessionInfo(session_id, recorded.time, recorded.event.lab, number, own[0]))
        return lines

    async def close(self) -> None:
        """Stop every session and commit what is queued."""
        for session in self._open.values():
            await session.close()
        await asyncio.to_thread(self._journal.close)

    async def _reopen(self, session_id: str) -> Session:
        """Read a session from the journal, also one whose journal had failed."""
        if failed := self._open.pop(session_id, None):
            await failed.close()
            self._journal.reopen(session_id)
        self._open[session_id] = session = await self._restore(session_id)
        return session

    async def _restore(self, session_id: str) -> Session:
        records = await asyncio.to_thread(self._journal.read, session_id)
        if not records or not isinstance(records[0].event, SessionStarted):
            raise KeyError(session_id)
        started = records[0].event
        state = await asyncio.to_thread(fold, [(each.seq, each.event) for each in records])
        lab = find(self.setup.labs, started.lab)
        workspace = Workspace(self._folder(session_id), started.workspace, self.setup.sandbox)
        extensions = self._load(lab, started.extensions)
        session = self._session(session_id, lab, extensions, workspace, records, state)
        _settle(session)
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
        outside = (self._journal, self._gateway, self.setup.model)
        return Session(session_id, lab, extensions, workspace, *outside, records or [], state)

    def _folder(self, session_id: str) -> Path:
        return self.setup.data / "sessions" / session_id / "workspace"

    def _labs(self, lab: Lab, names: tuple[str, ...]) -> list[Lab]:
        labs = [find(self.setup.labs, name) for name in (BASE_LAB, *names, lab.number)]
        return list({each.number: each for each in labs}.values())

    def _load(self, lab: Lab, names: tuple[str, ...]) -> tuple[Extension, ...]:
        return tuple(load(each) for each in self._labs(lab, names))

    def _settings(self, session: Session) -> dict[str, int]:
        labs = self._labs(session.lab, self.setup.extensions)
        return DEFAULTS | {name: value for lab in labs for name, value in lab.settings.items()}


def _settle(session: Session) -> None:
    """Give a task that a kill cut short its end, so that the history is valid again."""
    if not (task := session.state.running_task()):
        return
    for result in results_for_open_calls(session.state, INTERRUPTED):
        session.emit(result)
    last = session.state.history[-1].message
    answered = isinstance(last, AssistantMessage) and not last.calls
    reason = "answered" if answered else "interrupted"
    session.emit(TaskEnded(task=task.task, reason=reason, seconds=0.0))
