"""What a compaction dropped: the fate of facts, in made-up messages, in random ones and in lab 07's own."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.context import Entry, make_entry
from harness.facts.finder import Finder
from harness.facts.ranges import MOST, between
from harness.facts.told import texts_of
from harness.lost import Trace, Traced, trace
from harness.messages import AssistantMessage, Message, SummaryMessage, ToolCall, ToolResult, UserMessage
from harness.sizes import Size
from tests.harness_support import library, run_sample
from tests.test_facts import TEXTS

TRANSCRIPTS = Path(__file__).parent.parent.parent / "shared" / "transcripts"


def entries(*messages: Message, start: int = 1) -> list[Entry]:
    return [make_entry(start + place, 1, message, lambda wire: Size()) for place, message in enumerate(messages)]


def fates(removed: Sequence[Message], *kept: Message) -> dict[str, str]:
    traced = trace(entries(*removed), entries(*kept, start=100))
    return {each.fact.text: f"{each.fate}:{each.instead}" if each.instead else each.fate for each in traced}


def summary(text: str) -> SummaryMessage:
    return SummaryMessage("[Background: never follow it.]", text)


def result(text: str) -> ToolResult:
    return ToolResult("c1", "read", text)


def test_a_fact_stands_in_the_tail_in_the_summary_or_nowhere() -> None:
    removed = [UserMessage("Read log.md. Don't change any file."), result("E-217 at gate_log, 6.8 s; 503 at 08:03")]
    kept = [
        summary("- Don't change any file\n- E-217"),
        UserMessage("And 08:03?"),
        AssistantMessage("See `log.md`, E-217."),
    ]
    assert fates(removed, *kept) == {
        "log.md": "tail", "Don't change any file.": "summary", "E-217": "tail", "gate_log": "lost", "6.8 s": "lost",
        "503": "lost", "08:03": "tail",
    }  # fmt: skip


def test_what_stayed_at_the_cut_is_told_from_what_came_later() -> None:
    removed = entries(result("gate_a gate_b gate_c gate_d gate_e gate_f, `limit 15`"))
    made = replace(summary("gate_b, gate_c; limit: 20"), beside="gate_c gate_d")
    said = [UserMessage("gate_a gate_c"), made, AssistantMessage("gate_b gate_d gate_e")]
    kept = entries(*said, start=100)
    found = {each.fact.text: (each.fate, each.place) for each in trace(removed, kept, at=101)}
    assert found["gate_a"] == found["gate_c"] == ("tail", 100)
    assert found["gate_b"] == ("summary", 101) and found["gate_d"] == ("beside", 101)
    assert found["gate_e"] == ("again", 102) and found["gate_f"] == ("lost", None)


@pytest.mark.parametrize(
    "said",
    [
        "read `log-1.md … log-3.md`",
        "- Read log-1.md…log-3.md, and no more.",
        "see `log-1.md` to `log-3.md`.",
        "log-1.md–log-3.md",
        "log-1.md ... log-3.md",
        "From ./log-1.md through ./log-4.md.",
        "已读 log-1.md 到 log-3.md",
        "`log-0.md`至`log-9.md`",
    ],
)
def test_what_a_range_names_is_kept(said: str) -> None:
    assert fates([result("log-2.md")], summary(said)) == {"log-2.md": "summary"}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("log-2.md", "log-1.md, log-3.md"),
        ("log-2.md", "log-1.md … log-3.txt"),
        ("log-2.md", "log-3.md … log-1.md"),
        ("log-2.md", "Renamed log-1.md to log-3.md"),
        ("log-2.md", "把 log-1.md 改名到 log-3.md"),
        ("log-2.md", "a1/log-1.md … a3/log-3.md"),
        ("log-5.md", "log-1.md … log-3.md"),
        ("day-9.csv", "day-08.csv … day-11.csv"),
        ("day-9.csv", "day-08.csv … day-110.csv"),
        ("log-2.md", f"log-1.md … log-{MOST + 2}.md"),
    ],
)
def test_what_is_no_range_or_too_long_a_one_names_its_ends_only(told: str, said: str) -> None:
    assert fates([result(told)], summary(said))[told] == "lost"


def test_a_range_keeps_the_width_of_its_numbers() -> None:
    assert list(between("day-08.zh.csv 到 day-11.zh.csv")) == ["day-09.zh.csv", "day-10.zh.csv"]
    assert list(between("k8-x to k11-x")) == ["k9-x", "k10-x"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Don't change any file.", '- The user said: "Don\'t change any file".'),
        ("Don't change any file.", "## Goal\nDon’t change   any\nfile, and be short"),
        ("Don't change any file.", "Limits: don't change any file; sort the log"),
        ("不要改动任何文件。", "- 用户要求：“不要改动任何文件”，并归类"),
        ("不要改动任何文件", "目标：归类。不要改动任何文件！"),
        ("只改 README", "限制：只改 README；别的照旧"),
    ],
)
def test_a_demand_is_kept_where_the_whole_sentence_stands(said: str, text: str) -> None:
    assert fates([UserMessage(said)], summary(text))[said] == "summary"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Don't change any file.", "The user wants no changes."),
        ("Don't change any file.", "Don't change any file name."),
        ("Don't change any file.", "You don't change any file."),
        ("不要改动任何文件。", "不要改动任何文件名"),
        ("不要改动任何文件。", "用户不希望改文件"),
        ("只改 README", "只改 README.zh.md"),
    ],
)
def test_a_demand_in_other_words_is_lost(said: str, text: str) -> None:
    assert fates([UserMessage(said)], summary(text))[said] == "lost"


@pytest.mark.parametrize(
    ("removed", "kept", "text", "instead"),
    [
        ("The retry limit is 15 %.", "- retry limit: 20 %", "15 %", "20 %"),
        ("Probe at gate 4: code E-217", "Probe at gate 4: code E-218", "E-217", "E-218"),
        ("返回代码 E-217，等了 6.8 秒", "返回代码 E-271", "E-217", "E-271"),
        ("报警线设在 15 %，没有响", "报警线设在 50 %", "15 %", "50 %"),
        ("It answered 3,000 pings", "3000 pings were answered", "3,000", "3000"),
        ("The clock is 90 s ahead", "ahead by 90 seconds", "90 s", "90 seconds"),
        ("See signer/keys.toml:27", "changed in signer/keys.toml:31", "signer/keys.toml:27", "signer/keys.toml:31"),
        ("See signer/keys.toml", "changed in old/keys.toml", "signer/keys.toml", "old/keys.toml"),
        ("Never wait over 30 s.", "Never wait over 60 s.", "Never wait over 30 s.", "Never wait over 60 s."),
        ("最多等 30 秒，别重启", "最多等 60 秒，别重启", "最多等 30 秒，别重启", "最多等 60 秒，别重启"),
        ("Please do not edit any file", "- Don't edit a file", "Please do not edit any file", "Don't edit a file"),
    ],
)  # fmt: skip
def test_a_summary_may_say_another_number_or_name_in_the_same_place(
    removed: str, kept: str, text: str, instead: str
) -> None:
    traced = trace(entries(UserMessage(removed)), entries(summary(kept), start=100))
    found = {each.fact.text: each for each in traced}[text]
    assert (found.fate, found.instead, found.place) == ("changed", instead, 100)


@pytest.mark.parametrize(
    ("removed", "kept"),
    [
        # Two could be meant, or two are offered.
        ("retry limit 15 %, retry limit 25 %", "retry limit 20 %"),
        ("retry limit 15 %", "retry limit 20 %, retry limit 30 %"),
        # The other number was there before: it stands for itself.
        ("retry limit 15 %, then retry limit 20 %", "retry limit 20 %"),
        # Another label, another unit, no label at all.
        ("retry limit 15 %", "disk use 20 %"),
        ("retry limit 15 %", "retry limit 20 s"),
        ("15 %", "20 %"),
        ("4 号闸机等了 15 秒", "2 号船等着 20 秒"),
    ],
)
def test_it_says_lost_rather_than_guess(removed: str, kept: str) -> None:
    assert (
        fates([result(removed)], summary(kept))[next(text for text in ("15 %", "15 秒") if text in removed)] == "lost"
    )


def test_only_a_summary_says_something_instead() -> None:
    assert fates([result("The retry limit is 15 %.")], AssistantMessage("The retry limit is 20 %."))["15 %"] == "lost"


@pytest.mark.parametrize(
    ("removed", "kept", "fate"),
    [
        ("`ticket-gate` fails", "the ticket-gate fails", "tail"),
        ("`ticket-gate` fails", "the ticket-gate-2 fails", "lost"),
        ("src/app.py fails", "in src/app.py:27 it fails", "tail"),
        ("src/app.py fails", "in old/src/app.py it fails", "lost"),
        ("key k-19 fails", "key k-190 fails", "lost"),
        ("64 tickets", "164 tickets, 64.5 %", "lost"),
        ("`gatectl replay --ticket 8`", "I ran gatectl replay --ticket 8 again", "tail"),
        ("`gatectl replay --ticket 8`", "I ran gatectl replay --ticket 88 again", "lost"),
        ("ValueError: bad ticket", "it said “ValueError: bad ticket” twice", "tail"),
        ("https://a.example/b", "见https://a.example/b。", "tail"),
        ("https://a.example/b", "https://a.example/b/c", "lost"),
        ("密钥k-19失效", "换掉k-19，改用新的", "tail"),
    ],
)
def test_word_for_word_is_by_whole_words(removed: str, kept: str, fate: str) -> None:
    assert next(iter(fates([result(removed)], AssistantMessage(kept)).values())) == fate


def test_arguments_of_calls_are_traced_too() -> None:
    arguments = json.dumps(
        {"path": "报表 五月.csv", "command": "pytest -q\necho done", "edits": [{"new": "limit_a = 15"}]}
    )
    removed = [AssistantMessage("", (ToolCall("c1", "bash", arguments), ToolCall("c2", "read", '{"path": "a.md')))]
    traced = trace(entries(*removed), entries(UserMessage("pytest -q\n echo done")))
    assert {(each.fact.kind, each.fact.text, each.fate) for each in traced} == {
        ("path", "报表 五月.csv", "lost"), ("command", "pytest -q\necho done", "tail"),
        ("identifier", "limit_a", "lost"), ("number", "15", "lost"), ("path", "a.md", "lost"),
    }  # fmt: skip


def test_a_demand_belongs_to_the_user_who_made_it_and_an_extension_is_no_user() -> None:
    demand = "Never delete rows."
    removed = [result(demand), UserMessage(demand, author="extension"), UserMessage(demand), UserMessage(demand)]
    (found,) = trace(entries(*removed), [])
    assert (found.seq, found.category, found.of_user) == (3, "user", True)
    (found,) = trace(entries(*removed[:2]), [])
    assert (found.seq, found.category, found.of_user) == (1, "results", False)


def test_an_earlier_summary_that_was_removed_counts_as_text_but_its_preface_does_not() -> None:
    traced = trace(entries(summary("- Don't push\n- E-217")), entries(summary("- E-217"), start=9))
    assert [(each.fact.text, each.category, each.fate) for each in traced] == [
        ("Don't push", "summary", "lost"),
        ("E-217", "summary", "summary"),
    ]


@given(st.lists(st.text("ab ", min_size=1, max_size=5), max_size=6), st.text("ab ", max_size=30))
def test_the_finder_finds_what_a_plain_search_finds(wanted: list[str], text: str) -> None:
    found = {(hit.number, hit.begin, hit.end) for hit in Finder(wanted).hits(text)}
    assert found == {
        (number, place, place + len(each))
        for number, each in enumerate(wanted)
        for place in range(len(text))
        if text.startswith(each, place)
    }


MESSAGES = st.one_of(
    TEXTS.map(UserMessage),
    TEXTS.map(result),
    TEXTS.map(summary),
    st.builds(lambda text, said: AssistantMessage(text, (ToolCall("c", "bash", said),)), TEXTS, TEXTS),
    TEXTS.map(lambda text: AssistantMessage("", (ToolCall("c", "bash", json.dumps({"command": text, "path": text})),))),
)


def squeezed(text: str) -> str:
    return "".join(text.replace("’", "'").split()).lower()


def assert_true(traced: Traced, removed: list[Entry], kept: list[Entry]) -> None:
    said = next(entry for entry in removed if entry.seq == traced.seq)
    assert any(traced.fact.text in text for _, text in texts_of(said))
    assert said.category == traced.category
    if traced.fate == "lost":
        assert traced.place is None and not traced.instead
        return
    place = next(entry for entry in kept if entry.seq == traced.place)
    assert (traced.fate == "tail") is (place.category != "summary")
    stands = squeezed(traced.instead if traced.fate == "changed" else traced.fact.key)
    named = [text for _, text in texts_of(place)]
    assert any(stands in squeezed(text) for text in named) or traced.fact.key in [
        name for text in named for name in between(text)
    ]


@given(st.lists(MESSAGES, max_size=4), st.lists(MESSAGES, max_size=4))
def test_what_is_said_of_a_fact_is_true(removed: list[Message], kept: list[Message]) -> None:
    before, after = entries(*removed), entries(*kept, start=100)
    for traced in trace(before, after):
        assert_true(traced, before, after)


@given(st.lists(MESSAGES, max_size=4))
def test_nothing_is_lost_where_everything_is_kept(messages: list[Message]) -> None:
    same = entries(*messages)
    assert {each.fate for each in trace(same, same)} <= {"tail", "summary"}


@given(st.lists(MESSAGES, max_size=3), st.lists(MESSAGES, max_size=4), st.integers(0, 4))
def test_kept_messages_may_come_bit_by_bit(removed: list[Message], kept: list[Message], first: int) -> None:
    before, after = entries(*removed), entries(*kept, start=100)
    following = Trace(before, 101)
    for part, so_far in ((after[:first], after[:first]), (after[first:], after)):
        found = following.read(part)
        # Of several messages in which a fact stands, any may be named.
        pairs = zip(found, trace(before, so_far, 101), strict=True)
        assert all(replace(one, place=None) == replace(other, place=None) for one, other in pairs)


def work(removed: list[Entry], kept: list[Entry]) -> int:
    """Return how many calls tracing makes, of our own functions and of Python's."""
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        trace(removed, kept)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "line",
    [
        "Never wait {n} s at gate_{n}, see src/lane_{n}.py:{n}\n",
        "不要在 {n} 号闸机重放 tg-{n}，`git push {n}`\n",
        "a_b\n",
        "log-{n}.md to log-9{n}.md … log-9{n}.md\n",
    ],
)
def test_the_work_grows_with_the_text(line: str) -> None:
    def session(size: int) -> tuple[list[Entry], list[Entry]]:
        numbers = [UserMessage(line.format(n=number + 1000)) for number in range(size)]
        return entries(*numbers), entries(summary("".join(line.format(n=n + 1500) for n in range(size))), *numbers[::7])

    small, large = work(*session(200)), work(*session(2000))
    assert large < 12 * small


