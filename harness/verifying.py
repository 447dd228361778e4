"""Runs the check of a task that has been answered, and sends a failure back to the agent.

The command runs as the tool `bash` runs one, but without asking: a person trusts the folder that names it. Where
nothing confines commands it does not run.
"""

import asyncio
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from harness import events as e
from harness.agent import Agent
from harness.check_events import FAILING, Outcome
from harness.checks import FILE, Check, in_force, read_check, was_denied, went_back
from harness.coding_tools.shell import run_command
from harness.coding_tools.text_file import why
from harness.escaping import escape_tags
from harness.messages import clean
from harness.sandbox.command import Outcome as Ended
from harness.tools import ToolError
from harness.workspace import Workspace

# Of what the command printed, the first and the last are kept: together so many characters.
OUTPUT_CHARS = 6_000
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Went:
    """How a command went: its outcome, its exit code as `Verified` has it, and what it printed."""

    outcome: Outcome
    exit: int = 0
    output: str = ""


async def verify(agent: Agent, wording: Path, attempts: int = ATTEMPTS) -> str | None:
    """Run the check of the agent's task. Return what the agent is told where it failed, else None.

    wording: a TOML file with one table a language. attempts: so often at most a failure goes back in a task; the next
    one ends it. None also where no check counts for the task, and where a person denied a call in it: the agent would
    only ask for the same again.
    """
    check, workspace = in_force(agent.state, agent.task.task), agent.workspace
    if not check or not workspace:
        return None
    if not await asyncio.to_thread(workspace.accepts, "check", FILE, check.wanted):
        return None
    changed = await asyncio.to_thread(read_check, workspace) != check
    begun, began = agent.check_begins(check, changed=changed), time.monotonic()
    try:
        went = await _run(workspace, check)
    except asyncio.CancelledError:
        _report(agent, begun, Went("stopped"), began, back=False)
        raise
    number = went_back(agent.state, agent.task.task) + 1
    back = went.outcome in FAILING and number <= attempts and not was_denied(agent.state, agent.task.task)
    _report(agent, begun, went, began, back=back)
    if not back:
        return None
    words = await asyncio.to_thread(_words, wording, agent.task.language)
    return told(words, check, went, f"{number}/{attempts}")


def told(words: dict[str, str], check: Check, went: Went, count: str) -> str:
    """Return what the agent is told of a failure: the command, how it ended, what it printed, as data, and `count`."""
    how = words[went.outcome].format(exit=went.exit, seconds=check.seconds)
    output = escape_tags(went.output.strip("\n")) or words["nothing"]
    return words["text"].format(command=check.command, how=how, output=output, count=count)


async def _run(workspace: Workspace, check: Check) -> Went:
    if workspace.sandbox.kind == "none":
        return Went("no_sandbox")
    try:
        return went_of(await run_command(workspace, workspace.sandbox, check.command, check.seconds))
    except (OSError, ToolError) as error:
        return Went("lost", output=clean(why(error)))


def went_of(ended: Ended) -> Went:
    """Return how a command went that has ended so."""
    output = clean(ended.output.text(OUTPUT_CHARS))
    if ended.end != "exit":
        return Went(ended.end, output=output)
    code = ended.code if ended.code >= 0 else 128 - ended.code
    return Went("failed" if code else "passed", code, output)


def _report(agent: Agent, begun: e.CheckStarted, went: Went, began: float, *, back: bool) -> None:
    spent = time.monotonic() - began
    agent.verified(begun, went.outcome, exit=went.exit, output=went.output, seconds=spent, back=back)


def _words(path: Path, language: str) -> dict[str, str]:
    tables = tomllib.loads(path.read_text("utf-8"))
    return tables.get(language, tables["en"])
