"""Checks over the real sandbox: what a workspace may name, how a command can end, and what nobody can get round."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import get_args

import pytest

from harness import events as e
from harness.agent import Agent
from harness.by_hand import change_setting
from harness.check_events import FAILING
from harness.checks import FILE, Check, NoCheck, check_source, in_force, read_check, verdict, was_denied, went_back
from harness.coding_tools.text_file import why
from harness.confirmations import Confirmations
from harness.demands import demands_of
from harness.exchange.in_place import in_place
from harness.exchange.transfer import bring_in, export
from harness.facts.told import is_of_user
from harness.messages import ToolCall, UserMessage
from harness.problems import Problem
from harness.recorded import Recorded
from harness.sandbox.command import Outcome
from harness.sandbox.detect import NOT_DETECTED, Sandbox, detect
from harness.sandbox.excerpt import Excerpt
from harness.session import Session
from harness.sources import joined
from harness.verifying import OUTPUT_CHARS, Went, verify, went_of
from harness.workspace import Workspace
from tests.checks_support import ANYTHING, DEMO, accept, checking, outcomes, project, running_like, written
from tests.harness_support import ROOT, events, library, run, run_sample, running, until
from tests.test_lab10 import Lines, change, put
from tests.web_html import find
from tests.web_session import FoldedSession, check, checked_session, told
from web.decided import end_detail
from web.feed import render_feed
from web.pages import Pages
from web.status import status_line
from web.viewer import Viewer

HELLO = "Hello."
PAGES = Pages.load()


def of(folder: Path, *, trusted: bool = True) -> Workspace:
    return Workspace(folder, "w", accepted=ANYTHING if trusted else frozenset())


# --- what a workspace may name --------------------------------------------------------------------------------------

BROKEN: dict[str, tuple[bytes, str, str]] = {
    "no TOML": (b'command = "true\n', "check_toml", "line 1"),
    "nothing in it": (b"", "check_command", ""),
    "only blanks": (b'command = "  "\n', "check_command", ""),
    "no text": (b"command = 3\n", "check_command", ""),
    "a NUL": (b'command = "a\\u0000b"\n', "check_command", ""),
    "a key that nobody knows": (b'command = "true"\nretries = 9\n', "check_key", "retries"),
    "a table": (b'[verify]\ncommand = "true"\n', "check_key", "verify"),
    "no seconds": (b'command = "true"\nseconds = 0\n', "check_seconds", "0"),
    "too many seconds": (b'command = "true"\nseconds = 301\n', "check_seconds", "301"),
    "half a second": (b'command = "true"\nseconds = 0.5\n', "check_seconds", "0.5"),
    "yes for seconds": (b'command = "true"\nseconds = true\n', "check_seconds", "True"),
    "a command nobody can read at a glance": (b'command = "' + b"a" * 201 + b'"\n', "check_long", "200"),
    "5 MB": (b"# " + b"a" * 5_000_000, "check_large", "16,384"),
    "UTF-16": ('command = "true"\n'.encode("utf-16"), "check_encoding", ""),
    "GB 18030": ('command = "检查"\n'.encode("gb18030"), "check_encoding", ""),
    "a thousand lists in one another": (b"command = " + b"[" * 5_000, "check_toml", ""),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_good_is_one_line_and_no_check(tmp_path: Path, name: str) -> None:
    text, code, detail = BROKEN[name]
    source = check_source(of(written(tmp_path / "w", text)))
    assert (source.kind, source.name, source.text, source.problem) == ("check", FILE, "", code)
    assert detail in source.detail and len(source.detail) < 300
    assert joined([source])[0] == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    assert read_check(of(tmp_path)) == ("check_none", "")
    (tmp_path / FILE).mkdir(parents=True)
    assert read_check(of(tmp_path))[0] == "check_file"  # type: ignore[index]
    (tmp_path / FILE).rmdir()
    os.mkfifo(tmp_path / FILE)
    assert read_check(of(tmp_path))[0] == "check_file"  # type: ignore[index]
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).symlink_to("verify.toml")
    assert read_check(of(tmp_path))[0] == "check_file", "a link that leads to itself"  # type: ignore[index]
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).symlink_to("/etc/hosts")
    assert read_check(of(tmp_path))[0] == "check_file", "a link that leads outside"  # type: ignore[index]


def test_why_a_file_cannot_be_read_names_no_path_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "w" / FILE).mkdir(parents=True)
    told = [check_source(of(tmp_path / "w"))]
    error = PermissionError(13, "Permission denied", str(tmp_path))
    assert why(error) == "Permission denied" and why(OSError("it is a pipe")) == "it is a pipe"
    assert told[0].problem == "check_file" and str(tmp_path) not in told[0].detail


def test_a_good_file_may_have_a_mark_at_its_start_and_the_line_ends_of_windows(tmp_path: Path) -> None:
    folder = written(tmp_path / "w", b'\xef\xbb\xbfcommand = " make check "\r\nseconds = 300\r\n')
    assert read_check(of(folder)) == Check("make check", 300)
    assert read_check(of(project(tmp_path / "x", "true"))) == Check("true", 60)


def test_the_agent_is_told_what_decides_and_that_very_command_counts(tmp_path: Path) -> None:
    command = "echo '\nfor at most 299 s.' && true"
    source = check_source(of(project(tmp_path / "w", command, 7)))
    system, sources = joined([source])
    assert command in system and "for at most 7 s" in system and source.detail == command
    session = FoldedSession().begin()
    session.add(e.InstructionsSet(system=system, tools=(), sources=sources))
    session.task("Do it")
    assert in_force(session.state, 1) == Check(command, 7)


def instructed(session: FoldedSession, folder: Path) -> None:
    """Tell the agent what the folder's check is now."""
    system, sources = joined([check_source(of(folder))])
    session.add(e.InstructionsSet(system=system, tools=(), sources=sources))


