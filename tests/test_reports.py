"""One test for each kind of fault that users of other agents have reported in public, by the letter of our list.

Each fails when the line that guards against it is taken out. Not here: what a subagent's context does (C17), since this
agent has none yet; and what only a model's wording decides, such as a summary that accuses its reader.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness import events as e
from harness.accounting import Anchor, anchor, estimate
from harness.breaker import MOST_FRUITLESS
from harness.by_hand import cuts, plan_by_hand
from harness.compaction import plan_cut, refusal
from harness.context import Entry, make_entry
from harness.cutting import cut_at, place_of_tail, tail_of
from harness.messages import AssistantMessage, SummaryMessage, ToolCall, ToolResult, UserMessage
from harness.model.usage import read_usage
from harness.preview import shortened
from harness.rendering import clip
from harness.replay import State, fold
from harness.request import to_wire
from harness.sizes import Size, Usage
from harness.thresholds import margin_threshold, reserve_threshold, share
from harness.tokens import count, size_of_message
from tests.strategies_support import COMMANDS, FAILURE, SYSTEM, Run, Step, calls_in, results_in

LINE = "The probe at 08:03 returned 503, so the pool was confirmed as the cause. "
# Characters of `LINE` to a token, about.
PER_TOKEN = 3.4


def watch_nothing(run: Run, step: Step) -> None:
    """Check nothing: each test here looks for one thing."""


def strategy(
    number: str = "08", summarisers: Sequence[str] = ("good",), folder: Path | None = None, **chosen: int
) -> Run:
    """Return a session of one lab; in lab 08 it acts above 2,000 tokens and keeps about 400."""
    usual = {"window": 100_000, "trigger": 2_000, "keep": 400, "reserve": 800, "budget": 100}
    return Run((number,), usual | chosen, watch_nothing, summarisers, folder=folder)


def text_of(tokens: int, name: str = "") -> str:
    """Return a text of about so many tokens that begins with `name`."""
    return f"{name} {LINE * (1 + int(tokens * PER_TOKEN) // len(LINE))}"[: int(tokens * PER_TOKEN)]


async def turn(
    run: Run, *results: str | None, arguments: str = '{"path":"a"}', usage: Usage | None = None
) -> list[ToolCall]:
    """Tell one turn with a call for each of `results`; None is one that nobody answers."""
    await run.before_turn()
    calls = run.reply("", [("read", arguments)] * len(results), usage=lambda tokens: usage or Usage())
    for call, text in zip(calls, results, strict=True):
        if text is not None:
            run.result(call, text)
    return calls


async def answered(run: Run, request: str, *results: str) -> None:
    """Tell one whole task with a call."""
    run.start(request)
    await turn(run, *results)
    await run.before_turn()
    run.reply("It is done.")
    await run.on_stop()
    run.end()


def told(run: Run, *kinds: type) -> list:
    """Return the run's events of these kinds."""
    return [event for _, event in run.events if isinstance(event, kinds)]


def entry(seq: int, message: UserMessage | AssistantMessage | ToolResult | SummaryMessage, tokens: int = 10) -> Entry:
    return make_entry(seq, 1, message, lambda wire: Size(4 * tokens, tokens))


def call(name: str) -> ToolCall:
    return ToolCall(name, "read", "{}")


def asks(seq: int, *names: str) -> Entry:
    return entry(seq, AssistantMessage("", tuple(map(call, names))))


def result(seq: int, name: str, tokens: int = 10) -> Entry:
    return entry(seq, ToolResult(name, "read", "r"), tokens)


def says(seq: int, text: str = "so it is") -> Entry:
    return entry(seq, AssistantMessage(text))


def user(seq: int, text: str = "do it") -> Entry:
    return entry(seq, UserMessage(text))


def assert_paired(entries: Sequence[Entry]) -> None:
    """Every result has its call before it, and stands once."""
    asked, found = calls_in(entries), results_in(entries)
    assert len(found) == sum(each.category == "results" for each in entries)
    order = [each.seq for each in entries]
    assert all(name in asked and order.index(asked[name].seq) < order.index(r.seq) for name, r in found.items())


def summaries_asked(run: Run) -> list[str]:
    """Return what the summariser was given, each time."""
    return [request.messages[1]["content"] for request in run.gateway.asked]


# --- C1: calls and results that lose each other ---------------------------------------------------------------------


def test_c1_a_cut_that_would_leave_a_result_alone_is_refused() -> None:
    """A result outlives the summary of its call."""
    run = strategy()
    for seq, each in enumerate((user(1), asks(2, "t1"), result(3, "t1"), user(4)), 1):
        run.state.context.append(replace(each, seq=seq, size=Size(400, 100)))
    cut = cut_at(run.state.context.entries, 2, request=0)
    summary = make_entry(0, 1, SummaryMessage("[b]", "s"), size_of_message)
    assert refusal(run.state.context, plan_cut("x", "y", cut, measured=9, budget=1), summary) == "broken_pairs"


