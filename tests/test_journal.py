"""The journal: nothing is lost or reordered, and what was shown survives a kill."""

import os
import secrets
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness import events as e
from harness.journal import Journal, JournalError, Recorded, decode, encode
from harness.session_list import read_sessions
from tests.session_events_support import Story


def story() -> Story:
    told = Story()
    told.task("第一个任务", "result \u0000 \u2028 😀", "answer")
    told.emit(e.SettingChanged(name="budget", value=900))
    told.emit(e.CompactionRefused(task=1, strategy="s", reason="not_smaller"))
    return told


def address(folder: Path) -> str:
    return f"sqlite:///{folder}/journal.db"


def test_a_postgresql_journal_is_the_same() -> None:
    if not (database := os.environ.get("LAB_TEST_DATABASE")):
        pytest.skip("LAB_TEST_DATABASE names no PostgreSQL database")
    session, records = secrets.token_hex(8), [Recorded(seq, seq / 7, event) for seq, event in story().events]
    journal = Journal(database)
    assert append(journal, session, records) == [None] * len(records)
    assert append(journal, session, records[:1]) != [None], "a number is given once"
    journal.close()
    again = Journal(database)
    assert again.read(session) == records
    assert session in [each for each, _ in again.read_kind("SessionStarted")]
    other = f"{session}-2"
    again.store(other, records)
    assert again.read(other) == records and again.length(other) == len(records)
    assert [row.seq for row in again.rows([session, other], ["TaskStarted"], after=3)] == [4, 4]
    assert [row.seq for row in again.rows([other], after=2, most=3)] == [3, 4, 5]
    assert again.count([session, other], ["TaskStarted"]) == {(session, "TaskStarted"): 1, (other, "TaskStarted"): 1}
    newest = dict(again.newest(but="CompactionRefused"))
    assert newest[session] == newest[other] == records[-2].time
    assert read_sessions(again, {}, search="第一个任务").sessions[0].tasks == 1
    again.delete(session)
    again.delete(other)
    assert again.length(session) == again.length(other) == 0 and session not in dict(again.newest(but=""))
    again.close()


def append(journal: Journal, session: str, records: list[Recorded]) -> list[Exception | None]:
    done, results = threading.Event(), []

    def note(error: Exception | None) -> None:
        results.append(error)
        if len(results) == len(records):
            done.set()

    for recorded in records:
        journal.append(session, recorded, note)
    assert done.wait(20)
    return results


def test_every_event_comes_back_equal_and_in_order(tmp_path: Path) -> None:
    records = [Recorded(seq, seq / 7, event) for seq, event in story().events]
    journal = Journal(address(tmp_path))
    assert append(journal, "a", records) == [None] * len(records)
    append(journal, "b", records[:2])
    assert journal.read("a") == records
    assert journal.read("b") == records[:2]
    assert journal.read("none") == []
    assert [session for session, _ in journal.read_kind("SessionStarted")] == ["a", "b"]
    journal.close()


def test_close_commits_what_is_queued(tmp_path: Path) -> None:
    records = [Recorded(seq, 0.0, e.SettingChanged(name="n", value=seq)) for seq in range(1, 3001)]
    journal = Journal(address(tmp_path))
    for recorded in records:
        journal.append("a", recorded, lambda error: None)
    journal.close()
    again = Journal(address(tmp_path))
    assert again.read("a") == records
    again.close()


def test_the_same_number_twice_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    first = Recorded(1, 0.0, e.SettingChanged(name="n", value=1))
    journal = Journal(address(tmp_path))
    append(journal, "a", [first])
    assert append(journal, "a", [Recorded(1, 0.0, e.SettingChanged(name="n", value=2))]) != [None]
    assert journal.read("a") == [first]
    journal.close()


def test_a_killed_process_loses_no_committed_event(tmp_path: Path) -> None:
    code = """
import sys
from harness.journal import Journal, Recorded
from harness.events import SettingChanged
journal = Journal(sys.argv[1])
for seq in range(1, 10_000_000):
    journal.append("a", Recorded(seq, 0.0, SettingChanged(name="n", value=seq)),
                   lambda error, seq=seq: print(seq, flush=True))
"""
    process = subprocess.Popen([sys.executable, "-c", code, address(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    for _ in range(200):
        process.stdout.readline()
    process.kill()
    shown = 200 + len(process.stdout.read().split("\n")[:-1])
    process.wait()
    process.stdout.close()
    journal = Journal(address(tmp_path))
    values = [recorded.seq for recorded in journal.read("a")]
    journal.close()
    assert len(values) >= shown >= 200
    assert values == list(range(1, len(values) + 1))


@pytest.mark.parametrize(
    ("where", "code"),
    [("nonsense", "journal_open"), ("sqlite:////no/such/folder/x.db", "journal_open"), ("odd://x", "journal_open")],
)
def test_a_database_that_cannot_be_opened_is_one_clear_problem(where: str, code: str) -> None:
    with pytest.raises(JournalError) as caught:
        Journal(where)
    assert caught.value.code == code
    assert caught.value.values["reason"]


def test_what_does_not_fit_is_refused() -> None:
    kind, body = encode(e.SettingChanged(name="n", value=1))
    assert decode(kind, body) == e.SettingChanged(name="n", value=1)
    for bad_kind, bad_body, code in [
        ("Unheard", body, "journal_unknown_event"),
        (kind, '{"name": "n"}', "journal_bad_event"),
        (kind, '{"name": "n", "value": "many"}', "journal_bad_event"),
        (kind, "not json", "journal_bad_event"),
    ]:
        with pytest.raises(JournalError) as caught:
            decode(bad_kind, bad_body)
        assert caught.value.code == code
