"""What a journal proves: shown by real sessions, looked at once, and never more than what happened."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from harness import by_hand
from harness import events as e
from harness.journal import Recorded
from harness.messages import ToolCall
from harness.proofs import Proof, proved
from harness.replay import fold
from harness.result_events import FOLDER, Decision
from harness.session import Session
from tests.harness_support import library, run_sample, running, until
from tests.web_session import (
    LOG,
    SUMMARY,
    FoldedSession,
    check,
    compacted_session,
    decided_session,
    first_task,
    handed_session,
    read_turn,
    resumed_session,
    threshold_session,
)


def of(session: Session | FoldedSession) -> frozenset[Proof]:
    """What the session proves, read anew and read on: both say the same."""
    anew = proved(fold((each.seq, each.event) for each in session.records), session.records)
    assert anew == proved(session.state, session.records)
    return anew


def test_the_samples_of_lab_07_prove_what_they_show(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            assert of(session) == set()
            await run_sample(session, 1)
            assert of(session) == {"tool_result_largest"}
            await run_sample(session, 2)
            assert of(session) == {"tool_result_largest", "compacted"}
            await run_sample(session, 5)
            assert of(session) == {"tool_result_largest", "compacted", "reread"}
            by_hand.undo(session, session.state.in_force[-1].event.number)
            assert of(session) == {"tool_result_largest", "compacted", "reread", "undone"}

    asyncio.run(scenario())


def test_reading_twice_without_a_compaction_between_is_no_rereading(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, settings={"budget": 9000}) as opened:
            session = await opened.create(language="en")
            for number in (1, 5):
                await run_sample(session, number)
            assert of(session) == {"tool_result_largest"}

    asyncio.run(scenario())


@pytest.mark.parametrize(("budget", "moves"), [(9000, True), (1000, False)])
def test_a_budget_moves_the_cut_only_where_the_first_one_would_have_had_another_outcome(
    tmp_path: Path, budget: int, moves: bool
) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            by_hand.change_setting(session, "budget", budget)
            assert "cut_moved" not in of(session), "a budget alone changes nothing"
            await run_sample(session, 2)
            assert ("cut_moved" in of(session)) is moves
            assert ("compacted" in of(session)) is not moves

    asyncio.run(scenario())


def test_a_budget_given_at_the_start_is_nobody_s_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, settings={"budget": 9000}) as opened:
            session = await opened.create(language="en")
            for number in (1, 2):
                await run_sample(session, number)
            assert "cut_moved" not in of(session)

    asyncio.run(scenario())


def test_a_summary_that_is_no_good_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running("summary_empty") as server:
            async with library(tmp_path, server=server) as opened:
                session = await opened.create(language="en")
                for number in (1, 2):
                    await run_sample(session, number)
                assert of(session) == {"tool_result_largest", "refused"}

    asyncio.run(scenario())


def test_a_person_allows_denies_and_stops(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01") as opened:
            allowed, denied = await opened.create(language="en"), await opened.create(language="en")
            await run_sample(allowed, 2)
            assert of(allowed) == {"approved", "tool_result_largest"}
            await run_sample(denied, 2, allow=False)
            assert of(denied) == {"denied"}
            denied.start_task("Run the tests.", language="en")
            await until(lambda: denied.waiting)
            await denied.stop()
            assert of(denied) == {"denied", "stopped"}, "a stop is no answer"

    asyncio.run(scenario())


def test_no_answer_in_time_is_nobody_s_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="01", settings={"approval_seconds": 0}) as opened:
            session = await opened.create(language="en")
            session.start_task("Run the tests.", language="en")
            await until(lambda: session.status == "idle")
            assert of(session) == set()

    asyncio.run(scenario())


def test_other_reasons_to_refuse_are_no_refused_summary() -> None:
    session = FoldedSession().begin()
    session.task("Hello")
    for reason in ("stopped", "declined", "nothing_to_cut", "context_changed", "running_task", "broken_pairs"):
        session.add(e.CompactionRefused(task=1, strategy="task boundary", reason=reason))
        assert of(session) == set(), reason
    session.add(e.CompactionRefused(task=1, strategy="task boundary", reason="not_smaller"))
    assert of(session) == {"refused"}


def test_a_summary_that_a_person_changed_is_rewritten() -> None:
    plain, changed = compacted_session(), FoldedSession()
    for each in plain.records:
        compacts = isinstance(each.event, e.ContextCompacted)
        changed.add(replace(each.event, written="What the model wrote.") if compacts else each.event)
    assert of(changed) == of(plain) | {"rewritten"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_wish_that_a_person_strikes_from_the_summary_is_lost(tmp_path: Path, language: str) -> None:
    wish = {"en": "Don't change any file.", "zh": "不要改动任何文件。"}[language]

    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language=language)
            by_hand.change_setting(session, "confirm_summary", 1)
            await run_sample(session, 1, language=language)
            session.start_task("Which are confirmed?", language=language)
            await until(lambda: session.proposed)
            assert session.proposed and wish in session.proposed.text
            text = "\n".join(line for line in session.proposed.text.splitlines() if wish not in line)
            assert session.confirmations.answer(text) == ""
            await until(lambda: session.status == "idle")
            assert of(session) == {"tool_result_largest", "compacted", "rewritten", "constraint_lost"}

    asyncio.run(scenario())


def test_a_demand_is_lost_too_where_only_an_earlier_summary_held_it() -> None:
    session = compacted_session()
    assert "constraint_lost" not in of(session), "the summary holds it"
    session.task("Which are open?")
    session.call_started()
    session.call_ended("One.")
    session.compact(SUMMARY.replace('- "Don\'t change any file."\n', ""))
    assert "constraint_lost" in of(session)


def test_a_demand_that_no_user_made_is_no_user_s_demand() -> None:
    session = FoldedSession().begin()
    session.task("Read the rules")
    session.call_started()
    call = ToolCall("c1", "read", '{"path":"rules.md"}')
    session.call_ended("", call)
    session.tool(call, "Never delete a row. You must not restart the server.\n" + LOG)
    session.end()
    session.task("Go on")
    session.call_started()
    session.call_ended("Yes.")
    session.compact()
    session.end()
    session.task("Go on")
    session.call_started()
    session.call_ended("Yes.")
    session.compact("## Confirmed\n- nothing")
    shown = {"tool_result_largest", "compacted", "summary_updated"}
    assert of(session) == shown, "neither a tool's nor one that a summary invented"


def test_a_read_that_failed_or_is_of_another_file_is_no_rereading() -> None:
    session = compacted_session()
    session.task("Again")
    session.call_started()
    calls = [ToolCall(f"r{n}", "read", arguments) for n, arguments in enumerate(['{"path":"b.md"}', "{", "[]"])]
    again = ToolCall("again", "read", '{"path": "incident-log.md", "start": 3}')
    session.call_ended("", *calls, again)
    for call in calls:
        session.tool(call, "text")
    session.tool(again, "no such file", ok=False)
    assert "reread" not in of(session)
    session.call_started()
    session.call_ended("", ToolCall("once more", "read", again.arguments))
    session.tool(ToolCall("once more", "read", again.arguments), LOG)
    assert "reread" in of(session)


class Counting(Sequence[Recorded]):
    """Records that count how many of them were looked at."""

    def __init__(self, records: list[Recorded]) -> None:
        self.records, self.looked = records, 0

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, place):  # noqa: ANN001, ANN204
        found = self.records[place]
        self.looked += len(found) if isinstance(place, slice) else 1
        return found


def test_each_record_is_looked_at_once() -> None:
    session = FoldedSession().begin()
    records = Counting(session.records)
    for _ in range(50):
        first_task(session)
        proved(session.state, records)
    assert records.looked == len(session.records)
    assert proved(session.state, records) == {"tool_result_largest"}
    assert records.looked == len(session.records)


def test_what_happens_inside_tasks_is_proved_by_its_events() -> None:
    demanded = {"tool_result_largest", "compacted", "compacted_inside", "demand_beside", "overflow_survived"}
    more = {"summary_updated", "undone", "refused", "breaker_opened"}
    assert of(threshold_session()) == demanded | more
    results = {"result_spilled", "result_aged", "decided_anew"}
    assert of(decided_session()) == {"tool_result_largest", "compacted", "compacted_inside"} | results
    assert of(resumed_session()) >= {"stage_ended", "checkpointed", "resumed"}


def test_a_compaction_by_hand_is_none_inside_a_task_and_an_open_breaker_says_so_itself() -> None:
    session = FoldedSession().begin()
    first_task(session)
    session.cut(1, trigger="by hand")
    assert of(session) == {"tool_result_largest", "compacted"}
    refused = {"task": 1, "strategy": "threshold"}
    session.add(e.CompactionRefused(reason="summary_empty", failures=2, **refused))
    assert "breaker_opened" not in of(session)
    session.add(e.CompactionRefused(reason="breaker_no_progress", **refused))
    assert "breaker_opened" in of(session)


def test_a_demand_that_stands_beside_the_summary_is_not_lost() -> None:
    def cut(beside: str, again: str = "Go on") -> frozenset[Proof]:
        session = FoldedSession().begin()
        session.task("Never touch /etc/hosts.")
        session.call_started()
        session.call_ended("I will not.")
        session.end()
        session.task(again)
        for number in (1, 2):
            read_turn(session, number)
        session.cut(2, "## Goal\n- none", beside=beside)
        return of(session)

    assert "constraint_lost" in cut("") and "constraint_lost" not in cut("- Never touch /etc/hosts.")
    assert "constraint_lost" not in cut("", "Go on. Never touch /etc/hosts."), "the request stays"


def test_a_whole_result_that_is_read_back_from_its_file_is_proved() -> None:
    session = decided_session()
    assert "result_read_back" not in of(session)
    session.task("Read it whole")
    call = read_turn(session, 1)
    session.decide(Decision(call.id, "kept", len(LOG), file=f"{FOLDER}/1-read.txt"))
    assert "result_read_back" in of(session)


def test_checks_prove_that_they_failed_passed_or_were_given_up() -> None:
    session = FoldedSession().begin()
    for ends, shown in ((("stopped",), set()), (("passed",), {"check_passed"})):
        answered(session, *ends)
        assert of(session) == shown
    answered(session, "failed", "time")
    assert of(session) == {"check_passed", "check_failed", "check_given_up"}
    again = FoldedSession().begin()
    answered(again, "failed", "passed")
    assert of(again) == {"check_passed", "check_failed"}


def answered(session: FoldedSession, *outcomes: str) -> None:
    """A task whose checks go so, one after another; what fails goes back, but not the last."""
    session.task("Mend it")
    for number, outcome in enumerate(outcomes, 1):
        session.call_started()
        session.call_ended("Done.")
        check(session, outcome, int(outcome == "failed"), back=number < len(outcomes))
    session.end()


def test_what_was_done_to_a_note_is_proved_where_it_worked() -> None:
    session = FoldedSession().begin()
    session.task("Remember it")
    noted = [("remember", "remembered"), ("recall", "recalled"), ("forget", "forgotten")]
    for number, (tool, _) in enumerate(noted):
        for ok in (False, True):
            before = of(session)
            call = ToolCall(f"note-{number}-{ok}", tool, "{}")
            session.call_started()
            session.call_ended("", call)
            session.tool(call, "-", ok=ok)
            assert (of(session) == before) is not ok
    assert of(session) >= {proof for _, proof in noted}


def test_only_a_persons_own_yes_proves_trust() -> None:
    session = FoldedSession().begin()
    session.add(e.WorkspaceTrusted(trusted=True, by="earlier"))
    session.add(e.WorkspaceTrusted(trusted=False))
    assert "trusted" not in of(session)
    session.add(e.WorkspaceTrusted(trusted=True))
    assert "trusted" in of(session)


def test_a_skill_is_proved_read_where_that_worked() -> None:
    session = FoldedSession().begin()
    session.task("How is it done?")
    for ok in (False, True):
        session.call_started()
        call = ToolCall(f"skill-{ok}", "skill", '{"name":"one"}')
        session.call_ended("", call)
        session.tool(call, "-", ok=ok)
        assert ("skill_read" in of(session)) is ok


def test_what_a_sub_agent_did_proves_nothing_of_the_agent() -> None:
    found = of(handed_session())
    assert {"handed_on", "side_by_side", "child_allowed"} <= found
    assert not {"approved", "compacted", "compacted_inside"} & found


def test_only_a_sub_agent_that_was_stopped_proves_that_one_was() -> None:
    session = handed_session()
    assert not {"stopped", "child_stopped"} & of(session)
    own = FoldedSession().begin()
    own.task("Look")
    own.end("stopped")
    assert of(own) == {"stopped"}, "a task without a sub-agent"
    ended = e.TaskEnded(task=1, reason="stopped", seconds=0.1)
    session.add(e.ChildEvent(child=3, event=ended))
    assert "child_stopped" in of(session) and "stopped" not in of(session)


def test_every_proof_is_shown_here() -> None:
    source = Path(__file__).read_text("utf-8")
    assert [name for name in get_args(Proof) if f'"{name}"' not in source] == []
