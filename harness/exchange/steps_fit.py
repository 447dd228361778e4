"""Whether a session could have ended a stage, saved a checkpoint or gone on from one, as a file says it did."""

from harness import checkpoints, stages
from harness import events as e
from harness.replay import State


def stage_fits(state: State, event: e.StageEnded) -> bool:
    """Whether the stage can have ended here. The agent marks one by a call of its tool that was just answered."""
    if event.by == "person":
        waits = not event.at_once or state.running_task() is None
        return stages.has_stages(state) and event.name == stages.plain(event.name) and waits
    begun = not state.unanswered and state.running_task() is not None
    return begun and event.name == stages.marked(state) and not event.at_once


def checkpoint_fits(state: State, event: e.CheckpointSaved) -> bool:
    """Whether a step has just succeeded, and the checkpoint says what stood there then."""
    before = checkpoints.standing(state)
    if not checkpoints.due(state) or event.workspace not in (0, event.number, before.workspace if before else 0):
        return False
    return event == checkpoints.made(state, rounds=len(event.rounds), workspace=event.workspace)


def resume_fits(state: State, event: e.TaskResumed) -> bool:
    """Whether the newest task can go on from this checkpoint: by itself after a kill, or chosen while nothing ran."""
    if not 0 < event.number <= len(state.checkpoints) or state.checkpoints[event.number - 1][1].task != event.task:
        return False
    if event.by == "person":
        return state.running_task() is None
    return state.running_task() is not None and checkpoints.standing(state) == state.checkpoints[event.number - 1][1]