def test_c1_a_batch_in_flight_is_still_whole_after_a_compaction_in_its_middle() -> None:
    """What was counted while a parallel batch ran is applied once the batch has ended."""

    async def scenario() -> None:
        run = strategy(keep=0)
        run.start("do it")
        first, second, third = run.reply("", [("read", "{}")] * 3)
        run.result(first, text_of(300))
        for _ in range(3):
            await turn(run, text_of(700))
        await run.before_turn()
        assert told(run, e.ContextCompacted)
        for late in (second, third):
            run.result(late, "late")
        here = results_in(run.state.context.entries)
        assert {first.id, second.id, third.id} <= here.keys()
        assert_paired(run.state.context.entries)
        assert fold(run.events).request().body() == run.state.request().body(), "and after a reload"

    asyncio.run(scenario())


def test_c1_a_second_cut_falls_not_between_a_call_and_the_result_that_came_after_the_first() -> None:
    """Of two compactions in a chain the inner one stands between a call and its result."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        [late] = run.reply("", [("read", "{}")])
        for _ in range(3):
            await turn(run, text_of(900))
        await run.before_turn()
        assert told(run, e.ContextCompacted)
        await turn(run, text_of(900))
        # What is to be kept now begins between the two.
        run.result(late, text_of(300))
        for _ in range(4):
            await turn(run, text_of(900))
        assert len(told(run, e.ContextCompacted)) >= 2
        assert "broken_pairs" not in [event.reason for event in told(run, e.CompactionRefused)]
        assert late.id not in results_in(run.state.context.entries), "once it is answered, it can go"
        assert_paired(run.state.context.entries)

    asyncio.run(scenario())


def test_c1_a_call_without_a_result_at_the_very_end_can_still_be_answered() -> None:
    """Compaction comes right after a call whose result never came."""

    async def scenario() -> None:
        run = strategy(keep=0)
        await answered(run, text_of(1_200), text_of(1_200))
        run.start("and now this")
        [waits] = run.reply("", [("read", "{}")])
        run.end("interrupted")
        run.start("go on")
        for _ in range(3):
            await turn(run, text_of(900))
        await run.before_turn()
        assert told(run, e.ContextCompacted)
        run.result(waits, "stopped", ok=False)
        assert_paired(run.state.context.entries)
        assert waits.id in results_in(run.state.context.entries)

    asyncio.run(scenario())


def test_c1_a_call_that_waits_for_a_person_is_not_compacted_away() -> None:
    """A call waits for a yes while others go on; later the yes comes and finds no call."""

    async def scenario() -> None:
        run = strategy(keep=200)
        run.start("do it")
        [waits] = run.reply("", [("bash", "{}")])
        for _ in range(4):
            await turn(run, text_of(1_200))
        assert told(run, e.ContextCompacted)
        assert waits.id in calls_in(run.state.context.entries)
        run.result(waits, "allowed")
        assert_paired(run.state.context.entries)

    asyncio.run(scenario())


def test_c1_one_call_that_nobody_ever_answers_does_not_stop_compaction() -> None:
    """Behind an unanswered call nothing is compacted any more, and nobody says so."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        await turn(run, None)
        for _ in range(50):
            await turn(run, text_of(800))
        assert len(told(run, e.ContextCompacted)) > 10
        assert not told(run, e.CompactionRefused), "no compaction meets an orphan that the one before left"
        assert run.state.context.total.tokens < 2_000

    asyncio.run(scenario())


def test_c1_where_the_tail_begins_inside_a_batch_another_cut_is_found() -> None:
    """A strict guard refuses every cut that would break a pair, and no other one is tried."""

    async def scenario() -> None:
        run = strategy(keep=200)
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, *[text_of(400)] * 6)
        await run.before_turn()
        assert not told(run, e.CompactionRefused)
        assert told(run, e.ContextCompacted)

    asyncio.run(scenario())


# --- C2: parallel calls that are split ------------------------------------------------------------------------------


def test_c2_a_batch_of_eight_stays_whole_however_few_messages_are_kept() -> None:
    """The way back to the call is longer than the cut looks."""
    names = [f"t{n}" for n in range(8)]
    batch = [user(1), says(2), asks(3, *names), *(result(4 + n, name) for n, name in enumerate(names))]
    assert place_of_tail(batch, tail_of(0, 4)) == 2


def test_c2_a_text_or_another_call_between_a_call_and_its_result_is_no_place_to_cut() -> None:
    """Providers refuse a call whose result comes only after another message."""
    text_between = [user(1), asks(2, "t1"), says(3), result(4, "t1"), says(5)]
    assert [place_of_tail(text_between, tail_of(0, n)) for n in (1, 2, 3, 4)] == [4, 1, 1, 1]
    call_between = [user(1), asks(2, "t1"), asks(3, "t2"), result(4, "t1"), result(5, "t2")]
    assert [place_of_tail(call_between, tail_of(0, n)) for n in (1, 2, 3)] == [1, 1, 1]


# --- C3: loops without progress -------------------------------------------------------------------------------------


def test_c3_what_cannot_shrink_below_the_limit_ends_after_two_passes() -> None:
    """System prompt, tools and tail alone are above the limit, so that compaction runs before every turn."""

    async def scenario() -> None:
        run = strategy(trigger=50)
        run.start("do it")
        for _ in range(12):
            await turn(run, text_of(800))
        assert len(told(run, e.ContextCompacted)) == MOST_FRUITLESS
        reasons = [event.reason for event in told(run, e.CompactionRefused)]
        assert reasons == ["nothing_to_cut", "breaker_no_progress"]

    asyncio.run(scenario())


