"""One session: its journal, its state, its workspace copy, and the task that runs now.

`emit` is the one door: an event gets its number, is folded into the state, goes to the journal, and is
shown once it is committed. Knows nothing of the web.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Literal

from harness import events as e
from harness import hooks
from harness.approvals import Approvals
from harness.discovery import Lab
from harness.hooks import Extension
from harness.journal import Journal, JournalError, Recorded
from harness.loop import Surroundings, run_task
from harness.messages import clean
from harness.model.gateway import Gateway
from harness.replay import State
from harness.session_events import ModelChosen
from harness.subscription import Feed, Subscription
from harness.tools import Tool
from harness.workspace import Workspace

# More than any budget or limit needs, and far from what a database cannot hold.
SETTING_MAX = 10_000_000

Status = Literal["idle", "running", "waiting"]


class Busy(Exception):
    """A task is running; nothing was started."""


class Session:
    """A session that is open in this process. All methods belong to the event loop's thread."""

    def __init__(
        self,
        session_id: str,
        lab: Lab,
        extensions: tuple[Extension, ...],
        workspace: Workspace,
        journal: Journal,
        gateway: Gateway,
        model: ModelChosen,
        records: Sequence[Recorded] = (),
        state: State | None = None,
    ) -> None:
        self.id, self.lab, self.extensions, self.workspace = session_id, lab, extensions, workspace
        self.records = list(records)
        self.state = state or State()
        self.failure: JournalError | None = None
        self._journal, self._gateway, self._model = journal, gateway, model
        self._feed = Feed(len(self.records))
        self._approvals = Approvals(self.emit)
        self._running: asyncio.Task[None] | None = None
        self._partial: tuple[list[str], list[str]] | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def status(self) -> Status:
        """Return what the session does now."""
        if self._running is None or self._running.done():
            return "idle"
        return "waiting" if self._approvals.waiting else "running"

    @property
    def waiting(self) -> e.ApprovalRequested | None:
        """Return the call that waits for a person, or None."""
        return self._approvals.waiting

    @property
    def partial(self) -> tuple[int, str, str] | None:
        """Return (call, text, reasoning) of the reply that streams now, or None."""
        if self._partial is None:
            return None
        for pieces in self._partial:
            # Joined once, so that many readers of a long reply do not each join it anew.
            pieces[:] = ["".join(pieces)]
        return len(self.state.calls), self._partial[0][0], self._partial[1][0]

    @property
    def committed(self) -> int:
        """Return the journal number up to which everything is safe and may be shown."""
        return self._feed.committed

    def subscribe(self) -> Subscription:
        """Watch the session from now on. Close the subscription when done."""
        return self._feed.subscribe()

    def emit(self, event: e.Event) -> None:
        """Record one event. JournalError: an earlier one could not be written, so nothing may follow it."""
        if self.failure:
            raise self.failure
        recorded = Recorded(len(self.records) + 1, time.time(), event)
        self.state.apply(recorded.seq, event)
        self.records.append(recorded)
        if isinstance(event, e.ModelCallStarted):
            self._partial = ([], [])
        elif isinstance(event, e.ModelCallEnded | e.ModelCallFailed):
            self._partial = None
        self._feed.push(recorded)
        self._journal.append(self.id, recorded, lambda error: self._written(recorded.seq, error))
        self._watch(event)

    def prepare(self) -> dict[str, Tool]:
        """Record the model and the instructions in force, where they are not the last ones; return the tools."""
        added = hooks.gather(self.extensions, self.workspace)
        definitions = tuple(tool.definition() for tool in added.tools.values())
        instructions = e.InstructionsSet(system=added.system, tools=definitions)
        if self.state.model != self._model:
            self.emit(self._model)
        if self.state.instructions != instructions:
            self.emit(instructions)
        for failed in added.failed:
            self._hook_failed(*failed)
        return added.tools

    def start_task(self, text: str, *, language: str, sample: str = "") -> int:
        """Start a task and return its number. Raises Busy while another one runs."""
        if self.status != "idle":
            raise Busy
        tools = self.prepare()
        task = len(self.state.tasks) + 1
        self.emit(e.TaskStarted(task=task, text=clean(text), language=language, sample=sample))
        outside = (self._gateway, tools, self.extensions, self._approvals.ask)
        around = Surroundings(self.state, self.emit, self._show, *outside)
        self._running = self._loop.create_task(run_task(around))
        self._running.add_done_callback(_retrieve)
        return task

    async def stop(self) -> None:
        """End the running task at once, model and command too; returns when nothing is left of it."""
        if self._running and not self._running.done():
            # A task that is cancelled before its first step would never say that it ended.
            await asyncio.sleep(0)
            self._running.cancel()
            await asyncio.wait([self._running])

    def answer(self, call_id: str, allowed: bool) -> bool:
        """Answer an approval; False when this call does not wait for one any more."""
        return self._approvals.answer(call_id, allowed=allowed)

    def change_setting(self, name: str, value: int) -> None:
        """Change one of the session's settings. ValueError: no such setting, or out of range."""
        if name not in self.state.settings or not 0 <= value <= SETTING_MAX:
            raise ValueError(name)
        if self.state.settings[name] != value:
            self.emit(e.SettingChanged(name=name, value=value))

    async def close(self) -> None:
        """Stop what runs and let the watchers go."""
        await self.stop()
        self._feed.end()

    def _show(self, delta: e.TextDelta) -> None:
        if self._partial is not None:
            self._partial[0 if delta.kind == "text" else 1].append(delta.text)
        self._feed.push(delta)

    def _watch(self, event: e.Event) -> None:
        for name, detail in hooks.watch(self.extensions, event):
            # What fails to watch its own failure would fail for ever.
            if not isinstance(event, e.HookFailed):
                self._hook_failed(name, "on_event", detail)

    def _hook_failed(self, extension: str, hook: str, detail: str) -> None:
        self.emit(e.HookFailed(task=len(self.state.tasks), extension=extension, hook=hook, detail=detail))

    def _written(self, seq: int, error: Exception | None) -> None:
        # Called in the journal's thread; the loop may be gone while the server shuts down.
        try:
            self._loop.call_soon_threadsafe(self._commit, seq, error)
        except RuntimeError:
            pass

    def _commit(self, seq: int, error: Exception | None) -> None:
        if error is None and not self.failure:
            self._feed.commit(seq)
        elif not self.failure:
            self.failure = JournalError("journal_write", reason=type(error).__name__)
            if self._running:
                self._running.cancel()
            self._feed.end()


def _retrieve(task: "asyncio.Task[None]") -> None:
    # The page hears of a failed journal through `failure`; anything else is a fault of ours, for the log.
    error = None if task.cancelled() else task.exception()
    if error and not isinstance(error, JournalError):
        logging.getLogger(__name__).error("a task failed", exc_info=error)
