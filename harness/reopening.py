"""What becomes of a task that a kill cut short, when its session is opened again; and going on from a checkpoint.

A task goes on by itself where its session makes checkpoints and is set to. Else it ends as interrupted.
"""

import asyncio
from typing import Literal

from harness import checkpoints
from harness import events as e
from harness.children import Emit, emit_inside
from harness.copies import snapshots
from harness.loop import results_for_open_calls
from harness.messages import AssistantMessage
from harness.problems import Problem
from harness.replay import State
from harness.session import Busy, Session

INTERRUPTED = "The server stopped before this had ended. What it had done until then may stand."


async def settle(session: Session) -> None:
    """Let a task that a kill cut short go on from its checkpoint, or give it its end, so that the history is valid."""
    if not session.state.running_task():
        return
    for number, child in session.state.children.items():
        if child.state.running_task():
            inside = emit_inside(session.emit, number)
            inside(_end(child.state, answered=_settle_calls(child.state, inside)))
    answered = _settle_calls(session.state, session.emit)
    if answered or not await _goes_on(session):
        session.emit(_end(session.state, answered=answered))


async def resume(session: Session, number: int, by: Literal["restart", "person"]) -> None:
    """Let the newest task go on from checkpoint `number`, with the files of that time.

    Raises Busy while something runs; Problem where there is no such checkpoint or its files were not kept: then nothing
    has changed.
    """
    saved = checkpoints.chosen(session.state, number)
    try:
        await asyncio.to_thread(snapshots.whole, session.keeper.store, snapshots.step(saved.workspace))
    except Problem as error:
        raise Problem("checkpoint_files", number=number) from error
    # The extensions may read files: not in the event loop.
    await session.looked.look(session.extensions, session.workspace)
    if session.status != "idle":
        raise Busy
    checkpoints.chosen(session.state, number)
    tools = session.prepare()
    # First the event, then the files: a kill between the two is met by another resume.
    session.emit(e.TaskResumed(number=number, task=saved.task, by=by))
    session.go_on(tools, session.keeper.put_back(saved.workspace))


def _settle_calls(state: State, emit: Emit) -> bool:
    """Give every open call its result; return whether the task had been answered."""
    for result in results_for_open_calls(state, INTERRUPTED):
        emit(result)
    last = state.history[-1]
    # An answer from before a resume is no answer to what was asked again.
    return isinstance(last.message, AssistantMessage) and not last.message.calls and last.seq > state.resumed.seq


def _end(state: State, *, answered: bool) -> e.TaskEnded:
    reason = "answered" if answered else "interrupted"
    return e.TaskEnded(task=state.tasks[-1].task, reason=reason, seconds=0.0)


async def _goes_on(session: Session) -> bool:
    """Let the task go on by itself from its checkpoint; whether it does."""
    if not (saved := checkpoints.goes_on(session.state)):
        return False
    try:
        await resume(session, saved.number, "restart")
    except Problem:
        return False
    return True
