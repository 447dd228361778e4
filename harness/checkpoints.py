"""When a checkpoint is due, what it holds, and from which one a task goes on. Pure.

A checkpoint is behind a step that succeeded: a turn whose calls all did. So no call waits for its result there.
"""

from collections.abc import Sequence
from itertools import islice

from harness.checkpoint_events import CheckpointSaved
from harness.context import Entry
from harness.messages import AssistantMessage, ToolResult
from harness.problems import Problem
from harness.replay import State

# A task that brings the server down each time it goes on must not do so for ever.
MOST_TRIES = 5
# So long may the checkpoint of a step that has just succeeded take when the server ends.
SAVING_SECONDS = 2.0


def due(state: State) -> bool:
    """Whether the newest thing that happened in the running task is a turn whose calls all succeeded.

    Costs a look at the results of that turn, however long the history is. A sub-agent has no checkpoints: what it does
    belongs to the one call that it works for.
    """
    if state.number or not state.running_task() or state.unanswered:
        return False
    results = last_results(state)
    since = max(state.checkpoints[-1][0] if state.checkpoints else 0, state.resumed.seq)
    return bool(results) and results[0].seq > since and all(map(_succeeded, results))


def unsaved(state: State) -> bool:
    """Whether a step of a task with checkpoints has succeeded, and its own is not there yet."""
    return standing(state) is not None and due(state)


def last_results(state: State) -> list[Entry]:
    """Return the results of the newest turn of the running task, the newest first; none where another message came."""
    task, results = state.running_task(), []
    for entry in reversed(state.history):
        if not task or entry.seq < task.seq or not isinstance(entry.message, ToolResult):
            break
        results.append(entry)
    return results


def made(state: State, *, rounds: int, workspace: int) -> CheckpointSaved:
    """Return the checkpoint of this moment. rounds: how many of the newest it names. workspace: its snapshot."""
    in_force = state.in_force
    return CheckpointSaved(
        number=len(state.checkpoints) + 1, task=state.tasks[-1].task, turn=state.turn,
        summary=in_force[-1].event.summary if in_force else "",
        rounds=newest_rounds(state.context.entries, rounds), workspace=workspace,
    )  # fmt: skip


def newest_rounds(entries: Sequence[Entry], most: int) -> tuple[int, ...]:
    """Return the journal numbers of the newest replies, at most so many, in order."""
    replies = (entry.seq for entry in reversed(entries) if isinstance(entry.message, AssistantMessage))
    return tuple(reversed(tuple(islice(replies, most))))


def standing(state: State) -> CheckpointSaved | None:
    """Return the checkpoint that the newest task would go on from after a kill: its newest, or the one chosen since."""
    if not state.checkpoints or not state.tasks:
        return None
    seq, saved = state.checkpoints[-1]
    if state.resumed.seq > seq:
        saved = state.checkpoints[state.resumed.number - 1][1]
    return saved if saved.task == state.tasks[-1].task else None


def goes_on(state: State) -> CheckpointSaved | None:
    """Return the checkpoint from which a task that was cut short goes on by itself, or None where it ends instead."""
    by_itself = state.running_task() and state.settings.get("resume_by_itself") and state.resumed.tries < MOST_TRIES
    return standing(state) if by_itself else None


def chosen(state: State, number: int) -> CheckpointSaved:
    """Return checkpoint `number` of the newest task. Problem: there is none, or it belongs to an earlier task."""
    saved = state.checkpoints[number - 1][1] if 0 < number <= len(state.checkpoints) else None
    if saved is None:
        raise Problem("no_checkpoint", number=number)
    if saved.task != state.tasks[-1].task:
        raise Problem("checkpoint_old", number=number, task=saved.task)
    return saved


def _succeeded(entry: Entry) -> bool:
    return isinstance(entry.message, ToolResult) and entry.message.ok