def test_c3_what_another_counter_calls_progress_is_judged_by_the_share_that_went() -> None:
    """The provider counts more than we do, so each pass seems to have come below the limit and none has."""

    async def scenario() -> None:
        run = strategy(trigger=4_000, keep=1_500)
        run.start("do it")
        for _ in range(12):
            # Three times our own count.
            tokens = run.state.context.total.tokens
            await turn(run, text_of(800), text_of(800), usage=Usage(3 * tokens, 5, 0))
        # The first pass really helps.
        assert len(told(run, e.ContextCompacted)) <= MOST_FRUITLESS + 1
        assert told(run, e.CompactionRefused)[-1].reason == "breaker_no_progress"

    asyncio.run(scenario())


def test_c3_a_session_whose_window_nobody_knows_does_not_compact_a_greeting() -> None:
    """Without the model's limits the threshold is zero, and the first word starts a loop."""

    async def scenario() -> None:
        run = strategy(window=0, trigger=0, reserve=32_768)
        run.emit(e.ModelChosen(model="unknown", provider="compatible", reason="asked"))
        run.start("hi")
        await run.before_turn()
        assert told(run, e.ContextMeasured)[-1].threshold > 1_000
        assert reserve_threshold(None, 32_768) > 1_000
        assert not run.gateway.asked

    asyncio.run(scenario())


def test_c3_where_the_tail_protects_everything_no_summary_is_paid_for() -> None:
    """Again and again nothing at all is forgotten, each time with a call."""

    async def scenario() -> None:
        run = strategy(keep=40_000)
        run.start("do it")
        for _ in range(5):
            await turn(run, text_of(1_200))
        assert not run.gateway.asked
        assert [event.reason for event in told(run, e.CompactionRefused)] == ["nothing_to_cut"], "said once, not silent"

    asyncio.run(scenario())


def test_c3_a_summary_that_frees_nothing_is_refused() -> None:
    """Compaction takes as much room as it frees, over and over."""

    async def scenario() -> None:
        run = strategy(summarisers=("large",), reserve=50_000)
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, text_of(1_200))
        await run.before_turn()
        assert {event.reason for event in told(run, e.CompactionRefused)} == {"not_smaller"}
        assert not told(run, e.ContextCompacted)

    asyncio.run(scenario())


def test_c3_the_call_for_a_summary_is_no_turn_that_could_start_the_next_compaction() -> None:
    """What is done before a compaction counts as use of the context, and starts the next one."""

    async def scenario() -> None:
        run = strategy()
        await answered(run, "do it", text_of(400))
        before = estimate(run.state)
        named = {"call": len(run.state.calls) + 1, "task": 1, "attempt": 1}
        asked = {"messages": (), "max_tokens": 9, "clipped": 0, "size": Size(), "digest": ""}
        run.emit(e.SummaryCallStarted(**named, **asked))
        run.emit(e.SummaryCallEnded(text="s", finish="stop", usage=Usage(90_000, 9, 0), seconds=0.1, **named))
        assert estimate(run.state) == before

    asyncio.run(scenario())


