"""A session as one trajectory of ATIF v1.7, the Agent Trajectory Interchange Format, sub-agents inside it.

What the format has no field for stands in an `extra`: the real figures with their units. Token fields hold what a
provider reported, and nothing else. https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md
"""

from collections.abc import Sequence
from typing import Any

from harness import events as e
from harness.exporting.masked import masked
from harness.exporting.trajectory import Trajectory
from harness.problems import Problem
from harness.recorded import Recorded
from harness.replay import State

SCHEMA = "ATIF-v1.7"
AGENT, VERSION = "context-lab", "0.1.0"
NOTES = (
    "Steps with is_copied_context repeat what the model still reads after its context was replaced, so that the next "
    "request can be rebuilt; final_metrics leaves them out, and summary calls too, which stand with their compaction. "
    "Token fields hold only what the provider reported. Sizes in `extra` are characters of JSON, and tokens that "
    "Context Lab estimated (o200k_base). What looks like a secret is masked. A tool's result is what the model first "
    "read of it; where that was shortened, its `extra` has the whole."
)


def trajectory_of(session: str, records: Sequence[Recorded]) -> dict[str, Any]:
    """Return the trajectory of a session as a value of JSON, every text in it masked.

    session: its id. records: all of its events, in order. Problem: nothing happened in it yet.
    """
    state = State()
    own = Trajectory(session)
    inside: dict[int, Trajectory] = {}
    for recorded in masked(records):
        state.apply(recorded.seq, recorded.event)
        whose, event = state.whose(recorded.event)
        if isinstance(event, e.ChildStarted):
            inside[event.child] = Trajectory(f"{session}-sub-agent-{event.child}")
            own.hand_on(event.call_id, inside[event.child].id)
        elif whose is state:
            own.take(recorded.seq, recorded.time, event, state)
        else:
            inside[whose.number].take(len(state.children[whose.number].seqs), recorded.time, event, whose)
    if not state.history:
        raise Problem("export_nothing")
    document = _document(session, own, state)
    children = [_document(session, each, state.children[n].state) for n, each in inside.items() if each.steps]
    if children:
        document["subagent_trajectories"] = children
    own.keep_references({child["trajectory_id"] for child in children})
    return document


def _document(session: str, made: Trajectory, state: State) -> dict[str, Any]:
    started, model, told = state.started, state.model, state.instructions
    agent: dict[str, Any] = {"name": AGENT, "version": VERSION}
    if model and model.model:
        agent["model_name"] = model.model
    if told and told.tools:
        agent["tool_definitions"] = list(told.tools)
    about: dict[str, Any] = {"settings": dict(state.settings), "extensions": list(state.extensions)}
    if started:
        about |= {"lab": started.lab, "language": started.language}
    if model:
        about |= {"provider": model.provider, "window_tokens": model.window}
    return {
        "schema_version": SCHEMA,
        "session_id": session,
        "trajectory_id": made.id,
        "agent": agent | {"extra": about},
        "steps": made.steps,
        "notes": NOTES,
        "final_metrics": made.final_metrics(),
        "extra": {"tasks": len(state.tasks), "compactions": len(state.compactions)},
    }
