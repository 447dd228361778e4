"""One session: its journal, its state, its workspace copy, and the task that runs now.

`emit` is the one door: an event gets its number, is folded into the state, goes to the journal, and is
shown once it is committed. Knows nothing of the web.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Literal

from harness import checkpoints, hooks
from harness import events as e
from harness.agent import Agent
from harness.approvals import Approvals
from harness.background import in_background, settled
from harness.confirmations import Confirmations
from harness.copies.keeping import Keeper
from harness.discovery import Lab
from harness.extending import put_beside, report, watch
from harness.hooks import Extension
from harness.journal import Journal, JournalError, Recorded
from harness.looking import Looked
from harness.loop import run_task
from harness.messages import clean
from harness.model.gateway import Gateway
from harness.notes.offered import remembering
from harness.partial_reply import PartialReply
from harness.replay import State
from harness.session_events import ModelChosen
from harness.subscription import Feed, Subscription
from harness.surroundings import Surroundings
from harness.tools import Tool
from harness.watching import Happened
from harness.workspace import Workspace

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
        self.records, self.state = list(records), state or State()
        self.failure: JournalError | None = None
        self._journal, self._gateway, self._model = journal, gateway, model
        self._feed, self.keeper = Feed(len(self.records)), Keeper(workspace.root)
        self._approvals, self.confirmations = Approvals(self.emit), Confirmations(self.emit)
        self._running: asyncio.Task[None] | None = None
        self._partial, self.looked, self._loop = PartialReply(), Looked(), asyncio.get_running_loop()

    @property
    def status(self) -> Status:
        """Return what the session does now."""
        if self._running is None or self._running.done():
            return "idle"
        return "waiting" if self._approvals.waiting or self.confirmations.waiting else "running"

    @property
    def waiting(self) -> e.ApprovalRequested | None:
        """Return the call that waits for a person, or None."""
        return self._approvals.waiting

    @property
    def asking(self) -> int:
        """Return the number of the sub-agent whose call waits, 0 for the session's own agent."""
        return self._approvals.asking

    @property
    def proposed(self) -> e.SummaryProposed | None:
        """Return the summary that waits for a person, or None."""
        return self.confirmations.waiting

    @property
    def partial(self) -> tuple[int, str, str] | None:
        """Return (call, text, reasoning) of the reply that streams now, or None."""
        return self._partial.so_far()

    @property
    def strategy(self) -> hooks.Compacting | None:
        """Return how the session's context is compacted, or None where no extension does."""
        return hooks.strategy_of(self.extensions)

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
        self._partial.follow(event)
        self.keeper.follow(event)
        self._feed.push(recorded)
        self._journal.append(self.id, recorded, lambda error: self._written(recorded.seq, error))
        watch(self.extensions, self.emit, Happened(self.id, recorded, self.state, self.records))

    def prepare(self) -> dict[str, Tool]:
        """Record the model and the instructions in force, where they are not the last ones; return the tools."""
        added = self.looked.take(self.extensions, self.workspace)
        instructions = added.instructions()
        if self.state.model != self._model:
            self.emit(self._model)
        if self.state.instructions != instructions:
            self.emit(instructions)
            self.workspace = remembering(self.workspace, self.state)
        for failed in added.failed:
            report(self.state, self.emit, *failed)
        return added.tools

    def start_task(self, text: str, *, language: str, sample: str = "") -> int:
        """Start a task and return its number. Raises Busy while another one runs."""
        if self.status != "idle":
            raise Busy
        tools = self.prepare()
        task = len(self.state.tasks) + 1
        self.emit(e.TaskStarted(task=task, text=clean(text), language=language, sample=sample))
        self.go_on(tools)
        return task

    def go_on(self, tools: dict[str, Tool], files: "asyncio.Task[bool] | None" = None) -> None:
        """Run the task that the state calls running. files: whether those of a resumed one were put back."""
        outside = (self._gateway, tools, self.extensions, self._approvals.ask, self.confirmations, self.workspace)
        around = Surroundings(self.state, self.emit, self._show, *outside, self.keeper.keep_step)
        self._running = in_background(self.keeper.then(lambda: run_task(around, files)))

    def work(self, carry: Callable[[Agent], Coroutine[Any, Any, None]]) -> None:
        """Run what a person asked for between two tasks, apart from any task. Raises Busy while something runs."""
        if self.status != "idle":
            raise Busy
        beside = partial(put_beside, self.extensions, self.state, self.emit)
        agent = Agent(self.state, self.emit, self._gateway, self.confirmations, beside=beside)
        self._running = in_background(carry(agent))

    async def stop(self) -> None:
        """End the running task at once, model and command too; returns when nothing is left of it."""
        if self._running and not self._running.done():
            # A task that is cancelled before its first step would never say that it ended.
            await asyncio.sleep(0)
            self._running.cancel()
            await asyncio.wait([self._running])

    def answer(self, call_id: str, allowed: bool, child: int = 0) -> bool:
        """Answer an approval, of sub-agent `child`; False when this call does not wait for one any more."""
        return self._approvals.answer(call_id, allowed=allowed, child=child)

    async def close(self) -> None:
        """Stop what runs and let the watchers go. A task that has a checkpoint gets no end: nobody stopped it."""
        await settled(lambda: self.status == "idle" or not checkpoints.unsaved(self.state), checkpoints.SAVING_SECONDS)
        if self.state.running_task() and checkpoints.standing(self.state):
            self.failure = self.failure or JournalError("server_stops")
        await self.stop()
        await self.keeper.done()
        self._feed.end()

    def _show(self, delta: e.TextDelta) -> None:
        self._partial.add(delta)
        self._feed.push(delta)

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