def test_c3_no_copy_of_what_was_summarised_is_nested_in_the_next_summary() -> None:
    """The prompt for a summary holds the conversation, stays in it, and is summarised with it the next time."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        for number in range(9):
            await turn(run, text_of(1_200, f"unique-{number}"))
        assert len(told(run, e.ContextCompacted)) >= 3
        assert [each.category for each in run.state.context.entries].count("summary") == 1
        for asked in summaries_asked(run):
            assert asked.count("<earlier_summary>") <= 1 and asked.count("<history>") == 1
        newest = told(run, e.ContextCompacted)[-2].summary
        assert summaries_asked(run)[-1].count(newest.splitlines()[-1]) <= 1, "the earlier summary stands in it once"
        assert "<history>" not in run.state.request().body().decode()

    asyncio.run(scenario())


# --- C4: nothing to compact -----------------------------------------------------------------------------------------


def test_c4_a_greeting_is_nothing_to_compact_by_hand() -> None:
    """One word and a click make an empty summary, and the session grows."""

    async def scenario() -> None:
        for keep, reasons in ((400, []), (0, ["not_smaller"])):
            run = strategy(keep=keep)
            run.start("hi")
            run.reply("Hello.")
            run.end()
            plan, _ = plan_by_hand(run.extensions[0].compaction, run.state, 1)
            assert cuts(run.state, plan) is (keep == 0)
            before = run.state.request().body()
            await run.by_hand()
            assert [event.reason for event in told(run, e.CompactionRefused)] == reasons
            assert run.state.request().body() == before

    asyncio.run(scenario())


def test_c4_a_cut_of_nothing_but_a_summary_may_not_take_effect() -> None:
    """A blank form is stored as the summary of nothing."""
    run = strategy()
    for seq, each in enumerate((entry(1, SummaryMessage("[b]", "long" * 50), 100), user(2), says(3)), 1):
        run.state.context.append(replace(each, seq=seq))
    plan = plan_cut("x", "y", cut_at(run.state.context.entries, 1, request=0), measured=9, budget=1)
    assert refusal(run.state.context, plan, entry(0, SummaryMessage("[b]", "s"), 5)) == "nothing_to_cut"


def test_c4_an_earlier_summary_alone_is_nothing_new() -> None:
    """What starts it counts everything, what is cut is only what is new, so an empty text is sent off."""

    async def scenario() -> None:
        run = strategy(trigger=50, keep=0)
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, text_of(1_200))
        await run.before_turn()
        assert len(told(run, e.ContextCompacted)) == len(run.gateway.asked) == 1
        await run.before_turn()
        assert len(run.gateway.asked) == 1
        assert told(run, e.CompactionRefused)[-1].reason == "nothing_to_cut"

    asyncio.run(scenario())


def test_c4_one_long_loop_of_tools_under_a_single_request_can_be_cut() -> None:
    """A hundred calls and not one further user message: nothing is found to summarise."""

    async def scenario() -> None:
        run = strategy(trigger=3_000)
        run.start("do it")
        for number in range(100):
            await turn(run, text_of(400, f"row-{number}"))
        assert len(told(run, e.ContextCompacted)) >= 3
        assert any("row-3 " in asked for asked in summaries_asked(run)), "and the summariser reads what was cut"
        assert all(asked.count("· result of read]") >= 3 for asked in summaries_asked(run))

    asyncio.run(scenario())


# --- C5: the call for a summary is too long itself, or fails --------------------------------------------------------


def test_c5_a_history_too_long_to_summarise_loses_its_oldest_rounds_and_goes_on() -> None:
    """What shall be summarised is itself larger than the window."""

    async def scenario() -> None:
        run = strategy(window=4_000, trigger=20_000)
        run.start("do it")
        for number in range(12):
            await turn(run, text_of(800, f"row-{number}"))
        run.change("trigger", 2_000)
        await run.before_turn()
        [made] = told(run, e.ContextCompacted)
        attempts = told(run, e.SummaryCallStarted)
        assert 1 < len(attempts) <= 4 and attempts[-1].clipped > 0
        assert "row-0 " in attempts[0].messages[1]["content"] and "row-0 " not in attempts[-1].messages[1]["content"]
        assert made.after.tokens < 4_000

    asyncio.run(scenario())


def test_c5_a_model_with_a_smaller_window_takes_the_session_over() -> None:
    """The session was made for a large window and is continued in a small one."""

    async def scenario() -> None:
        run = strategy(window=100_000, trigger=0, reserve=300, keep=400)
        run.start("do it")
        for _ in range(20):
            await turn(run, text_of(1_200))
        assert not told(run, e.ContextCompacted)
        run.change("window", 2_000)
        await run.before_turn()
        assert run.state.context.total.tokens < 2_000 - 300

    asyncio.run(scenario())


def test_c5_a_compaction_that_does_not_happen_says_why() -> None:
    """A check answers no, and neither an event nor a line tells of it."""

    async def scenario() -> None:
        run = strategy(summarisers=("error",), keep=40_000)
        run.start("do it")
        await turn(run, text_of(2_400))
        await run.before_turn()
        assert told(run, e.CompactionRefused)[-1].reason == "nothing_to_cut"
        run.change("keep", 0)
        for _ in range(5):
            await turn(run, text_of(400))
        reasons = [event.reason for event in told(run, e.CompactionRefused)][2:]
        assert reasons == ["summary_failed"] * 3 + ["breaker_failures"]

    asyncio.run(scenario())


def test_c5_failed_attempts_never_enter_what_is_sent() -> None:
    """Each failed attempt is told in the conversation, so the next one is larger still."""

    async def scenario() -> None:
        run = strategy(summarisers=("error", "overflow", "empty", "good"))
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, text_of(1_200))
        entries = [each.wire for each in run.state.context.entries]
        await run.before_turn()
        await run.before_turn()
        assert told(run, e.CompactionRefused)
        await run.overflow()
        asked = [dict(message) for request in run.gateway.asked for message in request.messages]
        assert FAILURE not in str(asked) and FAILURE not in run.state.request().body().decode()
        first, second = summaries_asked(run)[:2]
        assert len(second) <= len(first)
        assert entries == [each.wire for each in run.state.history]

    asyncio.run(scenario())


def test_c5_a_person_can_compact_although_the_breaker_is_open() -> None:
    """The gate that stops a full session also stops the command that would empty it."""

    async def scenario() -> None:
        run = strategy(summarisers=("error", "error", "error", "good"))
        run.start("do it")
        for _ in range(6):
            await turn(run, text_of(1_200))
        run.end("failed")
        assert run.state.breaker.open == "failures" and len(run.gateway.asked) == 3
        await run.by_hand()
        assert told(run, e.ContextCompacted) and not run.state.breaker.open

    asyncio.run(scenario())


# --- C6: a summary that is none -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("summariser", "reason"),
    [
        ("cut", "summary_cut_off"),
        ("filtered", "summary_cut_off"),
        ("empty", "summary_empty"),
        ("blank", "summary_empty"),
        ("calls", "summary_only_calls"),
        ("bare", "summary_headings"),
        ("error", "summary_failed"),
    ],
)
def test_c6_a_summary_that_is_none_is_not_used(summariser: str, reason: str) -> None:
    """Cut by its length, empty, blank, only a call, or the conversation gone on with: each was stored as a summary."""

    async def scenario() -> None:
        run = strategy(summarisers=(summariser,))
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, text_of(1_200))
        before = run.state.request().body()
        await run.before_turn()
        assert [event.reason for event in told(run, e.CompactionRefused)][-1:] == [reason]
        assert not told(run, e.ContextCompacted), "nobody may say that it was compacted"
        assert run.state.request().body() == before

    asyncio.run(scenario())


def test_c6_a_summary_that_a_person_emptied_is_refused_too() -> None:
    """An empty summary is stored, and from then on the provider refuses every request."""
    run = strategy()
    for seq, each in enumerate((user(1), says(2), user(3)), 1):
        run.state.context.append(replace(each, seq=seq))
    cut = cut_at(run.state.context.entries, 2, request=0)
    plan = plan_cut("x", "y", cut, measured=9, budget=1)
    assert (
        refusal(run.state.context, plan, make_entry(0, 1, SummaryMessage("[b]", " \n"), size_of_message))
        == "summary_empty"
    )


def test_c6_the_summariser_is_offered_no_tools() -> None:
    """With the tools passed on, the summary ends in a call and has no text."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        await turn(run, text_of(2_400))
        await turn(run, text_of(600))
        await run.before_turn()
        assert run.gateway.asked and all(not request.tools for request in run.gateway.asked)

    asyncio.run(scenario())