def test_what_is_told_while_a_task_runs_counts_from_the_next_one_on(tmp_path: Path) -> None:
    session = FoldedSession().begin()
    instructed(session, project(tmp_path / "first", "make check"))
    session.task("Do it")
    instructed(session, project(tmp_path / "second", "true"))
    assert in_force(session.state, 1) == Check("make check"), "also after it went on from a checkpoint"
    session.end()
    session.task("And now")
    assert in_force(session.state, 2) == Check("true")


def test_a_trust_that_was_taken_back_runs_nothing(tmp_path: Path) -> None:
    folder, session = project(tmp_path / "w", "touch was-run"), FoldedSession().begin()
    instructed(session, folder)
    session.task("Do it")
    for trusted in (False, True):
        workspace = Workspace(folder, "w", detect(), accepted=ANYTHING if trusted else frozenset())
        outside = (None, Confirmations(session.add), workspace)
        asyncio.run(verify(Agent(session.state, session.add, *outside), tmp_path / "wording.toml"))  # type: ignore[arg-type]
        assert (folder / "was-run").exists() is trusted and len(session.state.checks) == trusted


def test_what_a_file_from_elsewhere_says_is_never_run(tmp_path: Path) -> None:
    system, sources = joined([check_source(of(project(tmp_path / "w", "true")))])
    session = FoldedSession().begin()
    session.add(e.InstructionsSet(system=system, tools=(), sources=sources))
    session.task("Do it")
    session.end()
    assert in_force(session.state, 1)
    session.add(e.SessionImported(file="theirs.jsonl"))
    assert in_force(session.state, 1) is None
    session.task("Do it here")
    assert in_force(session.state, 2) is None
    session.add(e.InstructionsSet(system=system, tools=(), sources=sources))
    session.end()
    session.task("And now")
    assert in_force(session.state, 3) == Check("true")


# --- how a command can end ------------------------------------------------------------------------------------------


def once(tmp_path: Path, command: str, seconds: int | None = None, **named: object) -> Session:
    """Run one task whose check is `command`, which may fail once only."""
    kept: list[Session] = []

    async def scenario() -> None:
        source = project(tmp_path / "project", command, seconds)
        async with checking(tmp_path / "data", source, **named) as opened:
            kept.append(await opened.create(language="en"))
            await run(kept[0], HELLO)

    asyncio.run(scenario())
    assert "HookFailed" not in [type(each.event).__name__ for each in kept[0].records]
    return kept[0]


