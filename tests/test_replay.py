"""The fold: what is rebuilt equals what was sent, and a turn does not reread the history."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import events as e
from harness.replay import State, fold, rebuild
from harness.request import digest, dump
from harness.tokens import size_of_message
from tests.session_events_support import TOOLS, Story


def test_the_request_is_system_messages_and_tools_in_order() -> None:
    story = Story()
    story.task("one", "the result", "the answer")
    request = story.state.request()
    assert [message["role"] for message in request.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert request.tools == TOOLS
    assert json.loads(request.body())["messages"][3] == {
        "role": "tool", "tool_call_id": "c1", "content": "the result",
    }  # fmt: skip


def test_every_call_is_rebuilt_with_the_digest_that_was_recorded() -> None:
    story = Story()
    for name in ("one", "two", "three"):
        story.task(name, "r " + name, "a " + name)
    started = [event for _, event in story.events if isinstance(event, e.ModelCallStarted)]
    assert len(started) == 6
    for event in started:
        request = rebuild(story.events, event.call)
        assert digest(request) == event.digest
        assert len(request.messages) == event.messages
    with pytest.raises(KeyError):
        rebuild(story.events, 7)


def test_a_part_is_the_characters_of_its_json() -> None:
    story = Story()
    story.task("one", "结果", "answer")
    totals, request = story.state.context.totals, story.state.request()
    assert totals["results"].chars == len(dump(request.messages[3]))
    assert totals["tools"].chars == len(dump(list(TOOLS)))
    every = sum(len(dump(message)) for message in request.messages) + len(dump(list(TOOLS)))
    assert story.state.context.total.chars == every


def test_an_empty_reply_is_no_message() -> None:
    story = Story()
    story.start("one")
    story.reply("")
    assert [entry.category for entry in story.state.history] == ["user"]


def test_a_thought_goes_back_only_with_the_call_that_it_led_to() -> None:
    story = Story()
    story.start("one")
    for calls in ((e.ToolCall("a", "read", "{}"),), ()):
        story.emit(e.ModelCallStarted(call=1, task=1, turn=1, messages=1, parts={}, digest=""))
        story.emit(
            e.ModelCallEnded(
                call=1, task=1, turn=1, text="t", calls=calls, reasoning="because", finish="stop",
                usage=e.Usage(), seconds=0,
            )
        )  # fmt: skip
    wires = [entry.wire for entry in story.state.history]
    assert wires[1]["reasoning_content"] == "because"
    assert "reasoning_content" not in wires[2]


text = st.text(max_size=60)


@given(st.lists(st.tuples(text, text, text), min_size=1, max_size=5))
def test_a_reload_gives_the_same_bytes(tasks: list[tuple[str, str, str]]) -> None:
    story = Story()
    for request, result, answer in tasks:
        story.task(request, result, answer or "-")
    again = fold(story.events)
    assert again.request().body() == story.state.request().body()
    assert again.context.totals == story.state.context.totals
    assert again.context.digest("m") == digest(again.request())


def test_no_message_is_measured_twice() -> None:
    measured: list[int] = []
    story = Story()
    for number in range(50):
        story.task(f"task {number}", "r", "a")

    def measure(wire: dict) -> e.Size:
        measured.append(id(wire))
        return size_of_message(wire)

    state = State(measure)
    for seq, event in story.events:
        state.apply(seq, event)
    # The system prompt and each message of 50 tasks, once.
    assert len(measured) == 1 + 50 * 4
