"""What became of a sub-agent, and its events as a list of their own. Runs nothing."""

from collections.abc import Callable, Sequence
from typing import overload

from harness import events as e
from harness.messages import AssistantMessage
from harness.recorded import Recorded
from harness.replay import Child, State
from harness.spent import Spent

Emit = Callable[[e.Event], object]
# Of a sub-agent's answer, in characters: all that it read stays with it, and its answer must not bring it back.
ANSWER_CHARS = 8_000
_NO_ANSWER = {
    "stopped": "The user stopped it.",
    "step_limit": "It used up its turns.",
    "repeated_call": "It made the same call again and again.",
    "failed": "Its model call failed.",
    "interrupted": "The server stopped.",
}


def answer_of(state: State) -> str | None:
    """Return a sub-agent's final answer, bounded, or None where it has none."""
    if not state.tasks or state.tasks[-1].ended != "answered":
        return None
    last = state.history[-1].message
    text = last.text.strip() if isinstance(last, AssistantMessage) else ""
    left = len(text) - ANSWER_CHARS
    return f"{text[:ANSWER_CHARS]}\n[{left} more characters left out]" if left > 0 else text or None


def why_none(state: State) -> str:
    """Return what the model is told of a sub-agent that ended without an answer."""
    reason = _NO_ANSWER.get(state.tasks[-1].ended if state.tasks else "", "")
    return f"The sub-agent ended without an answer. {reason} What it did until then may stand.".replace("  ", " ")


def answers_of(state: State) -> dict[str, str]:
    """Return the answers of sub-agents whose calls have no result yet, by the id of the call."""
    waiting = [call_id for call_id in state.unanswered if call_id in state.child_of]
    found = ((call_id, answer_of(state.child_of[call_id].state)) for call_id in waiting)
    return {call_id: text for call_id, text in found if text is not None}


def emit_inside(emit: Emit, number: int) -> Emit:
    """Return what emits an event as one of sub-agent `number`."""
    return lambda event: emit(e.ChildEvent(child=number, event=event))


def spent_inside(state: State) -> Spent:
    """Return what the calls of all sub-agents came to."""
    return sum((each.state.spent for each in state.children.values()), Spent())


class ChildRecords(Sequence[Recorded]):
    """The events of a sub-agent, numbered from 1, out of the records of its session."""

    def __init__(self, records: Sequence[Recorded], child: Child, count: int | None = None) -> None:
        """count: so many of them, None for all."""
        self._records, self._seqs = records, child.seqs
        self._count = len(child.seqs) if count is None else count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Recorded: ...
    @overload
    def __getitem__(self, index: slice) -> list[Recorded]: ...
    def __getitem__(self, index: int | slice) -> Recorded | list[Recorded]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._count))]
        place = range(self._count)[index]
        recorded = self._records[self._seqs[place] - 1]
        assert isinstance(recorded.event, e.ChildEvent), "its events are wrapped in the session's journal"
        return Recorded(place + 1, recorded.time, recorded.event.event)