FIRST = "test -e seen && exit 0; touch seen; "


def test_a_command_that_never_ends_is_a_failed_check(tmp_path: Path) -> None:
    began = time.monotonic()
    session = once(tmp_path, FIRST + "echo begun; sleep 4711.25", 1)
    assert time.monotonic() - began < 20 and not running_like("4711.25")
    assert outcomes(session) == [("time", 0, True), ("passed", 0, False)]
    first = events(session, e.Verified)[0]
    assert first.output == "begun\n" and first.seconds >= 1
    [sent] = events(session, e.FollowUpAdded)
    assert "had not ended after 1 s and was stopped" in sent.text


def test_five_megabytes_of_output_leave_their_head_and_their_tail(tmp_path: Path) -> None:
    session = once(tmp_path, FIRST + "echo head; yes 0123456789 | head -c 5000000; echo; echo tail; exit 3")
    assert outcomes(session) == [("failed", 3, True), ("passed", 0, False)]
    output = events(session, e.Verified)[0].output
    assert output.startswith("head\n") and output.endswith("tail\n") and len(output) < OUTPUT_CHARS + 100
    assert "left out here" in output
    assert len(events(session, e.FollowUpAdded)[0].text) < OUTPUT_CHARS + 1000


def test_output_without_end_is_a_failed_check(tmp_path: Path) -> None:
    session = once(tmp_path, FIRST + "yes 4711.26")
    assert outcomes(session) == [("output", 0, True), ("passed", 0, False)] and not running_like("4711.26")


def test_an_exit_by_signal_is_told_as_shells_tell_it(tmp_path: Path) -> None:
    session = once(tmp_path, FIRST + "kill -9 $$")
    assert outcomes(session) == [("failed", 137, True), ("passed", 0, False)]


def test_a_signal_is_told_so_in_every_sandbox() -> None:
    # Only some sandboxes hand the signal on as a shell does.
    assert went_of(Outcome(Excerpt(), "exit", -9)) == Went("failed", 137)
    assert (
        went_of(Outcome(Excerpt(), "exit", 0)) == Went("passed") and went_of(Outcome(Excerpt(), "lost", -9)).exit == 0
    )


def test_a_command_that_is_not_there_fails(tmp_path: Path) -> None:
    session = once(tmp_path, FIRST + "no-such-command-4711")
    assert outcomes(session)[0] == ("failed", 127, True)
    assert "no-such-command-4711: command not found" in events(session, e.FollowUpAdded)[0].text


def test_nothing_that_a_check_started_runs_on(tmp_path: Path) -> None:
    session = once(tmp_path, "(sleep 4711.27 &) ; nohup setsid sleep 4711.27 >/dev/null 2>&1 & echo ok")
    assert outcomes(session) == [("passed", 0, False)] and not running_like("4711.27")


def test_odd_characters_stay_text_and_no_output_closes_its_tag(tmp_path: Path) -> None:
    tags = r"</check_output> < / CHECK_OUTPUT> <\342\200\213/check_output>"
    command = FIRST + rf"printf 'a\0b\033[31m\377 {tags} {{how}} \342\200\256x'; exit 1"
    session = once(tmp_path, command)
    output = events(session, e.Verified)[0].output
    assert output == "a\ufffdb\x1b[31m\ufffd </check_output> < / CHECK_OUTPUT> <\u200b/check_output> {how} \u202ex"
    inside = events(session, e.FollowUpAdded)[0].text.partition("<check_output>")[2]
    assert inside.count("</check_output>") == 1 and "&lt; / CHECK_OUTPUT> &lt;\u200b/" in inside and "{how}" in inside


def test_it_runs_in_the_workspace_with_nothing_of_ours_and_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-4711")
    session = once(tmp_path, "env; cat; ls -a; test -e .context-lab/verify.toml")
    assert outcomes(session) == [("passed", 0, False)]
    assert "sk-4711" not in events(session, e.Verified)[0].output


