"""Sub-agents in tests: what their events say, and a session of lab 04 with a script of its own."""

import asyncio
from collections.abc import Iterable, Sequence

from harness import events as e
from harness.children import ChildRecords
from harness.recorded import Recorded
from harness.replay import Child, State, fold, rebuild
from harness.session import Session
from tests.harness_support import ROOT, Recorder

HANDED = "Give each of the five logs to an explorer. Which delays have a confirmed cause, and which are only suspected?"
ALONE = "Read the five logs yourself. Which delays have a confirmed cause, and which are only suspected?"
FIXER = "Let a fixer find out why a child of twelve pays the full fare, and put it right."


def scripted(folder: object, script: str, delay: float = 0) -> Recorder:
    """The offline model with a script that comes before those of the labs, not started."""
    own = folder / "offline.toml"  # type: ignore[operator]
    own.write_text(script, "utf-8")
    return Recorder([own, *sorted((ROOT / "labs").glob("*/offline.toml"))], delay=delay, record=True)


def inside(session: Session, *kinds: type[e.Event]) -> list[tuple[int, e.Event]]:
    """The events of these kinds in sub-agents, each with its sub-agent's number, in order."""
    wrapped = [each.event for each in session.records if isinstance(each.event, e.ChildEvent)]
    return [(each.child, each.event) for each in wrapped if isinstance(each.event, kinds)]


def numbered(records: Iterable[Recorded]) -> list[tuple[int, e.Event]]:
    return [(each.seq, each.event) for each in records]


def assert_valid(state: State) -> None:
    """No call waits, each has one result, and no sub-agent goes on without its agent."""
    assert not state.unanswered
    assert state.running_task() or not any(child.state.running_task() for child in state.children.values())
    for own in (state, *(child.state for child in state.children.values())):
        assert not own.unanswered and own.call_ids == set(own.results)
        answered = [entry.message.call_id for entry in own.history if entry.category == "results"]
        assert len(answered) == len(set(answered))


def assert_sent(session: Session, sent: Sequence[bytes]) -> int:
    """Each request of each sub-agent is rebuilt as the server got it; return how many there were."""
    events, count = numbered(session.records), 0
    for number, child in session.state.children.items():
        for call in child.state.calls:
            assert rebuild(events, call.call, number).body() in sent, f"call {call.call} of {number}"
            count += 1
    return count


def assert_folds_alike(session: Session) -> None:
    """A fold of the journal finds each sub-agent's context as it was, message by message."""
    again = fold(numbered(session.records))
    assert again.children.keys() == session.state.children.keys()
    for number, child in session.state.children.items():
        assert again.children[number].state.request().body() == child.state.request().body()
        assert again.children[number].state.settings == child.state.settings


def own_records(session: Session, child: Child) -> ChildRecords:
    return ChildRecords(session.records, child)


async def finish(session: Session, *, allow: bool = True) -> None:
    """Wait until nothing runs, answering every approval the same way, be it a sub-agent's or not."""
    async with asyncio.timeout(60):
        while session.status != "idle":
            if session.waiting:
                session.answer(session.waiting.call_id, allow, session.asking)
            await asyncio.sleep(0.005)
