"""What a kill leaves behind: a session's journal up to some event, and its files; and a process to kill."""

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from harness import events as e
from harness.journal import Journal, Recorded
from harness.replay import State, fold
from harness.request import digest
from harness.session import Session
from tests.harness_support import library, until


def left_by_a_kill(session: Session, data: Path, after: int, into: Path) -> None:
    """Let the folder `into` hold what a kill right after event `after` would have left of a session in `data`."""
    shutil.copytree(data / "sessions" / session.id, into / "sessions" / session.id, symlinks=True)
    journal = Journal(f"sqlite:///{into / 'journal.db'}")
    journal.store(session.id, session.records[:after])
    journal.close()


def state_at(records: Sequence[Recorded], seq: int) -> State:
    """Return the state after event `seq`."""
    return fold((each.seq, each.event) for each in records[:seq])


def seqs(records: Sequence[Recorded], *kinds: type[e.Event]) -> list[int]:
    """Return the journal numbers of the events of these kinds."""
    return [each.seq for each in records if isinstance(each.event, kinds)]


def assert_nothing_done_twice(records: Sequence[Recorded]) -> None:
    """No call that succeeded and stands behind a checkpoint is run again while the task goes on from there or later."""
    kept: dict[str, int] = {}
    new: dict[str, int] = {}
    at: dict[int, dict[str, int]] = {}
    for recorded in records:
        match recorded.event:
            case e.TaskStarted():
                kept, new = {}, {}
            case e.ToolStarted(name=name, arguments=arguments):
                assert f"{name} {arguments}" not in kept, f"{recorded.seq} does again what was done"
            case e.ToolEnded(name=name, arguments=arguments, ok=True):
                new[f"{name} {arguments}"] = recorded.seq
            case e.CheckpointSaved(number=number):
                kept = kept | new
                new, at[number] = {}, kept
            case e.TaskResumed(number=number):
                kept, new = at[number], {}


async def finish(session: Session) -> None:
    """Wait until nothing runs, allowing every call."""

    def idle() -> bool:
        if session.waiting:
            session.answer(session.waiting.call_id, True)
        return session.status == "idle"

    await until(idle, 60)


async def live(data: Path, address: str, session_id: str) -> None:
    """Open or create a session, and let its first sample run to the end, until killed.

    Says on stdout what stands in the context at first, then again and again how much may be shown.
    """
    async with library(data, lab="10", server=SimpleNamespace(address=address)) as opened:  # type: ignore[arg-type]
        session = await (opened.open(session_id) if session_id else opened.create(language="en"))
        said, first = 0, [session.id, len(session.records), digest(session.state.request())]
        await until(lambda: session.committed >= first[1])
        print(json.dumps(first), flush=True)
        # Without a checkpoint a task ends with a kill, and is sent again.
        if session.status == "idle" and not any(task.ended == "answered" for task in session.state.tasks):
            sample = session.lab.groups[0].samples[0]
            session.start_task(sample.task["en"], language="en", sample=sample.id)
        while session.status != "idle" or said < len(session.records):
            if session.committed > said:
                said = session.committed
                print(json.dumps([session.id, said, ""]), flush=True)
            await asyncio.sleep(0.001)


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