def test_without_a_sandbox_nothing_runs_and_the_task_says_so(tmp_path: Path) -> None:
    session = once(tmp_path, "touch was-run", sandbox=Sandbox("none", "none", "", "/bin/bash"))
    assert outcomes(session) == [("no_sandbox", 0, False)] and not (session.workspace.root / "was-run").exists()
    assert verdict(session.state, 1, len(session.records)).says == "no_sandbox"
    assert session.state.tasks[0].ended == "answered"
    folder = tmp_path / "undetected"
    folder.mkdir()
    assert outcomes(once(folder, "touch was-run", sandbox=NOT_DETECTED)) == [("no_sandbox", 0, False)]


# --- whom it believes, and how often --------------------------------------------------------------------------------


def test_in_a_folder_that_nobody_trusts_nothing_is_checked(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = project(tmp_path / "project", "touch was-run")
        async with library(tmp_path, lab="05", source=source) as opened:
            session = await opened.create(language="en")
            [told] = [each for each in session.state.instructions.sources if each.kind == "check"]
            assert (told.problem, told.detail) == ("untrusted", "touch was-run")
            assert "was-run" not in session.state.instructions.system
            await run(session, HELLO)
            assert session.state.tasks[0].ended == "answered" and not events(session, e.CheckStarted)
            assert not (session.workspace.root / "was-run").exists()
            await accept(session, tmp_path)
            assert verdict(session.state, 1, len(session.records)).says == "untrusted", "as it was when the task began"
            await run(session, HELLO)
            assert verdict(session.state, 2, len(session.records)).says == "passed"

    asyncio.run(scenario())


@pytest.mark.parametrize("problem", ["", "untrusted", *get_args(NoCheck), "<b>anything</b>"])
def test_a_task_that_nobody_checked_says_so_and_why(problem: str) -> None:
    session = FoldedSession().begin()
    session.task("Nothing is to be checked")
    session.call_started()
    session.call_ended("Done.")
    first = session.end()
    session.add(told(("check", FILE, "" if problem else "Run by the harness.", problem, "")))
    rows, ends = [first], ["answered", "stopped"]
    for reason in ends:
        session.task("Do it")
        session.add(told(("check", FILE, "", "", "")))
        session.call_started()
        session.call_ended("Done.")
        rows.append(session.end(reason))
        session.add(told(("check", FILE, "" if problem else "Run by the harness.", problem, "")))
    details = [end_detail(row, row.event, session.state, session.records).checked.says for row in rows]
    known = problem if problem in ("untrusted", *get_args(NoCheck)) else "not_run"
    assert details == ["", known, ""], "what ended without an answer was not to be checked"


@pytest.mark.parametrize(("language", "says"), [("en", "Not verified: "), ("zh", "未验证：")])
def test_why_nobody_checked_stands_in_the_row_and_in_the_status(language: str, says: str) -> None:
    for problem in ("untrusted", *get_args(NoCheck), "moon"):
        session = FoldedSession().begin()
        session.add(told(("check", FILE, "", problem, "")))
        session.task("Do it")
        session.call_started()
        session.call_ended("Done.")
        session.end()
        viewer = Viewer(PAGES, language=language)
        line = viewer.words.code("checked", "not_run" if problem == "moon" else problem)
        assert line.startswith(says)
        [mark] = [each for each in find(render_feed(session, viewer)) if "data-verdict" in each.attributes]
        assert mark.text == line and "mark" in mark.attributes["class"] and line in status_line(session, viewer)


def test_a_failure_goes_back_at_most_three_times_and_then_the_task_ends_unverified(tmp_path: Path) -> None:
    session = once(tmp_path, "echo no; exit 1")
    assert outcomes(session) == [("failed", 1, True)] * 3 + [("failed", 1, False)]
    assert [each.extension for each in events(session, e.FollowUpAdded)] == ["verify"] * 3
    found = verdict(session.state, 1, len(session.records))
    assert (found.says, found.back, found.last) == ("failed", 3, 4)
    assert session.state.tasks[0].ended == "answered" and len(session.state.tasks) == 1


def denied_session(*checks: bool) -> FoldedSession:
    """A task in which a person denies a call; then its checks fail, and go back or not."""
    session = FoldedSession().begin()
    session.task("Mend it")
    session.call_started()
    call = ToolCall("c1", "bash", '{"command":"ls"}')
    session.call_ended("", call)
    named = {"task": 1, "call_id": "c1", "name": "bash", "arguments": call.arguments}
    session.add(e.ApprovalRequested(preview="ls", seconds=5, **named))
    session.add(e.ApprovalAnswered(allowed=False, by="person", **named))
    session.tool(call, "no", ok=False)
    for back in checks:
        session.call_started()
        session.call_ended("I stop here.")
        check(session, "failed", 1, back=back)
    return session


def test_after_a_persons_no_a_failure_does_not_go_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with checking(tmp_path / "data") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1, allow=False)
            assert outcomes(session) == [("failed", 1, False)] and not events(session, e.FollowUpAdded)
            assert len(events(session, e.ApprovalRequested)) == 1, "the same is not asked again"
            found = verdict(session.state, 1, len(session.records) + 1)
            assert (found.says, found.back, found.last) == ("denied", 0, 1)
            assert session.state.tasks[0].ended == "answered"
            line = status_line(session, Viewer(Pages.load(), form_token="t"))
            assert "Not verified: a call was denied" in line
            await run_sample(session, 1)
            assert outcomes(session)[1:] == [("failed", 1, True), ("passed", 0, False)], "the next task begins anew"
            assert verdict(session.state, 1, events_end(session, 1)).says == "denied", "what happened stays told"

    asyncio.run(scenario())


