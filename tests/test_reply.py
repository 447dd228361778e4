"""A reply put together from chunks: whatever a server sends, and however it is split."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.messages import ToolCall
from harness.model.reply import Assembly, Reply
from harness.model.usage import read_usage
from harness.sizes import Usage
from tests.wire_server import delta


def ids() -> Iterator[str]:
    return (f"made_{number}" for number in itertools.count(1))


def assemble(*chunks: dict[str, Any], taken: set[str] | None = None) -> Reply:
    made = ids()
    assembly = Assembly(lambda: next(made))
    for chunk in chunks:
        assembly.add(chunk)
    return assembly.reply(0.0, set() if taken is None else taken)


def call(index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    """A piece of a call; what is None is not sent."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    head = {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return delta(tool_calls=[head | {"function": function}])


def names(reply: Reply) -> list[tuple[str, str, str]]:
    return [(each.id, each.name, each.arguments) for each in reply.calls]


def test_text_and_reasoning_under_either_name() -> None:
    assembly = Assembly(str)
    assert assembly.add(delta(reasoning_content="a")) == [("a", "reasoning")]
    assert assembly.add(delta(reasoning="b", content="c")) == [("b", "reasoning"), ("c", "text")]
    assert assembly.add(delta(content=None)) == []
    reply = assembly.reply(2.5, set())
    assert (reply.text, reply.reasoning, reply.seconds) == ("c", "ab", 2.5)


def test_content_may_be_a_list_of_parts() -> None:
    assert assemble(delta(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])).text == "ab"


def test_a_refusal_is_text_and_marked() -> None:
    reply = assemble(delta("stop", refusal="I will not."))
    assert reply.text == "I will not." and "refusal" in reply.marks


def test_thoughts_in_tags_at_the_beginning_are_reasoning() -> None:
    reply = assemble(delta(content="<think>\nhm"), delta("stop", content=" so</think>\n\nYes."))
    assert (reply.text, reply.reasoning) == ("Yes.", "hm so")
    assert "thought_in_text" in reply.marks
    assert assemble(delta(content="Use <think>x</think> tags")).text == "Use <think>x</think> tags"


def test_calls_by_index_with_name_and_arguments_in_pieces() -> None:
    reply = assemble(
        call(0, "a", "re"),
        call(0, None, "ad"),
        call(1, "b", "bash", ""),
        call(0, None, None, '{"pa'),
        call(1, None, None, '{"command":"ls"}'),
        call(0, None, None, 'th":"x"}'),
        delta("tool_calls"),
    )
    assert names(reply) == [("a", "read", '{"path":"x"}'), ("b", "bash", '{"command":"ls"}')]
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize("index", [0, None])
def test_calls_whose_index_is_always_the_same_or_missing(index: int | None) -> None:
    with_ids = assemble(
        call(index, "a", "read", "{"),
        call(index, "a", None, "}"),
        call(index, "b", "read", "{"),
        call(index, "b", None, "}"),
    )
    assert names(with_ids) == [("a", "read", "{}"), ("b", "read", "{}")]
    whole = assemble(call(index, None, "read", '{"a":1}'), call(index, None, "read", '{"a":2}'))
    assert [each.arguments for each in whole.calls] == ['{"a":1}', '{"a":2}']
    others = assemble(call(index, None, "read", "{}"), call(index, None, "bash", "{}"))
    assert [each.name for each in others.calls] == ["read", "bash"]


def test_a_name_that_is_sent_with_every_piece_counts_once() -> None:
    chunks = [call(0, "a", "read", '{"p"'), call(0, "a", "read", ":"), call(0, "a", "read", '"}"}')]
    assert names(assemble(*chunks)) == [("a", "read", '{"p":"}"}')]
    assert names(assemble(call(0, "a", "read"), call(0, "a", "read", "{}"))) == [("a", "read", "{}")]
    without_ids = [call(0, None, "read", '{"p"'), call(0, None, "read", ':"}'), call(0, None, "read", '"}')]
    assert [each.arguments for each in assemble(*without_ids).calls] == ['{"p":"}"}']


def test_missing_and_double_ids_are_made_anew() -> None:
    reply = assemble(call(0, None, "read"), call(1, "x", "read"), call(2, "x", "read"), taken=set())
    assert [each.id for each in reply.calls] == ["made_1", "x", "made_2"]
    assert "made_ids" in reply.marks
    taken = {"x"}
    assert [each.id for each in assemble(call(0, "x", "read"), taken=taken).calls] == ["made_1"]
    assert taken == {"x", "made_1"}


def test_arguments_may_be_missing_or_an_object() -> None:
    assert [each.arguments for each in assemble(call(0, "a", "read"), call(1, "b", "x", {"p": "é"})).calls] == [
        "{}",
        '{"p": "é"}',
    ]


