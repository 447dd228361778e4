"""Every tool call becomes one result that the model can act on, whatever is wrong with it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import events as e
from harness.approvals import Approvals
from harness.calls import CHANGED, REPEATS_ENDED, REPEATS_REFUSED, RESULT_CHARS, Calls
from harness.coding_tools.files import file_tools
from harness.messages import ToolCall
from harness.tools import Tool, ToolError
from harness.workspace import Workspace


def echo(asks: bool = False, run: Any = None) -> Tool:
    async def answer(arguments: dict[str, Any]) -> str:
        return str(arguments)

    properties = {"text": {"type": "string"}, "times": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    return Tool("echo", "Say it again.", schema, run or answer, asks=asks, preview=lambda arguments: "preview!")


def results(calls: list[ToolCall], *tools: Tool, answer: str = "", left: bool = False) -> list[e.Event]:
    happened: list[e.Event] = []

    async def approve(asked: Callable[[], Awaitable[e.ApprovalRequested]]) -> str:
        happened.append(await asked())
        return answer

    async def scenario() -> None:
        runner = Calls({tool.name: tool for tool in tools}, happened.append, approve, 5, lambda: left)
        for call in calls:
            await runner.run(1, call)

    asyncio.run(scenario())
    return happened


def result(name: str, arguments: str, *tools: Tool) -> e.ToolEnded:
    ended = results([ToolCall("c", name, arguments)], *(tools or (echo(),)))[-1]
    assert isinstance(ended, e.ToolEnded)
    return ended


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("echo", '{"text": "a', "no valid JSON"),
        ("echo", '["text"]', "one JSON object"),
        ("echo", "{}", "needs `text`"),
        ("echo", '{"text": "a", "colour": 1}', "does not take `colour`"),
        ("echo", '{"text": 1}', "`text` of `echo` must be of type string"),
        ("echo", '{"text": "a", "times": true}', "must be of type integer"),
        ("shout", '{"text": "a"}', "There is no tool `shout`. The tools are: echo."),
    ],
)
def test_what_is_wrong_with_a_call_is_said_to_the_model(name: str, arguments: str, says: str) -> None:
    ended = result(name, arguments)
    assert not ended.ok and says in ended.text


def test_a_good_call_starts_and_ends() -> None:
    happened = results([ToolCall("c", "echo", '{"text": "a", "times": 2}')], echo())
    assert [type(event) for event in happened] == [e.ToolStarted, e.ToolEnded]
    assert happened[1].ok and happened[1].text == "{'text': 'a', 'times': 2}"


def test_empty_arguments_are_an_empty_object() -> None:
    assert result("list", "", Tool("list", "", {"type": "object"}, echo().run)).text == "{}"


def test_a_tool_that_asks_shows_its_preview_and_runs_only_when_allowed() -> None:
    call = ToolCall("c", "echo", '{"text": "a"}')
    assert [type(event) for event in results([call], echo(asks=True))] == [
        e.ApprovalRequested, e.ToolStarted, e.ToolEnded,
    ]  # fmt: skip
    asked, ended = results([call], echo(asks=True), answer="No, thank you.")
    assert isinstance(asked, e.ApprovalRequested) and asked.preview == "preview!" and asked.seconds == 5
    assert isinstance(ended, e.ToolEnded) and ended.text == "No, thank you." and not ended.ok


def test_a_call_that_would_do_something_else_than_what_was_allowed_is_not_run() -> None:
    states = iter(["+ one line", "- the work of another"])
    tool = replace(echo(asks=True), preview=lambda arguments: next(states))
    asked, ended = results([ToolCall("c", "echo", '{"text": "a"}')], tool)
    assert isinstance(asked, e.ApprovalRequested) and asked.preview == "+ one line"
    assert isinstance(ended, e.ToolEnded) and (ended.text, ended.ok) == (CHANGED, False)


def test_what_is_asked_is_made_when_its_turn_has_come() -> None:
    """Two sub-agents write one file: the second question shows what the first one's call left, not what was before."""
    file = ["one"]

    async def write(arguments: dict[str, Any]) -> str:
        await asyncio.sleep(0.01)
        file[0] = arguments["text"]
        return "written"

    async def scenario() -> list[str]:
        happened: list[Any] = []
        approvals, alone = Approvals(happened.append), asyncio.Lock()
        tool = replace(echo(asks=True, run=write), preview=lambda arguments: f"{file[0]} -> {arguments['text']}")
        runners = [Calls({"echo": tool}, happened.append, approvals.ask, 5, alone=alone) for _ in "AB"]
        call = [ToolCall(name, "echo", f'{{"text": "{name}"}}') for name in "AB"]
        both = [asyncio.create_task(runner.run(1, each)) for runner, each in zip(runners, call, strict=True)]
        shown = []
        while not all(each.done() for each in both):
            if approvals.waiting and approvals.waiting.preview not in shown:
                shown.append(approvals.waiting.preview)
                await asyncio.sleep(0.05)
                assert approvals.answer(approvals.waiting.call_id, allowed=True)
            await asyncio.sleep(0)
        ended = [each for each in happened if isinstance(each, e.ToolEnded)]
        assert [each.ok for each in ended] == [True, True]
        return shown

    assert asyncio.run(scenario()) == ["one -> A", "A -> B"]


def test_what_a_tool_raises_becomes_a_result() -> None:
    async def fail(_: dict[str, Any]) -> str:
        raise ZeroDivisionError("by nothing")

    async def complain(_: dict[str, Any]) -> str:
        raise ToolError("Take the other file.")

    assert "ZeroDivisionError" in result("echo", '{"text": "a"}', echo(run=fail)).text
    ended = result("echo", '{"text": "a"}', echo(run=complain))
    assert (ended.text, ended.ok) == ("Take the other file.", False)


def test_a_result_is_bounded_and_clean() -> None:
    async def much(_: dict[str, Any]) -> str:
        return "\ud800" + "x" * (RESULT_CHARS + 9)

    text = result("echo", '{"text": "a"}', echo(run=much)).text
    assert text.startswith("\ufffd") and text.endswith("[10 more characters left out]")
    text.encode()


def test_a_call_whose_result_has_left_the_context_is_run_again() -> None:
    call = ToolCall("c", "echo", '{"text": "a"}')
    happened = results([call] * REPEATS_REFUSED, echo(), left=True)
    assert sum(isinstance(event, e.ToolStarted) for event in happened) == REPEATS_REFUSED


def test_the_same_call_again_and_again_is_not_run_again() -> None:
    call = ToolCall("c", "echo", '{"text": "a"}')
    happened = results([call] * REPEATS_ENDED, echo())
    started = [event for event in happened if isinstance(event, e.ToolStarted)]
    ended = [event for event in happened if isinstance(event, e.ToolEnded)]
    assert len(started) == REPEATS_REFUSED - 1
    assert [event.ok for event in ended] == [True] * len(started) + [False] * (REPEATS_ENDED - len(started))
    assert "times in a row" in ended[-1].text
    other = ToolCall("c", "echo", '{"text": "b"}')
    happened = results([call, call, other, call, call], echo())
    assert len([event for event in happened if isinstance(event, e.ToolStarted)]) == 5


def test_a_real_tool_stays_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.txt").write_text("no")
    tools = file_tools(Workspace(tmp_path / "inside", "w"))
    ended = result("read", '{"path": "../secret.txt"}', *tools)
    assert not ended.ok and "outside the workspace" in ended.text
