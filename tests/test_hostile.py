"""What a hostile or broken model, tool, extension or file could do, and does not."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from harness import events as e
from harness.calls import Calls
from harness.coding_tools.files import file_tools
from harness.discovery import LabError, find_labs
from harness.hooks import Extension
from harness.journal import Journal, Recorded
from harness.messages import ToolCall
from harness.ownership import claim
from harness.problems import Problem
from harness.session import Session
from harness.tools import Tool
from harness.workspace import Workspace
from tests.harness_support import assert_rebuilt, events, library, run, running
from web.details import call_detail, visible

SURROGATE = "st\ud800op"


def asked(name: str, arguments: str, preview: str) -> e.ApprovalRequested:
    return e.ApprovalRequested(task=1, call_id="c", name=name, arguments=arguments, preview=preview, seconds=9)


def test_an_approval_hides_no_line_that_looks_like_a_header() -> None:
    preview = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,3 @@\n+x = 1\n+++__import__('os')\n---- old\n+print(x)"
    shown = [line.text for line in call_detail(asked("write", "{}", preview), ()).diff]
    assert "+++__import__('os')" in shown and "---- old" in shown and "+++ b/x.py" not in shown


def test_a_command_is_no_diff() -> None:
    assert call_detail(asked("bash", "{}", "@@\n+++ b\nrm x"), ()).diff == ()


def test_a_long_line_in_a_preview_says_what_is_left_out(tmp_path: Path) -> None:
    write = next(tool for tool in file_tools(Workspace(tmp_path, "w")) if tool.name == "write")
    assert write.preview
    preview = write.preview({"path": "x.py", "content": "x = 1" + " " * 1200 + "; import os"})
    assert "more characters)" in preview and "import os" not in preview


def test_signs_that_turn_the_writing_around_are_spelled_out() -> None:
    assert visible("safe # \u202e}fr- mr") == "safe # \\u202e}fr- mr"
    detail = call_detail(asked("bash", '{"command": "ls \\u2066x"}', "ls \u2066x"), ())
    assert "\u2066" not in detail.preview + detail.key + "".join(value for _, value in detail.arguments)


@pytest.mark.parametrize("arguments", ['{"path": "\\ud800"}', "[" * 20_000, '{"a": ' * 5_000, '{"\\ud800": 1}'])
def test_odd_arguments_can_be_shown_and_are_answered(arguments: str) -> None:
    detail = call_detail(asked("read", arguments, ""), ())
    f"{detail.key}{detail.arguments}".encode()
    happened: list[e.Event] = []

    async def allow(_: object) -> str:
        return ""

    async def scenario() -> None:
        await Calls({}, happened.append, allow, 5).run(1, ToolCall("c", "read", arguments))

    asyncio.run(scenario())
    assert isinstance(happened[-1], e.ToolEnded) and not happened[-1].ok


@pytest.mark.parametrize("answer", [None, 7, {"a": 1}])
def test_a_tool_that_returns_no_text_still_gives_its_call_a_result(answer: object) -> None:
    async def odd(_: dict[str, object]) -> object:
        return answer

    async def allow(_: object) -> str:
        return ""

    happened: list[e.Event] = []
    tool = Tool("odd", "", {"type": "object"}, odd)  # type: ignore[arg-type]
    asyncio.run(Calls({"odd": tool}, happened.append, allow, 5).run(1, ToolCall("c", "odd", "{}")))
    ended = happened[-1]
    assert isinstance(ended, e.ToolEnded) and not ended.ok and "returns text" in ended.text


def test_what_utf8_cannot_carry_does_not_end_the_journal(tmp_path: Path) -> None:
    results: list[Exception | None] = []
    journal = Journal(f"sqlite:///{tmp_path}/j.db")
    bad = e.ModelChosen(model=SURROGATE, provider="offline", reason="no_key")
    journal.append("a", Recorded(1, 0.0, bad), results.append)
    journal.append("b", Recorded(1, 0.0, e.SettingChanged(name="n", value=1)), results.append)
    journal.close()
    assert results == [None, None]


def test_a_failed_write_leaves_no_gap_and_costs_no_other_session(tmp_path: Path) -> None:
    journal = Journal(f"sqlite:///{tmp_path}/j.db")
    results: dict[tuple[str, int], Exception | None] = {}
    for session, seq in [("a", 1), ("b", 1), ("a", 1), ("a", 2), ("b", 2), ("a", 3)]:
        event = e.SettingChanged(name="n", value=seq)
        journal.append(
            session, Recorded(seq, 0.0, event), lambda error, key=(session, seq): results.update({key: error})
        )
    journal.close()
    again = Journal(f"sqlite:///{tmp_path}/j.db")
    assert [each.seq for each in again.read("a")] == [1] and [each.seq for each in again.read("b")] == [1, 2]
    assert results["a", 2] and results["a", 3] and not results["b", 2]
    again.reopen("a")
    again.append("a", Recorded(2, 0.0, e.SettingChanged(name="n", value=2)), lambda error: None)
    again.close()


def broken(hook: str) -> Extension:
    def fail(_: object) -> None:
        raise RuntimeError(f"{hook} is broken")

    return Extension("broken", **{hook: fail})  # type: ignore[arg-type]


@pytest.mark.parametrize("hook", ["tools", "system_prompt", "on_stop", "before_turn", "before_send", "on_event"])
def test_a_broken_hook_is_reported_and_the_task_goes_on(tmp_path: Path, hook: str) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, server=server) as opened:
                session: Session = await opened.create(language="en")
                session.extensions += (broken(hook),)
                await run(session, "Read incident-log.md and sort it.")
                assert session.state.tasks[0].ended == "answered"
                failed = events(session, e.HookFailed)
                assert failed and {event.hook for event in failed} == {hook}
                assert f"{hook} is broken" in failed[0].detail
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


def test_a_follow_up_that_utf8_cannot_carry_is_cleaned(tmp_path: Path) -> None:
    said: list[str] = []

    async def on_stop(_: object) -> str | None:
        said.append("once")
        return SURROGATE if len(said) == 1 else None

    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, server=server) as opened:
                session = await opened.create(language="en")
                session.extensions += (Extension("odd", on_stop=on_stop),)
                await run(session, "Read incident-log.md and sort it.")
                assert session.state.tasks[0].ended == "answered"
                assert events(session, e.FollowUpAdded)[0].text == "st\ufffdop"
                assert_rebuilt(session, server.requests)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "toml",
    [
        'title = "x"', "groups = 5", 'groups = ["a"]', "demo = 3", '[settings]\nbudget = "many"',
        "[settings]\nbudget = -1", "[settings]\nbudget = true", "not toml",
    ],
)  # fmt: skip
def test_a_broken_lab_file_is_one_clear_problem(tmp_path: Path, toml: str) -> None:
    folder = tmp_path / "21-odd"
    folder.mkdir()
    words = {"title": 'title = {en = "x", zh = "x"}', "goal": 'goal = {en = "x", zh = "x"}', "demo": 'demo = "d"'}
    lines = [line for name, line in words.items() if not toml.startswith(name)]
    (folder / "lab.toml").write_text("\n".join([*lines, toml]))
    with pytest.raises(LabError) as caught:
        find_labs(tmp_path)
    assert caught.value.code == "lab_broken" and caught.value.values["file"] == "21-odd/lab.toml"


def test_two_labs_with_one_number_are_refused(tmp_path: Path) -> None:
    for name in ("21-one", "21-two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lab.toml").write_text('demo = "d"\ntitle = {en="x", zh="x"}\ngoal = {en="x", zh="x"}')
    with pytest.raises(LabError) as caught:
        find_labs(tmp_path)
    assert caught.value.values == {"number": "21", "one": "one", "other": "two"}


def test_two_servers_do_not_share_their_sessions(tmp_path: Path) -> None:
    with contextlib.closing(claim(tmp_path)):
        with pytest.raises(Problem) as caught:
            claim(tmp_path)
        assert caught.value.code == "journal_in_use"
    claim(tmp_path).close()