def test_a_name_that_a_provider_would_not_take_back_is_changed() -> None:
    assert [each.name for each in assemble(call(0, "a", "read the file!"), call(1, "b", None, "{}")).calls] == [
        "read_the_file_",
        "unnamed",
    ]
    assert assemble(call(0, "a")).calls == ()


def test_the_first_of_two_answers_is_the_reply() -> None:
    two = [
        {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"},
        {"index": 1, "delta": {"content": "b"}, "finish_reason": "length"},
    ]
    reply = assemble({"choices": two})
    assert (reply.text, reply.finish) == ("a", "stop")
    assert "more_choices" in reply.marks
    assert assemble({"choices": two[1:]}).text == ""
    unnumbered = [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]
    assert assemble({"choices": unnumbered}).text == "a"


def test_nothing_at_all_is_marked() -> None:
    assert assemble().marks == ("empty", "no_finish", "no_usage")
    assert "empty" in assemble(delta("stop", content=" \n")).marks
    assert "empty" in assemble(delta("stop", reasoning="only a thought")).marks
    assert "empty" not in assemble(call(0, "a", "read")).marks


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (None, Usage()),
        ("many", Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 0}, Usage(9)),
        ({"prompt_tokens": True, "completion_tokens": 2.5}, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 2}, Usage(9, 2)),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(9)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}}, Usage(9, None, 0)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(9, None, 8)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5}, Usage(9, None, 4)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 10}}, Usage(9)),
        ({"prompt_tokens": 0, "prompt_cache_hit_tokens": 0}, Usage()),
    ],
)
def test_usage_in_its_forms(raw: object, usage: Usage) -> None:
    assert read_usage(raw) == usage


def test_the_last_usage_with_anything_in_it_counts() -> None:
    chunks = [{"usage": {"prompt_tokens": 5}}, {"usage": {"prompt_tokens": 7, "completion_tokens": 1}}, {"usage": None}]
    assert assemble(*chunks, {"usage": {"prompt_tokens": 0}}).usage == Usage(7, 1)


def test_the_time_for_reading_the_prompt_is_told_where_a_server_tells_it() -> None:
    told = [{"usage": {"prompt_tokens": 151}, "timings": {"prompt_ms": ms}} for ms in (41.25, "soon", -1, float("nan"))]
    assert [assemble(chunk).usage.prompt_ms for chunk in told] == [41.25, None, None, None]


def test_lone_surrogates_are_replaced_and_split_pairs_are_joined() -> None:
    assert assemble(delta(content="a\ud800b")).text == "a\ufffdb"
    assert assemble(delta(content="\ud83d"), delta(content="\ude00")).text == "😀"
    assert Assembly(str).add(delta(content="\ud83d")) == [("\ufffd", "text")]
    reply = assemble(call(0, "\ud800", "read", '{"a":"\ud83d'), call(0, None, None, '\ude00\ud800"}'))
    assert names(reply) == [("\ufffd", "read", '{"a":"😀\ufffd"}')]


PARTS = st.text(min_size=1, max_size=12)


def split(text: str, cuts: list[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[a:b] for a, b in itertools.pairwise(places)]


@given(PARTS, PARTS, st.lists(st.tuples(st.sampled_from(["read", "write", "edit"]), PARTS), max_size=3), st.data())
def test_a_stream_split_anywhere_gives_the_same_reply(
    text: str, thought: str, wanted: list[tuple[str, str]], data: st.DataObject
) -> None:
    cuts = st.lists(st.integers(0, 30), max_size=6)
    chunks = [delta(reasoning_content=piece) for piece in split(thought, data.draw(cuts))]
    chunks += [delta(content=piece) for piece in split(text, data.draw(cuts))]
    expected = []
    for number, (name, value) in enumerate(wanted):
        arguments = json.dumps({"path": value}, ensure_ascii=data.draw(st.booleans()))
        pieces = split(name, data.draw(cuts))
        chunks += [call(number, f"id{number}" if i == 0 else None, piece) for i, piece in enumerate(pieces)]
        chunks += [call(number, None, None, piece) for piece in split(arguments, data.draw(cuts))]
        expected.append(ToolCall(f"id{number}", name, arguments))
    reply = assemble(*chunks, delta("stop"))
    assert (reply.text, reply.reasoning, reply.calls) == (text, thought, tuple(expected))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "tool_calls", "function", "name", "arguments", "id", "index"]
            )
            | st.sampled_from(["usage", "prompt_tokens", "finish_reason", "message"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage"]), JUNK), max_size=4))
def test_no_chunk_breaks_it(chunks: list[dict[str, Any]]) -> None:
    reply = assemble(*chunks)
    reply.text.encode()
    assert len({each.id for each in reply.calls}) == len(reply.calls)