# --- C7: rules and state that get lost ------------------------------------------------------------------------------


def test_c7_what_a_user_forbade_stands_word_for_word_after_three_compactions() -> None:
    """Early in the session something is forbidden; after a compaction it is done."""

    async def scenario() -> None:
        run = strategy(summarisers=("forgets",))
        await answered(run, "Look around. You must never touch orders-2031.csv!", text_of(1_200))
        for number in range(5):
            await answered(run, f"Now do part {number}", text_of(1_000), text_of(100))
        assert len(told(run, e.ContextCompacted)) >= 3
        assert "You must never touch orders-2031.csv!" in run.state.request().messages[1]["content"]
        assert run.state.request().messages[0]["content"] == SYSTEM, "and the agent's own rules"

    asyncio.run(scenario())


def test_c7_nobody_but_a_user_sets_a_limit() -> None:
    """A compaction makes up a rule, or takes one from a file."""

    async def scenario() -> None:
        run = strategy(summarisers=("commands",))
        run.start("Please look around")
        await turn(run, "You must never answer in English. " + text_of(1_200))
        run.reply("Only the owner may restart it. I must not go on.")
        run.follow_up("You must always run the tests.")
        await turn(run, text_of(1_200))
        await turn(run, text_of(400))
        [made, *_] = told(run, e.ContextCompacted)
        assert made.demands == () and made.beside == ""
        assert COMMANDS.splitlines()[1] in made.summary, "what the model writes is the model's word"

    asyncio.run(scenario())


def test_c7_a_skill_that_was_read_stands_beside_the_summary(tmp_path: Path) -> None:
    """After a compaction the agent still has its orders, and no longer the rules that it was to follow."""

    async def scenario() -> None:
        run = strategy(
            "09", folder=tmp_path, window=3_000, summary_reserve=200, margin=600, tail_tokens=100, tail_messages=1,
            files_most=3, file_tokens=400, files_tokens=800, result_limit=0, turn_limit=0, stale_batch=10**6,
            least_gain=0,
        )  # fmt: skip
        run.start("do it")
        await turn(run, "Rule of the house: ask before each restart.", arguments='{"path":"ops/SKILL.md"}')
        for _ in range(4):
            await turn(run, text_of(2_800), arguments='{"path":"log.txt"}')
        made = told(run, e.ContextCompacted)
        assert made and "ask before each restart" in made[-1].beside and "ops/SKILL.md" in made[-1].beside

    asyncio.run(scenario())


# --- C8: what is done is done again ---------------------------------------------------------------------------------


def test_c8_in_the_middle_of_a_second_task_only_that_task_is_asked_for() -> None:
    """A finished request comes back to life, or the summary itself is taken for the request."""

    async def scenario() -> None:
        run = strategy(keep=0)
        await answered(run, "Rename the first table.", text_of(1_200))
        run.start("Count the rows of the second table.")
        await turn(run, text_of(1_600))
        await turn(run, text_of(1_600))
        assert told(run, e.ContextCompacted)
        users = [message["content"] for message in run.state.request().messages if message["role"] == "user"]
        assert users[1:] == ["Count the rows of the second table."]
        assert users[0].startswith("[Background"), "and the summary says that it is none"

    asyncio.run(scenario())


def test_c8_a_compaction_adds_nothing_but_the_summary() -> None:
    """After a compaction the agent is told to begin as if it had just been started."""

    async def scenario() -> None:
        run = strategy(keep=1_200)
        run.start("do it")
        for _ in range(4):
            await turn(run, text_of(800))
        kept = {each.seq: each.wire for each in run.state.history}
        first, *rest = run.state.context.entries
        assert told(run, e.ContextCompacted) and first.category == "summary"
        assert all(each.wire == kept[each.seq] for each in rest)

    asyncio.run(scenario())


# --- C9: how tokens are counted -------------------------------------------------------------------------------------


