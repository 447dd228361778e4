"""Runs a sub-agent for one call: a context of its own, the tools of its role, and its answer as the call's result.

It is part of the session: its events go into the session's journal, its approvals to the same person, and Stop ends
it with the task that it works for.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from harness import events as e
from harness.children import answer_of, emit_inside, why_none
from harness.delegation import Delegation
from harness.messages import clean
from harness.replay import State
from harness.sources import joined
from harness.surroundings import Surroundings
from harness.tools import Tool, ToolError

# So many sub-agents are started for the calls of one reply, and for one task.
MOST_OF_REPLY, MOST_OF_TASK = 8, 40


async def delegate(
    around: Surroundings, run: Callable[[Surroundings], Awaitable[None]], call_id: str, wanted: Delegation
) -> str:
    """Let a sub-agent do what is `wanted` for a call and return its answer. ToolError: it has none.

    run: runs the task of its surroundings to its end.
    """
    parent, number = around.state, len(around.state.children) + 1
    task, language = parent.tasks[-1].task, parent.tasks[-1].language
    if refused := too_many(parent):
        raise ToolError(refused)
    around.emit(e.ChildStarted(task=task, child=number, call_id=call_id, role=clean(wanted.role)))
    child, emit = parent.children[number].state, emit_inside(around.emit, number)
    tools, (system, told) = allowed(around.tools, wanted), joined(wanted.sources)
    emit(e.InstructionsSet(system=system, tools=tuple(tool.definition() for tool in tools.values()), sources=told))
    emit(e.TaskStarted(task=1, text=clean(wanted.text), language=language))
    await run(
        replace(
            around,
            state=child,
            emit=emit,
            # Its reply is shown once it is whole.
            show=lambda delta: None,
            tools=tools,
            # Whether the task is done is asked of the agent that has it, and so is what is compacted at its end.
            extensions=tuple(replace(each, on_stop=None) for each in around.extensions),
            approve=partial(around.approve, child=number),
            keep_step=None,
        )
    )
    if (answer := answer_of(child)) is None:
        raise ToolError(why_none(child))
    return answer


def too_many(state: State) -> str:
    """Return why no further sub-agent is started now, as the model is told, or "" where one may be."""
    task, reply = state.tasks[-1].task, state.calls[-1].seq if state.calls else 0
    seqs = [child.seq for child in state.children.values() if child.event.task == task]
    if len(seqs) >= MOST_OF_TASK:
        return (
            f"Not started: this task has had {MOST_OF_TASK} sub-agents, which is the most. Do the rest yourself, or "
            "answer with what you know and say what is missing."
        )
    if sum(seq > reply for seq in seqs) >= MOST_OF_REPLY:
        return (
            f"Not started: one reply may start {MOST_OF_REPLY} sub-agents, and this one has. Read their answers; what "
            "is still needed then, hand on in your next reply, in fewer and larger pieces."
        )
    return ""


def allowed(tools: dict[str, Tool], wanted: Delegation) -> dict[str, Tool]:
    """Return those of `tools` that a sub-agent gets: what its role names, else all that only look; none delegates."""
    names = wanted.tools
    return {
        name: tool
        for name, tool in tools.items()
        if not tool.delegate and (name in names if names is not None else not tool.asks)
    }
