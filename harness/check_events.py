"""The events of a check: the command that decides whether a task is done. `seconds` are seconds of wall time."""

from dataclasses import dataclass
from typing import Literal

# passed: it ended with exit code 0. failed: with another one. time, output, processes, memory: it was ended because it
# took too long or too much. lost: it was ended from outside. stopped: by a person. no_sandbox: nothing confines
# commands here, so it was not run.
Outcome = Literal["passed", "failed", "time", "output", "processes", "memory", "lost", "stopped", "no_sandbox"]
# After these the agent may try again.
FAILING: tuple[Outcome, ...] = ("failed", "time", "output", "processes", "memory", "lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStarted:
    """The agent has answered, and the command that decides whether the task is done begins.

    attempt: which check of the task it is, from 1. limit: seconds that it may take. changed: the file that names the
    command says something else by now than when the task began, which counts from the next task on.
    """

    task: int
    attempt: int
    command: str
    limit: int
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How a check went. exit: the command's exit code, 128 + n where signal n ended it; 0 where it was stopped.

    output: the first and the last of what it printed. back: it goes back to the agent, which works on.
    """

    task: int
    attempt: int
    command: str
    outcome: Outcome
    exit: int
    output: str
    seconds: float
    back: bool = False
    changed: bool = False