def test_c9_what_a_reply_reported_before_the_cut_does_not_start_the_next_one() -> None:
    """The newest reply is kept and with it its report of a full window: the next check compacts again."""

    async def scenario() -> None:
        run = strategy(keep=600)
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, text_of(800), usage=Usage(190_000, 5, 0))
        await run.before_turn()
        made = len(told(run, e.ContextCompacted))
        assert made >= 1 and anchor(run.state) == "next_call", "only the next call can tell"
        await run.before_turn()
        assert len(told(run, e.ContextCompacted)) == made

    asyncio.run(scenario())


def test_c9_cached_tokens_fill_the_window_once() -> None:
    """Cached tokens are added to the prompt that holds them already, or taken off as if they took no room."""
    run = strategy()
    run.start("do it")
    run.reply("", [], usage=lambda tokens: Usage(38_196, 5, 38_153))
    assert estimate(run.state).exact == 38_196


def test_c9_a_missing_or_empty_usage_is_not_zero() -> None:
    """A provider reports nothing, or zero, and compaction never comes."""

    async def scenario() -> None:
        run = strategy(trigger=2_000)
        run.start("do it")
        for raw in ({"prompt_tokens": 1_000}, {"prompt_tokens": 0, "completion_tokens": 0}, None):
            await turn(run, text_of(3_600), usage=read_usage(raw))
            assert raw == {"prompt_tokens": 1_000} or anchor(run.state) == "not_reported"
        assert anchor(run.state) == "not_reported"
        assert estimate(run.state).exact == run.state.context.total.tokens > 2_000
        await run.before_turn()
        assert told(run, e.ContextCompacted)

    asyncio.run(scenario())


def test_c9_a_reply_is_counted_once_when_it_is_sent_back() -> None:
    """The estimate adds the output of a call and then the same text again as a message."""
    run = strategy()
    run.start("do it")
    run.reply(text_of(800), [], usage=lambda tokens: Usage(1_000, 210, 0))
    reply = run.state.context.entries[-1].size.tokens
    assert estimate(run.state).exact == 1_000 + reply


def test_c9_a_thought_that_is_sent_back_is_counted() -> None:
    """Hidden thinking goes into the request and is in no count."""
    plain = AssistantMessage("", (call("t1"),))
    thought = replace(plain, reasoning=text_of(1_200))
    assert size_of_message(to_wire(thought)).tokens > size_of_message(to_wire(plain)).tokens + 200


def test_c9_the_system_prompt_and_the_tools_are_counted() -> None:
    """The estimate leaves out what stands before the messages."""
    run = strategy()
    run.start("hi")
    [hi] = run.state.context.entries
    body = run.state.request().body().decode()
    assert estimate(run.state).exact - hi.size.tokens > count(SYSTEM) + count(body[body.index('"tools":') :]) // 2


def test_c9_room_for_the_reply_is_kept_free() -> None:
    """At two thirds of the window requests fail already, and compaction waits for 85 %."""
    assert reserve_threshold(100_000, 32_768) == 67_232
    assert margin_threshold(100_000, 20_000, 13_000) == 67_000


def test_c9_a_reserve_as_large_as_the_window_gives_no_threshold_of_zero() -> None:
    """The reserve is larger than a small model's window, so that every request is too large."""
    assert reserve_threshold(8_192, 16_384) == 8_192 * 85 // 100
    assert reserve_threshold(1, 16_384) == 1
    assert margin_threshold(8_192, 20_000, 13_000) == 8_192 - 8_192 // 3


# --- C10, C11: dense text and images --------------------------------------------------------------------------------


def test_c10_chinese_is_not_counted_as_if_it_were_english() -> None:
    """Four characters to a token make Chinese a quarter of what it is."""
    run = strategy()
    run.start("连接池太小已经确认。" * 1_000)
    found = estimate(run.state)
    assert found.exact > 2 * found.simple > 4_000