def events_end(session: Session, task: int) -> int:
    return next(x.seq for x in session.records if isinstance(x.event, e.TaskEnded) and x.event.task == task)


def test_a_no_to_a_sub_agent_counts_and_one_that_nobody_gave_does_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = project(tmp_path / "project", "exit 1")
        for name in ("fares.py", "test_fares.py"):
            (source / name).write_bytes((ROOT / "demo_workspace/ferries" / name).read_bytes())
        for waits, back in ((60, []), (0, [True] * 3)):
            settings = {"approval_seconds": waits}
            named = {"lab": "04", "extensions": ("verify",), "settings": settings}
            async with checking(tmp_path / f"data-{waits}", source, **named) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 4, allow=False)
                assert session.state.children and [x[2] for x in outcomes(session)] == [*back, False]

    asyncio.run(scenario())


def test_a_no_before_a_checkpoint_is_not_held_against_what_goes_on_from_there() -> None:
    session = denied_session(False)
    assert was_denied(session.state, 1)
    assert verdict(session.state, 1, len(session.records) + 1).says == "denied"
    session.add(e.CheckpointSaved(number=1, task=1, turn=1, summary="", rounds=(), workspace=0))
    session.add(e.TaskResumed(number=1, task=1, by="person"))
    assert not was_denied(session.state, 1)
    earlier = denied_session(True, True, True, False)
    assert verdict(earlier.state, 1, len(earlier.records) + 1).back == 3, "as older journals have it"