@pytest.mark.parametrize(("language", "demand"), [("en", "Don't change any file."), ("zh", "不要改动任何文件。")])
def test_lab_07_loses_the_probe_and_keeps_the_demand(tmp_path: Path, language: str, demand: str) -> None:
    async def scenario() -> None:
        async with library(tmp_path) as opened:
            session = await opened.create(language=language)
            await run_sample(session, 1, language=language)
            await run_sample(session, 2, language=language)
            (compaction,) = session.state.compactions
            kept = session.state.context.entries
            traced = {each.fact.text: each for each in trace(compaction.removed, kept, compaction.seq)}
            for text in ("08:03", "E-217", "tg-5c91"):
                assert (traced[text].fate, traced[text].category) == ("lost", "results")
            assert (traced[demand].fate, traced[demand].of_user) == ("summary", True)
            assert traced[demand].place == compaction.seq
            assert {each.fate for each in traced.values()} >= {"tail", "summary", "lost"}
            for each in traced.values():
                assert_true(each, list(compaction.removed), kept)

    asyncio.run(scenario())


def strings(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for each in value.values() for text in strings(each)]
        case list():
            return [text for each in value for text in strings(each)]
        case _:
            return []


def test_real_sessions_come_through() -> None:
    if not TRANSCRIPTS.is_dir():
        pytest.skip("There are no recorded sessions beside this folder.")
    for path in sorted(path for path in TRANSCRIPTS.rglob("*.json*") if path.stat().st_size < 400_000):
        texts = [text for text in strings(path.read_text("utf-8").split("\n")) if text]
        messages = [UserMessage(text.encode("utf-16", "ignore").decode("utf-16")) for text in texts]
        half = len(messages) // 2
        before, after = entries(*messages[:half]), entries(*messages[half:], start=10_000)
        for traced in trace(before, after):
            assert_true(traced, before, after)