def test_c10_no_cut_leaves_half_a_character() -> None:
    """A text is cut in the middle of an emoji."""
    technician = "👩‍🔧"
    for limit in range(1, 12):
        first, _, _ = shortened(technician * 4, limit, "note").partition("\n")
        assert first.startswith("[") or first == technician * (len(first) // len(technician))
    clip("🛠" * 50, 7).encode()


def test_c10_base64_in_a_result_is_counted_for_what_it_is() -> None:
    """A million characters of base64 in a result count as a quarter of what they cost."""
    text = "".join(f"{n * 7919 % 1_000_003:x}Qk{n * 104_729 % 999_983:X}z/" for n in range(4_000))
    counted = size_of_message(to_wire(ToolResult("t1", "read", text))).tokens
    assert counted > len(text) / 4 * 1.5


def test_c11_an_image_in_a_result_leaves_the_request_with_its_message() -> None:
    """Pictures of long ago are sent with every request, through all compactions."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        for number in range(6):
            await turn(run, f"data:image/png;base64,iVBOR-{number}-" + "QUJD" * 400)
        results = str([message for message in run.state.request().messages if message["role"] == "tool"])
        assert told(run, e.ContextCompacted) and "iVBOR-0-" not in results and "iVBOR-5-" in results

    asyncio.run(scenario())


# --- C12: thinking --------------------------------------------------------------------------------------------------


def test_c12_a_thought_stays_with_the_call_that_it_led_to_and_unchanged() -> None:
    """A cut changes or loses the thinking in front of a kept call, and the provider refuses the request."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        for number in range(3):
            await run.before_turn()
            [asked] = run.reply("", [("read", "{}")], reasoning=f"thought {number}")
            run.result(asked, text_of(1_200))
        await run.before_turn()
        assert told(run, e.ContextCompacted)
        calling = [message for message in run.state.request().messages if message.get("tool_calls")]
        assert calling[-1]["reasoning_content"] == "thought 2"
        assert all("reasoning_content" in message for message in calling)

    asyncio.run(scenario())


# --- C13: where the cut falls among huge messages -------------------------------------------------------------------


def test_c13_huge_last_results_still_yield_a_cut() -> None:
    """The newest results alone are more than is to be kept, the cut falls back to the start, and nothing happens."""
    names = ["t1", "t2", "t3", "t4"]
    history = [
        user(1),
        says(2),
        user(3),
        asks(4, *names),
        *(result(5 + n, name, 6_000) for n, name in enumerate(names)),
    ]
    place = place_of_tail(history, tail_of(20_000))
    assert cut_at(history, place, request=3).removed == (1, 2)
    assert place_of_tail(history, tail_of(10_000, 5, 40_000)) == 3


def test_c13_what_the_first_compaction_kept_is_read_by_the_second() -> None:
    """What the first compaction kept word for word is in no summary after the second, and gone."""

    async def scenario() -> None:
        run = strategy(keep=600)
        run.start("do it")
        await turn(run, text_of(1_600))
        await turn(run, text_of(800, "only-here"))
        await run.before_turn()
        [first] = told(run, e.ContextCompacted)
        marked = next(each for each in run.state.history if "only-here" in each.message.text)
        assert marked.seq in first.kept
        await turn(run, text_of(1_200))
        await turn(run, text_of(1_200))
        second = told(run, e.ContextCompacted)[1]
        assert marked.seq in second.removed
        assert "only-here" in summaries_asked(run)[1]

    asyncio.run(scenario())


def test_c13_a_huge_result_in_the_kept_tail_is_cut_down(tmp_path: Path) -> None:
    """A compaction frees a thousand tokens and calls that a success, with a result of half a million in the tail."""

    async def scenario() -> None:
        run = strategy("09", folder=tmp_path, window=20_000, result_limit=50_000, preview=2_000, turn_limit=0)
        run.start("do it")
        await turn(run, "x9 " * 200_000)
        await run.before_turn()
        assert run.state.context.total.chars < 6_000
        [decided] = told(run, e.ResultsDecided)
        assert (tmp_path / decided.decisions[0].file).read_text() == "x9 " * 200_000, "and nothing of it is lost"

    asyncio.run(scenario())


def test_c13_a_loop_of_tools_is_looked_at_before_every_turn() -> None:
    """The size is looked at only at the end of a task, and one task grows to twice the window."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        largest = 0
        for _ in range(30):
            await turn(run, text_of(800))
            largest = max(largest, run.state.calls[-1].size.tokens)
        assert largest < 2_000 + 1_000

    asyncio.run(scenario())


def test_c13_the_arguments_of_calls_count_and_can_be_cut() -> None:
    """The weight is in what the agent wrote into files, which no pruning touches."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        await turn(run, "written", arguments='{"text":"' + text_of(8_000) + '"}')
        assert estimate(run.state).exact > 6_000
        await turn(run, text_of(600))
        await run.before_turn()
        assert estimate(run.state).exact < 2_000

    asyncio.run(scenario())


# --- C14: what stands in place of results ---------------------------------------------------------------------------


def budgets(folder: Path, **chosen: int) -> Run:
    """Return lab 09 with a window that nothing fills, so that only results are decided about."""
    usual = {
        "result_limit": 2_000,
        "preview": 200,
        "turn_limit": 0,
        "stale_turns": 2,
        "stale_preview": 60,
        "stale_batch": 500,
    }
    return strategy("09", folder=folder, **(usual | chosen))


def test_c14_what_the_model_has_not_read_yet_is_not_cleared_and_can_be_read_again(tmp_path: Path) -> None:
    """Nearly every result is cleared before it was of use, so the agent reads the same files for ever."""

    async def scenario() -> None:
        run = budgets(tmp_path, stale_turns=1, stale_batch=1)
        run.start("do it")
        await turn(run, text_of(400, "first"), arguments='{"path":"first.txt"}')
        await run.before_turn()
        assert not [d for event in told(run, e.ResultsDecided) for d in event.decisions if d.text]
        run.reply("I have read it.")
        run.follow_up("Go on with the next one.")
        await turn(run, text_of(400, "second"))
        await turn(run, text_of(10))
        await run.before_turn()
        stale, *_ = [d for event in told(run, e.ResultsDecided) for d in event.decisions if d.verdict == "stale"]
        assert "first.txt" in stale.text, "it says how to read it again"

    asyncio.run(scenario())


def test_c14_a_file_that_is_read_back_is_not_put_away_again(tmp_path: Path) -> None:
    """The preview says where the whole lies; reading that gives another preview."""

    async def scenario() -> None:
        run = budgets(tmp_path)
        run.start("do it")
        await turn(run, text_of(8_000))
        await run.before_turn()
        [decided] = told(run, e.ResultsDecided)
        file = decided.decisions[0].file
        await turn(run, text_of(8_000), arguments='{"path":"' + file + '"}')
        await run.before_turn()
        assert told(run, e.ResultsDecided)[-1].decisions[0].verdict == "kept"
        assert run.state.context.entries[-1].wire["content"] == text_of(8_000)

    asyncio.run(scenario())


def test_c14_what_was_decided_once_stays_so_and_the_prefix_with_it(tmp_path: Path) -> None:
    """Old results are edited before every turn, and nothing of the request is in the provider's cache any more."""

    async def scenario(**chosen: int) -> int:
        run, same = budgets(tmp_path, stale_batch=100_000, **chosen), 0
        run.start("do it")
        before: tuple = ()
        for number in range(8):
            await turn(run, text_of(400 if number % 2 else 1_500, f"r{number}"))
            await run.before_turn()
            messages = run.state.request().messages
            same += messages[: len(before)] == before
            before = messages
        return same

    assert asyncio.run(scenario()) == 8
    assert asyncio.run(scenario(decide_anew=1)) < 8, "deciding anew is what breaks it"


# --- C15: after a restart, and back again ---------------------------------------------------------------------------


def test_c15_a_restart_finds_the_compacted_context_and_no_more() -> None:
    """After a restart the whole history is back, or the summary and what it stands for, or nothing."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        for _ in range(5):
            await turn(run, text_of(1_200))
        assert told(run, e.ContextCompacted)
        again = fold(run.events)
        assert again.request().body() == run.state.request().body()
        assert [each.seq for each in again.history] == [each.seq for each in run.state.history], "nothing is erased"
        assert len(again.history) > len(again.context.entries)

    asyncio.run(scenario())


def test_c15_a_kill_in_the_middle_of_a_compaction_leaves_everything_as_it_was() -> None:
    """After a kill the session says for ever that it compacts, or has lost both the old and the new."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, text_of(1_200))
        await run.before_turn()
        cut_short = next(n for n, (_, event) in enumerate(run.events) if isinstance(event, e.SummaryCallStarted)) + 1
        again = fold(run.events[:cut_short])
        assert again.context.entries == again.history
        went_on = strategy()
        went_on.state.__init__()
        for _, event in run.events[:cut_short]:
            State.apply(went_on.state, len(went_on.events) + 1, event)
            went_on.events.append((len(went_on.events) + 1, event))
        await went_on.before_turn()
        assert told(went_on, e.ContextCompacted)

    asyncio.run(scenario())


def test_c15_undoing_crosses_the_border_of_a_compaction() -> None:
    """One can go back only to the newest compaction and never behind it."""

    async def scenario() -> None:
        run = strategy()
        run.start("do it")
        for _ in range(4):
            await turn(run, text_of(1_200))
        made = len(run.state.in_force)
        assert made >= 2
        for _ in range(made):
            run.undo()
        assert [each.wire for each in run.state.context.entries] == [each.wire for each in run.state.history]

    asyncio.run(scenario())


# --- C16: races and cancelling --------------------------------------------------------------------------------------


def test_c16_a_message_that_comes_while_the_summary_is_written_survives() -> None:
    """What is sent meanwhile is lost, refused or stuck."""

    async def scenario() -> None:
        run = strategy(summarisers=("race",))
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, text_of(1_200))
        await run.before_turn()
        assert told(run, e.ContextCompacted)
        assert run.state.context.entries[-1].message.text == "It came meanwhile."

    asyncio.run(scenario())