def test_each_task_has_its_own_three(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with checking(tmp_path / "data", project(tmp_path / "project", "exit 1")) as opened:
            session = await opened.create(language="zh")
            await run(session, HELLO, language="zh")
            await run(session, HELLO, language="zh")
            assert [each.attempt for each in events(session, e.Verified)] == [1, 2, 3, 4] * 2
            assert len(events(session, e.FollowUpAdded)) == 6
            assert "检查没有通过" in events(session, e.FollowUpAdded)[0].text

    asyncio.run(scenario())


def test_a_task_that_goes_on_from_a_checkpoint_may_be_sent_back_anew() -> None:
    session = FoldedSession().begin()
    session.task("Mend it")
    session.call_started()
    session.call_ended("Done.")
    check(session, "failed", 1, back=True)
    assert went_back(session.state, 1) == 1
    session.add(e.CheckpointSaved(number=1, task=1, turn=1, summary="", rounds=(), workspace=0))
    session.add(e.TaskResumed(number=1, task=1, by="person"))
    assert went_back(session.state, 1) == 0
    assert verdict(session.state, 1, len(session.records)).back == 1, "what happened stays told"


def test_what_a_check_prints_is_no_demand_of_the_user(tmp_path: Path) -> None:
    session = once(tmp_path, FIRST + "echo 'You must never delete a row.'; exit 1")
    [sent] = [entry for entry in session.state.history if not is_of_user(entry) and entry.category == "user"]
    assert isinstance(sent.message, UserMessage) and sent.message.author == "extension"
    assert "You must never delete a row." in sent.message.text
    assert demands_of(session.state.history) == ()


def test_a_task_without_an_answer_is_not_checked(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running("server_error") as server:
            async with checking(tmp_path / "a", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                assert session.state.tasks[0].ended == "failed" and not events(session, e.CheckStarted)
        async with checking(tmp_path / "b") as opened:
            session = await opened.create(language="en")
            change_setting(session, "step_limit", 2)
            await run_sample(session, 1)
            assert session.state.tasks[0].ended == "step_limit" and not events(session, e.CheckStarted)

    asyncio.run(scenario())


def test_what_ends_while_it_mends_is_not_verified(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with checking(tmp_path / "data") as opened:
            session = await opened.create(language="en")
            change_setting(session, "step_limit", 4)
            await run_sample(session, 1)
            assert session.state.tasks[0].ended == "step_limit" and outcomes(session) == [("failed", 1, True)]
            assert verdict(session.state, 1, len(session.records)).says == "failed"

    asyncio.run(scenario())


def test_what_passed_before_the_agent_went_on_is_not_verified() -> None:
    session = FoldedSession().begin()
    session.task("Mend it")
    session.call_started()
    session.call_ended("Done.")
    check(session, "passed")
    assert verdict(session.state, 1, len(session.records) + 1).says == "passed"
    session.add(e.FollowUpAdded(task=1, extension="brief", text="Shorter."))
    session.call_started()
    session.call_ended("Done, in short.")
    assert verdict(session.state, 1, len(session.records) + 1).says == "stale"


# --- stopped, killed, taken elsewhere -------------------------------------------------------------------------------


def test_stop_ends_a_check_at_once_with_all_that_it_started(tmp_path: Path) -> None:
    async def scenario() -> None:
        command = "sleep 4711.28 & setsid sleep 4711.28 & sleep 4711.28"
        async with checking(tmp_path / "data", project(tmp_path / "project", command, 300)) as opened:
            session = await opened.create(language="en")
            session.start_task(HELLO, language="en")
            await until(lambda: len(running_like("sleep\0" + "4711.28")) >= 3)
            began = time.monotonic()
            await session.stop()
            assert time.monotonic() - began < 10 and not running_like("4711.28")
            assert outcomes(session) == [("stopped", 0, False)]
            assert verdict(session.state, 1, len(session.records)).says == "stopped"
            assert session.status == "idle" and not events(session, e.HookFailed)

    asyncio.run(scenario())


CHILD = """
import asyncio, sys
from pathlib import Path
from types import SimpleNamespace
from tests.checks_support import checking
from tests.harness_support import names, until

async def main():
    data, source, address = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    async with checking(data, source, server=SimpleNamespace(address=address)) as opened:
        session = await opened.create(language="en")
        session.start_task("Hello.", language="en")
        await until(lambda: names(session)[session.committed - 1] == "CheckStarted")
        print(session.id, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_kill_during_the_check_leaves_an_answered_task_that_says_it_is_unverified(tmp_path: Path) -> None:
    source = project(tmp_path / "project", "sleep 4711.29", 300)
    with running() as server:
        arguments = [str(tmp_path / "data"), str(source), server.address]
        process = subprocess.Popen([sys.executable, "-c", CHILD, *arguments], cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout
        session_id = process.stdout.readline().decode().strip()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

        async def scenario() -> None:
            await until(lambda: not running_like("4711.29"))
            async with checking(tmp_path / "data", source, server=server) as opened:
                session = await opened.open(session_id)
                assert [type(each.event).__name__ for each in session.records][-2:] == ["CheckStarted", "TaskEnded"]
                assert session.state.tasks[0].ended == "answered"
                assert verdict(session.state, 1, len(session.records)).says == "unfinished"
                (session.workspace.root / FILE).write_text('command = "true"\n')
                await accept(session, tmp_path / "data")
                await run(session, HELLO)
                assert outcomes(session) == [("passed", 0, False)]

        asyncio.run(scenario())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a session in which a check failed and then passed."""
    kept: list[bytes] = []

    async def scenario() -> None:
        data = tmp_path_factory.mktemp("checks")
        async with checking(data) as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            await until(lambda: session.committed == len(session.records))
            kept.append(b"".join(export(opened.journal, session.id)))

    asyncio.run(scenario())
    return kept[0]


def brought_in(file: bytes, data: Path) -> Session:
    kept: list[Session] = []

    async def scenario() -> None:
        async with library(data, lab="05") as opened:
            kept.append(await opened.open(await bring_in(opened, BytesIO(file), "theirs.jsonl")))

    asyncio.run(scenario())
    return kept[0]


def test_a_session_with_checks_travels(file: bytes, tmp_path: Path) -> None:
    session = brought_in(file, tmp_path)
    assert outcomes(session) == [("failed", 1, True), ("passed", 0, False)]
    assert session.state.trusted is None and not session.workspace.accepted


ENDED = {"attempt": 3, "command": "true", "outcome": "passed", "exit": 0, "output": "", "seconds": 0.1}
DISHONEST = {
    "an end of another command": (lambda x: change(x, "Verified", command="true"), "Verified"),
    "an end of another attempt": (lambda x: change(x, "Verified", attempt=1), "Verified"),
    "an end without a beginning": (lambda x: put(x, "TaskEnded", "Verified", task=1, **ENDED), "Verified"),
    "a pass with an exit code": (lambda x: change(x, "Verified", exit=1), "Verified"),
    "a failure without one": (lambda x: change(x, "Verified", outcome="failed"), "Verified"),
    "a pass that goes back": (lambda x: change(x, "Verified", back=True), "Verified"),
    "a megabyte of output": (lambda x: change(x, "Verified", output="a" * 1_000_000), "Verified"),
    "a file that changed meanwhile": (lambda x: change(x, "Verified", changed=True), "Verified"),
    "a check of another task": (lambda x: change(x, "CheckStarted", task=2), "CheckStarted"),
    "a check of another number": (lambda x: change(x, "CheckStarted", attempt=7), "CheckStarted"),
    "a check of an hour": (lambda x: change(x, "CheckStarted", limit=3600), "CheckStarted"),
    "a check of no command": (lambda x: change(x, "CheckStarted", command=""), "CheckStarted"),
    "a check before the answer": (
        lambda x: put(x, "ModelCallStarted", "CheckStarted", task=1, attempt=1, command="true", limit=60),
        "CheckStarted",
    ),
}


@pytest.mark.parametrize("name", DISHONEST)
def test_a_dishonest_file_is_refused(file: bytes, tmp_path: Path, name: str) -> None:
    spoil, kind = DISHONEST[name]
    lines: Lines = [json.loads(line) for line in file.splitlines()]
    spoil(lines)
    with pytest.raises(Problem) as caught:
        brought_in(b"\n".join(json.dumps(line).encode() for line in lines), tmp_path)
    assert caught.value.code == "import_order" and caught.value.values["kind"] == kind


def test_every_real_check_is_in_its_place() -> None:
    session, again = checked_session(), FoldedSession()
    for recorded in session.records:
        if isinstance(recorded.event, e.CheckStarted | e.Verified):
            assert in_place(again.state, Recorded(recorded.seq, recorded.time, recorded.event)), recorded.event
        again.add(recorded.event)
    assert {each.outcome for each in events(session, e.Verified)} >= {"passed", "failed", "time", "lost", "stopped"}  # type: ignore[arg-type]
    assert set(FAILING).isdisjoint(("passed", "stopped", "no_sandbox"))
    assert DEMO.is_dir()
