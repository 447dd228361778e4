"""The events of long tasks: the end of a stage, a checkpoint, and going on from one."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnded:
    """A stage of the task is over, so that what belongs to it may be summarised. `name` is free text, or "".

    at_once: nothing ran, so that no model call is waited for.
    """

    task: int
    name: str
    by: Literal["agent", "person"]
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved:
    """A step succeeded: the task can go on from here after a kill.

    number: from 1, over the whole session. turn: the task's turn that had succeeded. summary: the text of the summary
    in force, or "". rounds: journal numbers of the replies that began the newest rounds. workspace: the number of the
    snapshot of the files, or 0 where none was taken.
    """

    number: int
    task: int
    turn: int
    summary: str
    rounds: tuple[int, ...]
    workspace: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResumed:
    """The newest task goes on from checkpoint `number`; what came after it is no longer in the context.

    by: the server's restart, or a person who chose the checkpoint.
    """

    number: int
    task: int
    by: Literal["restart", "person"]