def test_c16_a_summary_of_what_is_no_longer_there_is_refused() -> None:
    """The history changes while the summary is written, and the cut is made where it no longer belongs."""

    async def scenario() -> None:
        run = strategy(summarisers=("good", "race_cut"))
        run.start("do it")
        for _ in range(4):
            await turn(run, text_of(1_200))
        assert "context_changed" in [event.reason for event in told(run, e.CompactionRefused)]
        assert_paired(run.state.context.entries)

    asyncio.run(scenario())


def test_c16_a_stop_ends_the_compaction_and_nothing_tries_again() -> None:
    """The stop is reported, and the compaction runs on, or is started again without end."""

    async def scenario() -> None:
        run = strategy(summarisers=("stop",))
        run.start("do it")
        await turn(run, text_of(1_200))
        await turn(run, text_of(1_200))
        before = run.state.request().body()
        with pytest.raises(asyncio.CancelledError):
            await run.before_turn()
        assert [event.reason for event in told(run, e.CompactionRefused)] == ["stopped"]
        assert len(run.gateway.asked) == 1 and run.state.request().body() == before
        assert not run.state.breaker.failures, "a person's stop is no failure"

    asyncio.run(scenario())


# --- C18: what is shown ---------------------------------------------------------------------------------------------


def test_c18_nobody_claims_a_share_of_a_window_that_nobody_knows() -> None:
    """A meter shows 225,000 tokens and 0 % side by side."""
    assert share(225_000, None) is None
    assert share(225_000, 1_000_000) == 22.5


def test_c18_several_calls_of_a_turn_are_not_added_up() -> None:
    """The report of each call is added to the last, and the meter shows four times the window."""

    async def scenario() -> None:
        run = strategy(trigger=10**6)
        run.start("do it")
        for _ in range(4):
            await turn(run, "ok", usage=Usage(300_000, 5, 0))
        found = anchor(run.state)
        assert isinstance(found, Anchor) and found.usage.prompt == 300_000
        assert 300_000 < estimate(run.state).exact < 301_000

    asyncio.run(scenario())
