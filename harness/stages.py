"""The end of a stage of a long task: the tool by which the agent marks one, and the button of a person."""

import json
from collections.abc import Sequence
from itertools import takewhile

from harness import events as e
from harness.checkpoints import last_results
from harness.context import Entry
from harness.messages import AssistantMessage, ToolResult, clean
from harness.problems import Problem
from harness.replay import State
from harness.session import Session
from harness.tools import Arguments, Tool

END_STAGE = "end_stage"
TRIGGER = "stage"
NAME_CHARS = 120


def end_stage_tool() -> Tool:
    """Return the tool by which the agent says that a stage of its task is over. It changes nothing by itself."""

    async def run(arguments: Arguments) -> str:
        return f"The end of the stage `{plain(arguments['name'])}` is marked."

    return Tool(
        END_STAGE,
        "Say that a stage of a long task is complete, such as reading all files or fixing one fault. Call it alone, "
        "once what the stage found out has been written down in your reply; its messages may then become a summary.",
        {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The stage in a few words."}},
            "required": ["name"],
        },
        run,
    )


def marked(state: State) -> str | None:
    """Return the name of the stage whose end the agent marked in the turn before and that was not reported yet."""
    since = max(state.stage_marked, state.resumed.seq)
    for entry in last_results(state):
        message = entry.message
        if isinstance(message, ToolResult) and message.name == END_STAGE and message.ok:
            return _name(state, message.call_id) if entry.seq > since else None
    return None


def place_of_stage(state: State, entries: Sequence[Entry]) -> int:
    """Return the place in the context behind everything that belongs to finished stages."""
    behind = next((place for place, entry in enumerate(entries) if entry.seq > state.stage_ended), len(entries))
    newest = list(takewhile(lambda entry: entry.category == "results", reversed(entries)))
    # What the model has not read yet stays, but for the word that the stage is marked.
    unread = any(entry.message.name != END_STAGE for entry in newest)
    return min(behind, len(entries) - len(newest)) if unread else behind


def end_stage(session: Session, name: str) -> None:
    """Let a person mark the end of a stage of the running task; it is compacted before the next turn.

    Problem: no task runs, or nothing in this session compacts at the end of a stage.
    """
    state = session.state
    if state.running_task() is None or session.strategy is None or not has_stages(state):
        raise Problem("no_stages")
    session.emit(e.StageEnded(task=len(state.tasks), name=plain(name), by="person"))


def has_stages(state: State) -> bool:
    """Whether the agent of this session can mark the end of a stage."""
    tools = state.instructions.tools if state.instructions else ()
    return any(tool["function"]["name"] == END_STAGE for tool in tools)


def _name(state: State, call_id: str) -> str:
    for entry in reversed(state.history):
        if isinstance(entry.message, AssistantMessage):
            call = next((call for call in entry.message.calls if call.id == call_id), None)
            return plain(json.loads(call.arguments)["name"]) if call else ""
    return ""


def plain(name: str) -> str:
    """Return the name of a stage as it is kept: one line, at most `NAME_CHARS` characters."""
    return " ".join(clean(name).split())[:NAME_CHARS]
