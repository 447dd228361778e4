"""Calls in the text of a reply: the forms that are seen in the wild, and everything that must stay text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.messages import ToolCall
from harness.model.reply import Reply
from harness.model.text_calls import find_calls, take_calls
from harness.sizes import Usage

OFFERED = ("read", "write", "bash")
TICKS = "```"


def dsml(*calls: str, bars: str = "｜DSML｜", section: str = "function_calls") -> str:
    body = "\n".join(["<%sSECTION>", *calls, "</%sSECTION>"]) if section else "\n".join(calls)
    return body.replace("SECTION", section).replace("%s", bars)


def invoke(name: str, *parameters: str) -> str:
    return "\n".join([f'<%sinvoke name="{name}">', *parameters, "</%sinvoke>"])


def parameter(name: str, value: str, string: str = ' string="true"') -> str:
    return f'<%sparameter name="{name}"{string}>{value}</%sparameter>'


READ_A = invoke("read", parameter("path", "a.py"))


@pytest.mark.parametrize(
    ("markup", "calls"),
    [
        (dsml(READ_A), [("read", {"path": "a.py"})]),
        (dsml(READ_A, section="tool_calls"), [("read", {"path": "a.py"})]),
        (dsml(READ_A, bars="｜｜DSML｜｜", section="tool_calls"), [("read", {"path": "a.py"})]),
        (dsml(READ_A, bars="｜｜DSML｜｜ ", section="calls"), [("read", {"path": "a.py"})]),
        (dsml(READ_A, bars="|DSML|"), [("read", {"path": "a.py"})]),
        (dsml(READ_A, bars="‖DSML‖", section="tool_calls"), [("read", {"path": "a.py"})]),
        (dsml(READ_A, section=""), [("read", {"path": "a.py"})]),
        (dsml(READ_A).removesuffix("</｜DSML｜function_calls>"), [("read", {"path": "a.py"})]),
        (dsml(READ_A, READ_A), [("read", {"path": "a.py"})] * 2),
        (dsml(READ_A) + "<｜end▁of▁sentence｜>\n", [("read", {"path": "a.py"})]),
        (dsml(invoke("bash")), [("bash", {})]),
        (dsml('<%sinvoke name="bash"/>'), [("bash", {})]),
        (dsml(invoke("read", '{"path": "a", "limit": 3}')), [("read", {"path": "a", "limit": 3})]),
        (
            dsml(invoke("read", parameter("path", "a"), parameter("limit", "30", ' string="false"'))),
            [("read", {"path": "a", "limit": 30})],
        ),
        (dsml(invoke("read", parameter("path", " 7 \n", ""))), [("read", {"path": " 7 \n"})]),
        (
            dsml(invoke("write", parameter("content", '<b>x</b>\n<%sinvoke name="bash">\n```\n'))),
            [("write", {"content": '<b>x</b>\n<｜DSML｜invoke name="bash">\n```\n'})],
        ),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n"
            '{"path": "a"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
            [("read", {"path": "a"})],
        ),
        (
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>'
            "<｜tool▁call▁begin｜>bash<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            [("read", {"path": "a"}), ("bash", {})],
        ),
        (
            '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>\n'
            '<tool_call>{"name": "bash", "arguments": "{}"}</tool_call>',
            [("read", {"path": "a"}), ("bash", {})],
        ),
        (
            '<tool_call>{"name": "write", "arguments": {"content": "</tool_call>"}}',
            [("write", {"content": "</tool_call>"})],
        ),
        (TICKS + 'json\n{"name": "read", "arguments": {"path": "a"}}\n' + TICKS, [("read", {"path": "a"})]),
        (TICKS + '\n{"name": "read", "parameters": {"path": "a"}}\n' + TICKS + "\n", [("read", {"path": "a"})]),
        (
            TICKS + 'json\n{"name": "write", "arguments": {"content": "\\n```py\\nx\\n```\\n"}}\n' + TICKS,
            [("write", {"content": "\n```py\nx\n```\n"})],
        ),
    ],
)
def test_each_form_is_read_with_the_text_before_it(markup: str, calls: list[tuple[str, dict]]) -> None:
    assert find_calls(markup, OFFERED) == ("", calls)
    assert find_calls(f"First I look.\n\n{markup}", OFFERED) == ("First I look.", calls)
    shown = f"{TICKS}py\nx = 1\n{TICKS}\nNow:"
    assert find_calls(f"{shown}\n{markup}", OFFERED) == (shown, calls)
    assert find_calls(markup, ["other"]) == (markup, [])
    assert find_calls(f"{markup}\nThis is how it looks.", OFFERED)[1] == []


def test_the_json_of_a_call_alone_is_a_call_but_not_after_words() -> None:
    text = '{"name": "read", "arguments": {"path": "a"}}'
    assert find_calls(f" {text}\n", OFFERED) == ("", [("read", {"path": "a"})])
    assert find_calls(f"Send this: {text}", OFFERED)[1] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No markup.",
        f"It looks so:\n{TICKS}xml\n{dsml(READ_A)}\n{TICKS}",
        f"It looks so:\n{TICKS}xml\n{dsml(READ_A)}",
        f"Text <｜DSML｜function_calls> and then\n{dsml(READ_A)}",
        dsml(invoke("read", parameter("path", "a"), parameter("path", "b"))),
        dsml(invoke("read", parameter("limit", "many", ' string="false"'))),
        dsml(invoke("read", parameter("limit", "NaN", ' string="false"'))),
        dsml(invoke("read", "stray words", parameter("path", "a"))),
        dsml(invoke("read", parameter("path", "a"), "stray words")),
        dsml(invoke("read", parameter("path", "a"), '{"path": "b"}')),
        dsml(invoke("read", "[1]")),
        dsml(READ_A, invoke("launch", parameter("target", "x"))),
        dsml(READ_A.replace("</%sinvoke>", "")),
        dsml(READ_A, READ_A, section="").removesuffix("</｜DSML｜invoke>"),
        dsml(READ_A.replace("</%sparameter>", "")),
        dsml(READ_A).replace("invoke name=", "invoke nom="),
        dsml(READ_A, "between", READ_A),
        dsml("<%sthing>", READ_A),
        "<｜DSML｜function_calls></｜DSML｜function_calls>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{broken<｜tool▁call▁end｜>",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{"path": "a"}',
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>read<｜tool▁call▁end｜>",
        '<tool_call>{"name": "read", "arguments": {"path": "a"</tool_call>',
        '<tool_call>{"name": "read"}</tool_call>',
        '<tool_call>{"name": "read", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": 1, "arguments": {}}</tool_call>',
        TICKS + 'json\n{"name": "read", "arguments": {}, "why": "an example"}\n' + TICKS,
        TICKS + 'python\n{"name": "read", "arguments": {}}\n' + TICKS,
        TICKS + 'json\n{"name": "read", "age": 3}\n' + TICKS,
        TICKS + 'json\n{"name": "read", "arguments": {}}\n{"name": "read", "arguments": {}}\n' + TICKS,
        "[" * 100_000,
        "<tool_call>" + '{"a":' * 100_000,
    ],
)
def test_what_is_broken_quoted_or_no_call_stays_text(text: str) -> None:
    assert find_calls(text, OFFERED) == (text, [])


def reply(text: str, *calls: ToolCall) -> Reply:
    return Reply(text, calls, "", "stop", Usage(), 1.0, ("no_usage",))


def test_taken_calls_are_marked_and_have_ids_and_json() -> None:
    text = dsml(invoke("write", parameter("content", "数据"), parameter("deep", '"\\ud800"', ' string="false"')))
    taken = take_calls(reply(text), OFFERED, lambda: "new")
    assert taken.text == "" and taken.marks == ("calls_in_text", "no_usage")
    assert taken.calls == (ToolCall("new", "write", '{"content": "数据", "deep": "\ufffd"}', from_text=True),)


def test_real_calls_or_no_tools_leave_the_text_alone() -> None:
    text = dsml(READ_A)
    real = reply(text, ToolCall("a", "bash", "{}"))
    assert take_calls(real, OFFERED, str) is real
    assert take_calls(reply(text), [], str) == reply(text)
    assert take_calls(reply("Done."), OFFERED, str) == reply("Done.")


PIECES = st.sampled_from(
    [
        *("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", '<｜DSML｜invoke name="read">', "</｜DSML｜invoke>"),
        *('<｜DSML｜parameter name="a" string="false">', "</｜DSML｜parameter>", "<tool_call>", "</tool_call>", "{}"),
        *(
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
            "function",
            "read",
        ),
        *('{"name": "read", "arguments": {}}', "```json\n", "\n```", "\n", " ", '{"a": 1}', "<", "\ud800"),
    ]
)


@given(st.lists(PIECES | st.text(max_size=4), max_size=14).map("".join))
def test_it_never_raises_and_takes_only_what_is_offered(text: str) -> None:
    kept, found = find_calls(text, OFFERED)
    assert text.startswith(kept)
    assert bool(found) or kept == text
    assert all(name in OFFERED and isinstance(arguments, dict) for name, arguments in found)
    json.dumps(found)


@given(st.text(), st.text(max_size=30))
def test_a_value_comes_through_as_it_is(value: str, before: str) -> None:
    text = f"{before}\n" + dsml(invoke("write", parameter("content", value)))
    kept, found = find_calls(text, OFFERED)
    if found:
        assert (kept, found) == (before.rstrip(), [("write", {"content": value})])
    else:
        assert any(mark in value + before for mark in ("DSML", "```"))


# Work that grows with the square of the length takes minutes here.
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    ['<｜DSML｜invoke name="read">' * 20_000, "<tool_call>{" * 30_000, "```\n" * 50_000, "<｜tool▁sep｜>" * 30_000]
    + [dsml(invoke("write", *[parameter(f"p{i}", "x") for i in range(5_000)])), "<" * 300_000, " " * 300_000],
)
def test_a_long_text_does_not_hang_it(text: str) -> None:
    kept, found = find_calls(text, OFFERED)
    assert kept == text or len(found) == 1
