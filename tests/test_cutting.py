"""Where a cut may fall: hard orders by hand, and the rules over random ones."""

from hypothesis import given
from hypothesis import strategies as st

from harness.context import Entry, make_entry
from harness.cutting import cut_at, place_of_tail, tail_of, tail_of_rounds
from harness.messages import AssistantMessage, SummaryMessage, ToolCall, ToolResult, UserMessage
from harness.sizes import Size
from tests.safe_places import safe_places


def entries(*parts: str, tokens: int = 10) -> list[Entry]:
    """Build entries from a short form: "u" user, "a" text, "a:1,2" calls, "r1" a result, "s" a summary, "!" larger."""
    made = []
    for number, part in enumerate(parts, 1):
        size = Size(40, tokens * (10 if part.endswith("!") else 1))
        kind, rest = part.rstrip("!")[0], part.rstrip("!")[1:]
        match kind:
            case "u":
                message = UserMessage("do it")
            case "s":
                message = SummaryMessage("[Background]", "## Goal")
            case "r":
                message = ToolResult(rest, "read", "text")
            case _:
                calls = tuple(ToolCall(each, "read", "{}") for each in rest.lstrip(":").split(",") if each)
                message = AssistantMessage("text", calls)
        made.append(make_entry(number, 1, message, lambda wire, size=size: size))
    return made


def test_a_cut_never_parts_a_call_from_its_result() -> None:
    batch = entries("u", "a:1,2,3", "r1", "r2", "r3", "a")
    assert safe_places(batch) == [True, True, False, False, False, True, True]
    # A text between a call and its result, and two calls answered late: both orders are refused by providers when cut.
    assert safe_places(entries("u", "a:1", "a", "r1", "u")) == [True, True, False, False, True, True]
    assert safe_places(entries("a:1", "a:2", "r1", "r2")) == [True, False, False, False, True]


def test_the_tail_goes_back_to_a_message_that_may_begin_it() -> None:
    long = entries("u", "a:1", "r1", "a:2", "r2!", "a:3", "r3!")
    assert place_of_tail(long, tail_of(50)) == 5, "the last result alone is enough, and its call comes with it"
    assert place_of_tail(long, tail_of(105)) == 5
    assert place_of_tail(long, tail_of(150)) == 3
    assert place_of_tail(long, tail_of(10_000)) == 0
    assert place_of_tail(long, tail_of(10, 5)) == 1, "at least so many messages"
    assert place_of_tail(long, tail_of(500, 5, 130)) == 5, "and never more than the hard limit, if that can be"


def test_rounds_are_replies_with_their_results() -> None:
    three = entries("u", "a:1", "r1", "a:2", "r2", "a:3", "r3")
    assert [place_of_tail(three, tail_of_rounds(n)) for n in (0, 1, 2, 3, 9)] == [5, 5, 3, 1, 0]


def test_the_running_request_and_open_calls_are_pinned() -> None:
    waiting = entries("u", "a:1,2", "r1", "u", "a", "a", "a")
    cut = cut_at(waiting, 5, request=4, waiting={"2"})
    assert (cut.removed, cut.pinned, cut.kept) == ((1, 5), (2, 3, 4), (6, 7))
    assert cut_at(waiting, 5, request=0).pinned == ()
    assert cut_at(waiting, 2, request=4).pinned == (), "what is behind the cut is kept anyway"


PARTS = st.lists(st.sampled_from(["u", "a", "a:x", "a:x,y", "s", "r", "u!", "a!"]), max_size=25)


@given(PARTS, st.integers(0, 300), st.integers(1, 6))
def test_any_history_is_cut_safely_or_not_at_all(parts: list[str], tokens: int, messages: int) -> None:
    calls, open_calls, made = 0, [], []
    for part in parts:
        if part == "r":
            made += [f"r{open_calls.pop(0)}"] if open_calls else []
            continue
        if ":" in part:
            own = [str(calls + n) for n in range(part.count(",") + 1)]
            calls += len(own)
            open_calls += own
            part = "a:" + ",".join(own)
        made.append(part)
    history = entries(*made)
    wanted = tail_of(tokens, messages)
    place = place_of_tail(history, wanted)
    safe = safe_places(history)
    assert place == next((each for each in range(wanted(history), 0, -1) if safe[each]), 0)
    cut = cut_at(history, place, request=0, waiting=open_calls)
    by_seq = {entry.seq: entry for entry in history}
    stays = [by_seq[seq] for seq in (*cut.pinned, *cut.kept)]
    asked: set[str] = set()
    for entry in stays:
        if isinstance(entry.message, AssistantMessage):
            asked |= {call.id for call in entry.message.calls}
        assert not isinstance(entry.message, ToolResult) or entry.message.call_id in asked
    if cut.kept and place:
        assert by_seq[cut.kept[0]].category in ("user", "assistant")
    gone = {
        call.id for seq in cut.removed if isinstance(m := by_seq[seq].message, AssistantMessage) for call in m.calls
    }
    assert not gone & set(open_calls), "an unanswered call is never lost"
    assert sorted((*cut.removed, *cut.pinned, *cut.kept)) == [entry.seq for entry in history]
