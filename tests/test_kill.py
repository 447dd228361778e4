"""A second process is killed again and again in the middle of a task with cuts, checkpoints and spilled results.

Each restart must find the context that the journal says, nothing that was shown may be lost, and no file may lie about
that no event names. `LAB_TEST_KILLS` sets how often (200 were run by hand; CI runs fewer).
"""

import multiprocessing
import multiprocessing.context
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from harness import events as e
from harness.journal import Journal, Recorded
from harness.replay import fold
from harness.request import digest
from harness.spills import FOLDER, named
from tests.harness_support import assert_digests, running
from tests.kill_child import child

KILLS = int(os.environ.get("LAB_TEST_KILLS", "25"))
# A kill falls within so many events of a process, so that a busy machine is killed at the same places; the seconds
# behind it spread it over what lies between two events.
MOST_EVENTS, LATEST = 70, 0.03

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")


def read(data: Path, session_id: str) -> list[Recorded]:
    journal = Journal(f"sqlite:///{data / 'journal.db'}")
    try:
        return journal.read(session_id)
    finally:
        journal.close()


def check(data: Path, session_id: str, told: list[tuple[str, str, int, str]]) -> list[Recorded]:
    """Compare what the killed process had said with its journal; return the journal."""
    records = read(data, session_id)
    numbered = [(each.seq, each.event) for each in records]
    assert [seq for seq, _ in numbered] == list(range(1, len(records) + 1))
    for kind, _, number, said in told:
        if kind == "opened":
            assert digest(fold(numbered[:number]).request()) == said, "a restart finds the context of the journal"
        else:
            assert number <= len(records), "an event that was shown is gone"
    assert_digests(records)
    return records


def until(pipe: Connection, number: int) -> list[tuple[str, str, int, str]]:
    """Return what the process says until it has shown event `number`, or is done."""
    told = []
    while not told or (told[-1][0] != "done" and told[-1][2] < number):
        told.append(pipe.recv())
    return told


def drain(pipe: Connection) -> list[tuple[str, str, int, str]]:
    told = []
    try:
        while pipe.poll():
            told.append(pipe.recv())
    except EOFError:
        pass
    return told


@pytest.fixture
def starter() -> "Iterator[multiprocessing.context.ForkServerContext]":
    """What starts the children; its own two processes end with the test, since others look for what is left over."""
    # Not where pytest collects the file: Windows has no fork server.
    from multiprocessing import forkserver, resource_tracker

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.kill_child"])
    yield context
    forkserver._forkserver._stop()
    resource_tracker._resource_tracker._stop()


@pytest.mark.timeout(900)
def test_a_killed_process_loses_nothing_wherever_it_is_killed(
    tmp_path: Path, starter: "multiprocessing.context.ForkServerContext"
) -> None:
    chance, left, sessions = random.Random(7), KILLS, 0
    seen: set[str] = set()
    with running(delay=0.002) as server:
        while left > 0:
            data, session_id, done = tmp_path / str(sessions), "", False
            data.mkdir()
            sessions += 1
            while not done:
                ours, theirs = starter.Pipe(duplex=False)
                process = starter.Process(target=child, args=(data, server.address, session_id, theirs))
                process.start()
                theirs.close()
                first = ours.recv()
                assert first[0] == "opened"
                kill = left > 0
                told = [first]
                if kill:
                    told += until(ours, first[2] + chance.randint(0, MOST_EVENTS))
                    time.sleep(chance.uniform(0, LATEST))
                    if process.is_alive():
                        os.kill(process.pid, signal.SIGKILL)
                        left -= 1
                process.join(120)
                told += drain(ours)
                session_id = first[1]
                done = told[-1][0] == "done"
                records = check(data, session_id, told)
                seen |= {type(each.event).__name__ for each in records}
            swept = {path.name for path in (data / "sessions" / session_id / "workspace" / FOLDER).glob("*")}
            assert swept <= {Path(name).name for name in named(records)}, "a file that no event names"
            # Before its first checkpoint a task that is killed ends as interrupted; any other goes on.
            ends = [task.ended for task in fold((each.seq, each.event) for each in records).tasks]
            assert ends.count("answered") == 2 and set(ends) <= {"answered", "interrupted"}
    assert {"ContextCompacted", "CheckpointSaved", "ResultsDecided", "TaskResumed"} <= seen
    assert any(
        isinstance(each.event, e.ResultsDecided) and any(d.file for d in each.event.decisions) for each in records
    )
