"""The command that decides whether a task is done: where a workspace names it, and which one counts for a task.

What stood in the instructions when the task began counts, so nobody can weaken the check while it is worked on.
"""

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal, get_args

from harness.check_events import FAILING
from harness.coding_tools.text_file import open_regular, why
from harness.messages import AssistantMessage, clean
from harness.records import CheckRecord
from harness.replay import State
from harness.sources import Source
from harness.tools import ToolError
from harness.workspace import Workspace

FILE = ".context-lab/verify.toml"
SECONDS, MOST_SECONDS = 60, 300
# A person reads the command before the folder is trusted, so all of it must fit a line of the page.
MOST_BYTES, MOST_CHARS = 16_384, 200
# How long it may take stands in front of the command, so that no command can say otherwise.
_TEXT = """\
Whether a task is done is decided by one command. The harness runs it by itself in the workspace when you answer, for \
at most {seconds} s. If it fails, you get what it printed and work on. A change of `{file}` counts once the \
user has accepted it. The command:
{command}"""
_SECONDS = re.compile(r"[^\n]*?for at most (\d{1,3}) s\.")

# Why nothing is checked, as codes of the catalogue.
NoCheck = Literal[
    "check_none", "check_file", "check_large", "check_encoding", "check_toml", "check_key", "check_command",
    "check_long", "check_seconds",
]  # fmt: skip
# "" where nothing was to be checked. stale: it passed, but the agent went on afterwards. unfinished: it did not come to
# its end. denied: it failed, and did not go back because a person had denied a call. Where none ran: untrusted, or why
# there was none to run; not_run: there was one.
Says = Literal[
    "", "passed", "failed", "denied", "stopped", "no_sandbox", "stale", "unfinished", "untrusted", "not_run", NoCheck
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks say of a task that has ended.

    back: how often a failure went back to the agent. last: the number of the newest check, from 1; 0 where none ran.
    """

    says: Says
    back: int
    last: int


@dataclass(frozen=True, slots=True)
class Check:
    """A command for bash, and how many seconds it may take."""

    command: str
    seconds: int = SECONDS

    @property
    def wanted(self) -> str:
        """Return what a person accepts, in one text: how long it may take, and the command."""
        return f"{self.seconds} s: {self.command}"


def read_check(workspace: Workspace) -> Check | tuple[NoCheck, str]:
    """Return the check that the workspace names, or a code of the catalogue for why there is none, and its detail.

    Blocking.
    """
    try:
        path = workspace.resolve(FILE)
        if not path.exists():
            return "check_none", ""
        with open_regular(path) as stream:
            data = stream.read(MOST_BYTES + 1)
    except (OSError, ToolError) as error:
        return "check_file", why(error)
    if len(data) > MOST_BYTES:
        return "check_large", f"{MOST_BYTES:,}"
    try:
        return _understood(tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n")))
    except UnicodeDecodeError:
        return "check_encoding", ""
    except (ValueError, RecursionError) as error:
        return "check_toml", str(error)


def check_source(workspace: Workspace) -> Source:
    """Return what the agent is told of the check; without one, what is wrong. Blocking."""
    found = read_check(workspace)
    if not isinstance(found, Check):
        return Source("check", FILE, "", *found)
    if not workspace.accepts("check", FILE, found.wanted):
        return Source("check", FILE, "", "untrusted", found.command, wanted=found.wanted)
    text = _TEXT.format(seconds=found.seconds, file=FILE, command=found.command)
    return Source("check", FILE, text, detail=found.command)


def in_force(state: State, task: int) -> Check | None:
    """Return the check that counts for a task: the one in the instructions when it began.

    What an imported file says of its commands is not run.
    """
    began = state.tasks[task - 1].seq
    made = next((each.event for each in reversed(state.instructed) if state.imported < each.seq < began), None)
    for told in made.sources if made else ():
        seconds = _SECONDS.match(made.system[told.start : told.end]) if made else None
        if told.kind == "check" and not told.problem and seconds:
            return Check(told.detail, min(int(seconds[1]), MOST_SECONDS))
    return None


def checks_of(state: State, task: int, before: int | None = None) -> list[CheckRecord]:
    """Return the checks of a task, in order; before: only those that began before this journal number."""
    return [each for each in state.checks if each.begun.task == task and (before is None or each.seq < before)]


def went_back(state: State, task: int) -> int:
    """Return how often a failure went back to the agent in a task, since it began or went on from a checkpoint."""
    own = (each for each in checks_of(state, task) if each.seq > state.resumed.seq)
    return sum(1 for each in own if each.result and each.result.back)


def was_denied(state: State, task: int, before: int | None = None) -> bool:
    """Say whether a person denied a call of a task, since it began or went on from a checkpoint.

    before: as for `checks_of`.
    """
    began = max(state.tasks[task - 1].seq, state.resumed.seq)
    return any(began < seq and (before is None or seq < before) for seq in reversed(state.denials))


def verdict(state: State, task: int, before: int, *, answered: bool = True) -> Verdict:
    """Return what the checks say of a task that ended at journal number `before`.

    answered: with an answer; what ended without one was not to be checked.
    """
    made = checks_of(state, task, before)
    if not made:
        return Verdict(_why_none(state, task) if answered else "", 0, 0)
    back = sum(1 for each in made if each.result and each.result.back)
    return Verdict(_says(state, made[-1], before), back, made[-1].begun.attempt)


def _why_none(state: State, task: int) -> Says:
    """Return why no check ran for a task: by what the instructions said when it began."""
    began = state.tasks[task - 1].seq
    made = next((each.event for each in reversed(state.instructed) if each.seq < began), None)
    told = next((each for each in made.sources if each.kind == "check"), None) if made else None
    if told is None:
        return ""
    # What an imported file gives as the reason may be any text.
    return told.problem if told.problem in ("untrusted", *get_args(NoCheck)) else "not_run"  # type: ignore[return-value]


def _says(state: State, last: CheckRecord, before: int) -> Says:
    newest = last.result
    if newest is None:
        return "unfinished"
    if newest.outcome in FAILING:
        return "denied" if not newest.back and was_denied(state, newest.task, last.seq) else "failed"
    place = bisect_right(state.history, last.seq, key=lambda entry: entry.seq)
    since = (entry for entry in state.history[place:] if entry.seq < before)
    if newest.outcome == "passed" and any(isinstance(entry.message, AssistantMessage) for entry in since):
        return "stale"
    return newest.outcome  # type: ignore[return-value]


def _understood(table: dict[str, object]) -> Check | tuple[NoCheck, str]:
    if unknown := [name for name in table if name not in ("command", "seconds")]:
        return "check_key", clean(unknown[0])
    command, seconds = table.get("command"), table.get("seconds", SECONDS)
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "check_command", ""
    if len(command) > MOST_CHARS:
        return "check_long", f"{MOST_CHARS:,}"
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 1 <= seconds <= MOST_SECONDS:
        return "check_seconds", str(seconds)
    return Check(clean(command.strip()), seconds)
