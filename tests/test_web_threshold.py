"""The page of a strategy that goes by the whole request: threshold, window, next cut, breaker, by hand, presets."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness import by_hand
from harness import events as e
from harness.accounting import Anchor, anchor, estimate, simple_tokens, window_of
from harness.compaction import parts_of
from harness.discovery import find_labs, load
from harness.messages import ToolCall
from harness.session import Session
from harness.sizes import Usage, size_of
from tests.harness_support import events, library, run_sample
from tests.web_html import elements, figure, find
from tests.web_session import LABS, LOG, FoldedSession, first_task
from tests.web_support import MINE, Web, serving
from web.catalogue import load as load_words
from web.feed import render_feed
from web.feed_updates import feed_updates
from web.figures import limits, planned
from web.options import SWITCHES
from web.pages import Pages
from web.panel import panel_of
from web.presets import preset_on
from web.screens import Asked, render_session
from web.updates import render_panel_updates
from web.viewer import Viewer
from web.words import LANGUAGES

ALL = find_labs(LABS)
LAB = ALL["08"]
STRATEGY = load(LAB).compaction
PAGES = Pages.load()
VIEWER = Viewer(PAGES)
HTMX, HTML = MINE | {"HX-Request": "true"}, {"Accept": "text/html"}
FAILED = e.CompactionRefused(task=1, strategy="threshold", reason="summary_empty")


def begun(**settings: int) -> FoldedSession:
    """A session of lab 08 in which nothing has happened yet."""
    session = FoldedSession(lab=LAB, strategy=STRATEGY).begin(budget=None)
    session.state.settings |= LAB.settings | settings
    return session


def measure(session: FoldedSession) -> e.ContextMeasured:
    """Measure before a turn, as the lab does."""
    found = planned(session)
    assert found
    counted = estimate(session.state)
    event = e.ContextMeasured(
        task=len(session.state.tasks), strategy="threshold", estimate=found[0].measured, exact=counted.exact,
        simple=counted.simple, reported=counted.reported, call=counted.call, threshold=found[0].budget,
        window=window_of(session.state).tokens,
    )  # fmt: skip
    session.add(event)
    return event


def reading(session: FoldedSession, times: int = 1) -> FoldedSession:
    """Start a task that reads a log several times; it goes on."""
    session.task("Read the log. Don't change any file.")
    for _ in range(times):
        measure(session)
        session.call_started()
        call = ToolCall(f"c{len(session.records)}", "read", '{"path":"log.md"}')
        session.call_ended("", call)
        session.tool(call, LOG)
    return session


def now(session: FoldedSession, viewer: Viewer = VIEWER) -> str:
    """The tab Now, as an open page gets it."""
    return next(each.html for each in render_panel_updates(session, viewer) if each.target_id == "panel")


def meter(session: FoldedSession) -> str:
    return next(each.html for each in render_panel_updates(session, VIEWER) if each.target_id == "meter")


def chip(html: str, name: str) -> str:
    """Return the words of a chip, or "" where there is none."""
    return next((each.text for each in find(html, data_chip=name)), "")


def lines(html: str, name: str) -> list[str]:
    """Return the heights of the lines with this name."""
    return [each.attributes["y1"] for each in find(html, data_line=name)]


def test_every_figure_of_a_real_session_is_the_harness_s(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="08") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            state, found = session.state, estimate(session.state)
            assert state.compactions, "the sample compacts inside its one task"
            html, page = now(session), render_session(session, VIEWER, sandbox="none")
            plan, _ = STRATEGY(state, state.settings, "", 1)
            expected = {
                "threshold.estimate": plan.measured, "threshold": plan.budget, "window": 4000,
                "next.exact": state.context.total.tokens, "next.simple": simple_tokens(state.context.total.chars),
                "next.report_exact": found.exact,
                "sent.reported": found.reported, "sent.exact": state.calls[-1].size.tokens,
                "sent.simple": simple_tokens(state.calls[-1].size.chars),
                "next_cut.removed": len(plan.removed), "next_cut.kept": len(plan.kept),
                "next_cut.frees": size_of(parts_of(state.context, plan)[0]).tokens,
            }  # fmt: skip
            assert {name: figure(html, name) for name in expected} == {k: str(v) for k, v in expected.items()}
            assert figure(page, "threshold.estimate") == str(plan.measured)
            for update in render_panel_updates(session, VIEWER):
                assert update.html in page, "what an open page gets is what a reload shows"
            turns = replace(VIEWER, tab="turns", unit="estimated")
            measured = limits(session.records, state.calls)
            assert {call.call for call in state.calls if call.purpose == "turn"} == measured.keys()
            html = now(session, turns)
            assert len(lines(html, "threshold")) == 2 == len(lines(html, "window")), "not over the summary's own call"
            assert len(find(html, data_mark="compaction")) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("lab", "other"), [("08", "09"), ("09", "08"), ("10", "09"), ("08", "10")])
def test_a_second_strategy_is_named_with_its_own_threshold(lab: str, other: str, language: str) -> None:
    first, second = load(ALL[lab]), load(ALL[other])
    session = begun(**(ALL[other].settings | ALL[lab].settings))
    session.strategy, session.extensions = first.compaction, (second, first)
    html = now(session, Viewer(PAGES, language=language))
    [said] = [each for each in find(html) if "data-acts-too" in each.attributes]
    plan, _ = second.compaction(session.state, session.state.settings, "", 1)
    assert figure(html, "other.threshold") == str(plan.budget) and said.attributes["data-acts-too"] == plan.strategy
    name = {"08": "threshold and cut point", "09": "budgets for tool results", "10": "watch, compress, checkpoint"}
    assert language != "en" or f"The strategy “{name[other]}” acts too, before each model call" in said.text
    session.extensions = (first,)
    assert "data-acts-too" not in str(now(session))


def test_a_second_strategy_for_finished_tasks_is_named_with_its_budget_and_a_broken_one_costs_nothing() -> None:
    seven, eight = load(ALL["07"]), load(LAB)
    session = begun(**ALL["07"].settings)
    session.strategy, session.extensions = eight.compaction, (seven, eight)
    html = now(session)
    assert figure(html, "other.budget") == str(ALL["07"].settings["budget"]) and "at the end of each task" in str(html)
    session.state.settings.pop("budget")
    html = now(session)
    assert "data-acts-too" not in str(html) and figure(html, "threshold")
    session.state.settings["budget"] = 900
    session.strategy, session.extensions = seven.compaction, (eight, seven)
    assert figure(now(session), "other.threshold") == "3200", "beside the budget of finished tasks too"


def cards(session: FoldedSession) -> list[str]:
    html = str(render_feed(session, VIEWER))
    return [each.text for each in elements(html) if each.attributes.get("data-event") == "ContextCompacted"]


def test_a_card_says_until_when_the_model_read_its_summary() -> None:
    session = reading(begun(), 4)
    for _ in range(2):
        session.cut(2)
        reading(session)
    session.cut(2, written="as the model wrote it")
    session.add(e.TaskEnded(task=len(session.state.tasks), reason="answered", seconds=1.0, detail=""))
    first, second, third = cards(session)
    assert "What the model read until compaction 2" in first and "What the model reads now" not in first
    assert "What the model read until compaction 3" in second
    assert "What the model reads now" in third and "Only yours is in the context." in third
    session.undo()
    first, second, third = cards(session)
    assert "until compaction 2" in first and "What the model reads now" in second and "until the undoing" in third
    session.cut(2)
    first, second, third, fourth = cards(session)
    assert "What the model read until compaction 4" in second and "What the model reads now" in fourth


@pytest.mark.parametrize("scope", ["request", "finished tasks"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_line_of_the_cut_gives_the_reason_that_triggered_it(language: str, scope: str) -> None:
    viewer, words = Viewer(PAGES, language=language), PAGES.words[language]
    triggers = {"by hand": "by_hand", "overflow": "why_overflow", "stage": "why_stage"}
    triggers |= {"threshold": "why_request"} if scope == "request" else {"task ended": "why"}
    for trigger, key in triggers.items():
        session = reading(begun(), 3) if scope == "request" else second(FoldedSession().begin(budget=100))
        whole = {"keep": 2, "measured": 9000} if scope == "request" else {}
        made = (session.cut if whole else session.compact)(trigger=trigger, **whole)
        told = {"n": 1, "measured": made.event.measured, "budget": made.event.budget}
        unit = words.t("unit_name.tokens" if scope == "request" else "unit_name.characters")
        [line] = find(render_feed(session, viewer), id="cut-line")
        assert words.t(f"cut.{key}", unit=unit, **told) in line.text, trigger
    session = reading(begun(), 3)
    session.cut(2, trigger="threshold", measured=20)
    assert words.t("cut.why_other", n=1, measured=20, unit=words.t("unit_name.tokens")) in render_feed(session, viewer)


def second(session: FoldedSession) -> FoldedSession:
    """Two tasks, the second of which has just ended."""
    first_task(session)
    first_task(session)
    return session


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_moment_of_the_past_is_not_called_now(language: str) -> None:
    session = reading(begun(), 3)
    session.cut(2)
    words, pairs = PAGES.words[language], {"diff": "compares_next compares_then", "lost": "now then"}
    for tab, keys in pairs.items():
        for at, key in zip((0, session.committed), keys.split(), strict=True):
            html = render_session(session, Viewer(PAGES, language=language, tab=tab, at=at), sandbox="none")
            for each in keys.split():
                assert (words.t(f"{tab}.{each}", earlier=3) in html) is (each == key)
    for at, title, summary in ((0, "title", "now"), (session.committed, "title_then", "then")):
        html = render_session(session, Viewer(PAGES, language=language, at=at), sandbox="none")
        assert f">{words.t(f'next_cut.{title}')}</h3>" in html and f"<h4>{words.t(f'compaction.{summary}')} ·" in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_header_tells_its_two_figures_apart(language: str) -> None:
    words = PAGES.words[language]
    for unit in ("characters", "estimated", "reported"):
        html = render_session(reading(begun()), Viewer(PAGES, language=language, unit=unit), sandbox="none")
        said = [each.attributes.get("title") for each in find(html, class_="meter-text")]
        counted = None if unit == "reported" else words.t("meter.request_says")
        assert said == [words.t("meter.threshold_says").unescape(), counted]


def test_an_open_page_hears_that_a_summary_was_replaced() -> None:
    session = reading(begun(), 4)
    first = session.cut(2)
    assert "What the model reads now" in render_feed(session, VIEWER)
    reading(session)
    changed = feed_updates(session, session.cut(2), VIEWER)
    [again] = [each.html for each in changed if each.target_id == f"row-{first.seq}"]
    assert "What the model read until compaction 2" in again


@pytest.mark.parametrize("simply", [0, 1])
def test_a_card_names_the_way_of_counting_of_each_of_its_two_figures(simply: int) -> None:
    def figures_of(session: FoldedSession) -> str:
        plan, _ = planned(session)
        html = str(session.cut(1, measured=plan.measured) and render_feed(session, VIEWER))
        [card] = [each for each in elements(html) if each.attributes.get("data-event") == "ContextCompacted"]
        return " ".join(card.text.split())

    session = reading(begun(count_simply=simply))
    assert "tokens (report + estimate, by which the strategy went) → " in figures_of(session)
    unreported = begun(count_simply=simply)
    unreported.task("Read the log.")
    for _ in range(3):
        unreported.call_started()
        call = ToolCall(f"c{len(unreported.records)}", "read", '{"path":"log.md"}')
        unreported.call_ended("", call, usage=Usage())
        unreported.tool(call, LOG)
    text = figures_of(unreported)
    by_chars = "tokens (characters ÷ 4, by which the strategy went) → "
    assert (by_chars in text) == bool(simply) and "report + estimate" not in text
    assert ("Whole request, tokens (estimated with o200k_base, by which" in text) != bool(simply)
    after = figure(str(render_feed(unreported, VIEWER)), "cut.measured_after")
    assert after == str(unreported.state.context.total.tokens)


def test_the_gauge_has_the_threshold_and_the_shares_of_the_window_as_lines() -> None:
    session = reading(begun())
    html = now(session)
    [line] = find(html, data_line="threshold")
    assert line.attributes["x1"] == "80.00%", "3,200 of a window of 4,000"
    marks = [each for each in find(html) if "data-share" in each.attributes]
    assert [each.text.strip() for each in marks] == ["50 %", "70 %", "85 %"]
    estimated = estimate(session.state).exact
    assert f"Estimate {estimated:,} of 3,200 tokens" in find(meter(session), id="meter")[0].text
    far = now(reading(begun(window=1_000_000, reserve=32_768, trigger=2_000)))
    assert not [each for each in find(far) if "data-share" in each.attributes], "a far window presses nothing flat"


@pytest.mark.parametrize(
    ("share", "level", "words"),
    [
        (49, "0", "Less than half"),
        (50, "50", "first warning"),
        (70, "70", "second warning"),
        (85, "85", "last warning"),
    ],
)
def test_the_share_of_the_window_is_said_in_words(share: int, level: str, words: str) -> None:
    session = reading(begun())
    # Rounded down, so that the share is reached.
    session.state.settings["window"] = estimate(session.state).exact * 100 // share if share > 49 else 10_000
    html = now(session)
    [line] = [each for each in find(html) if "data-level" in each.attributes]
    assert line.attributes["data-level"] == level and words in line.text
    assert chip(meter(session), "level") == ("" if level == "0" else f"Past {level} % of the window")


def test_a_request_larger_than_the_window_is_called_so() -> None:
    session = reading(begun())
    session.state.settings["window"] = estimate(session.state).exact
    assert "last warning" in str(now(session)), "as large as the window still fits"
    session.state.settings["window"] -= 1
    html = now(session)
    assert "The request is larger than the window." in str(html) and "last warning" not in str(html)
    assert chip(meter(session), "level") == "Larger than the window" and "goes past the window" in str(html)
    assert "more than 100 %" in str(html), "one token over does not show in a rounded share"
    end = [each for each in find(html) if each.attributes.get("data-share") == "100"]
    assert len(end) == 1, "the end of the window is a line of its own"
    session.state.settings["window"] = estimate(session.state).exact // 2
    assert "more than 100 %" not in str(now(session)) and "200 %" in str(now(session))


def test_a_figure_that_holds_a_report_is_not_called_an_estimate_alone() -> None:
    session = begun()
    assert "Estimate " in find(now(session), id="threshold")[0].text and "report + estimate" not in str(now(session))
    session = reading(session)
    assert isinstance(anchor(session.state), Anchor)
    text = find(now(session), id="threshold")[0].text
    assert "Report + estimate: " in text and "report + estimate with o200k_base" in text
    html, total = now(session), session.state.context.total
    assert estimate(session.state).exact != total.tokens
    assert figure(html, "next.exact") == str(total.tokens), "what the tokenizer says is no report"
    assert figure(html, "next.simple") == str(simple_tokens(total.chars))
    assert figure(html, "next.report_exact") == figure(html, "threshold.estimate") == str(estimate(session.state).exact)


@pytest.mark.parametrize(("source", "step"), [("listed", 2), ("table", 3), ("default", 4)])
def test_it_is_said_which_source_told_the_window(source: str, step: int) -> None:
    session = begun(window=0)
    assert session.state.model
    session.state.model = replace(session.state.model, window_source=source)
    assert f"Source {step} of 4 told" in str(now(session))
    session.state.settings["window"] = 5000
    assert "Source 1 of 4 told" in str(now(session)) and "as set in this session" in str(now(session))
    session.state.settings["window"], session.state.model = (
        0,
        replace(session.state.model, window=None, window_source=""),
    )
    unknown = now(session)
    assert "window is not known" in str(unknown) and not find(unknown, data_figure="window")


def test_both_ways_of_counting_stand_beside_the_report_and_the_one_that_counts_is_marked() -> None:
    session = reading(begun())
    html = now(session)
    rows = {each.attributes["data-way"]: each.text for each in find(html) if "data-way" in each.attributes}
    held, call = anchor(session.state), session.state.calls[-1]
    told = held.usage.prompt
    assert f"{told:,}" in rows["reported"] and "unknown" in rows["reported"]
    # The offline model counts by a rule of its own, so the tokenizer is what the rough rule is held against.
    assert off(simple_tokens(call.size.chars), call.size.tokens) in rows["simple"] and "%" not in rows["exact"]
    model, session.state.model = session.state.model, replace(session.state.model, provider="openai")
    real = {each.attributes["data-way"]: each.text for each in find(now(session)) if "data-way" in each.attributes}
    assert off(simple_tokens(call.size.chars), told) in real["simple"] and off(call.size.tokens, told) in real["exact"]
    session.state.model = model
    marked = [name for name, text in rows.items() if "counts here" in text]
    assert marked == ["report_exact"] == [name for name in rows if name.startswith("report_")]
    session.add(e.SettingChanged(name="count_simply", value=1))
    rows = {each.attributes["data-way"]: each.text for each in find(now(session)) if "data-way" in each.attributes}
    marked = [name for name, text in rows.items() if "counts here" in text]
    assert marked == ["report_simple"] == [name for name in rows if name.startswith("report_")]
    assert f"{estimate(session.state).simple:,}" in rows["report_simple"]


def off(value: int, truth: int) -> str:
    """Return the share by which a count misses, as the page writes it."""
    return f"({round(100 * (value - truth) / truth):+d} %)".replace("-", "−").replace("+0", "±0")


def test_before_the_first_call_and_after_a_cut_only_the_provider_could_know() -> None:
    session = begun()
    assert "Unknown until the first call" in str(now(session)) and not find(now(session), data_figure="sent.exact")
    reading(session, 3)
    cut(session)
    assert "Unknown until the next call" in str(now(session)) and not find(now(session), data_figure="sent.reported")


def cut(session: FoldedSession) -> None:
    """Let a short summary stand for what the strategy would cut."""
    plan, _ = planned(session)
    removed = size_of(parts_of(session.state.context, plan)[0])
    before, state = session.state.context.total, session.state
    session.add(
        e.ContextCompacted(
            number=len(state.compactions) + 1, task=1, strategy=plan.strategy, trigger=plan.trigger, unit=plan.unit,
            budget=plan.budget, measured=plan.measured, measured_after=plan.measured - removed.tokens, before=before,
            after=before - removed, cut=plan.cut, removed=plan.removed, kept=plan.kept, pinned=plan.pinned,
            scope=plan.scope, preface="[Background.]", summary="## Goal\n- read the log", shortened="", calls=(),
            usage=session.state.calls[-1].usage, seconds=0.1, model="offline",
        )
    )  # fmt: skip


def test_where_the_cut_would_fall_now_is_what_happens_then() -> None:
    session = begun()
    assert "nothing to cut" in find(now(session), id="next-cut")[0].text
    reading(session, 3)
    html, (plan, _) = now(session), planned(session)
    assert [figure(html, f"next_cut.{name}") for name in ("removed", "pinned", "kept")] == [
        str(len(each)) for each in (plan.removed, plan.pinned, plan.kept)
    ]
    [pinned] = [each for each in find(html) if "data-pinned" in each.attributes]
    assert "Don't change any file." in pinned.text, "the running task's request is named"
    cut(session)
    assert session.state.compactions[-1].event.removed == plan.removed
    behind = sum(entry.size.tokens for entry in session.state.context.entries[1:])
    for keep in (behind, 5_000):
        session.state.settings["keep"] = keep
        assert [len(planned(session)[0].removed), "nothing to cut" in find(now(session), id="next-cut")[0].text] == [
            int(keep == behind),
            True,
        ], "only a summary stands before what would stay, or nothing does"


def test_a_cut_that_would_free_too_little_is_said_to_be_that() -> None:
    session = reading(begun(), 3)
    strategy = session.strategy
    session.strategy = lambda *asked: (strategy(*asked)[0], replace(strategy(*asked)[1], least=9_000))
    assert "less than 9,000 tokens, so no summary would be asked for" in str(now(session))
    session.state.settings["trigger"] = 100
    assert "hardly free anything" in str(now(session)), "past it, but there is nothing worth a call"


def test_an_open_breaker_is_a_notice_until_something_closes_it() -> None:
    session = reading(begun(), 3)
    for _ in range(2):
        session.add(FAILED)
    assert not find(now(session), id="breaker") and chip(meter(session), "breaker") == ""
    session.state.settings["trigger"] = 100
    assert "so the lab compacts before" in str(now(session))
    session.add(FAILED)
    assert "nothing is compacted by itself now" in find(now(session), id="threshold")[0].text
    [notice] = find(now(session), id="breaker")
    assert "Three attempts in a row failed" in notice.text and "Compact now" in notice.text
    assert chip(meter(session), "breaker") and "by itself" in chip(meter(session), "breaker")
    session.add(e.SettingChanged(name="keep", value=700))
    assert not find(now(session), id="breaker")
    session.state.breaker.fruitless["threshold"] = 2
    assert "hardly smaller" in find(now(session), id="breaker")[0].text
    session.strategy = None
    assert not find(now(session), id="breaker"), "where nothing compacts there is nothing to break"


@pytest.mark.parametrize(
    ("language", "says", "heads"),
    [
        ("en", "Threshold 1,500 and window 4,000 throughout, in tokens.", {"Threshold", "Window"}),
        ("zh", "阈值一直是 1,500，窗口一直是 4,000，单位 token。", {"阈值", "窗口"}),
    ],
)
def test_a_threshold_that_stays_the_same_takes_a_line_and_no_columns(language: str, says: str, heads: set[str]) -> None:
    session, viewer = reading(begun(trigger=1_500), 2), replace(VIEWER, tab="turns", language=language)

    def told() -> tuple[bool, set[str]]:
        html = now(session, viewer)
        return says in html, heads & {each.text for each in find(html, scope="col")}

    assert told() == (True, set())
    session.add(e.SettingChanged(name="trigger", value=1_200))
    measure(session)
    session.call_started()
    assert told() == (False, heads)


def test_a_call_that_is_sent_again_goes_by_what_was_measured_before_the_refusal() -> None:
    session = reading(begun(), 2)
    last = measure(session)
    session.call_started()
    session.add(e.ModelCallFailed(call=3, task=1, kind="overflow", detail="", seconds=0.1))
    session.call_started()
    found = limits(session.records, session.state.calls)
    assert found.keys() == {1, 2, 3, 4} and found[3] == found[4] == last != found[2]


def test_the_line_over_turns_is_what_held_then_and_not_the_settings_of_now() -> None:
    session = reading(begun(trigger=1_500), 2)
    session.add(e.SettingChanged(name="trigger", value=1_200))
    first, second = (each.event for each in session.records if isinstance(each.event, e.ContextMeasured))
    # Where two strategies measure, the one counts that was nearest to acting, or furthest past its threshold.
    session.add(replace(second, strategy="budgets", threshold=9_000))
    third = measure(session)
    session.add(replace(second, strategy="stages", threshold=8_000))
    session.call_started()
    session.call_ended("Done.")
    session.end()
    # A task that was stopped before its call leaves a measuring that belongs to no call.
    session.task("Again")
    measure(session)
    session.end("stopped")
    session.task("And again")
    session.call_started()
    found = limits(session.records, session.state.calls)
    assert found == {1: first, 2: second, 3: third}
    assert [each.threshold for each in found.values()] == [1_500, 1_500, 1_200]
    assert limits(session.records, session.state.calls[1:2]) == {2: second} and limits(session.records, []) == {}
    html = now(session, replace(VIEWER, tab="turns", unit="reported"))
    drawn = [each.attributes["data-value"] for each in find(html, data_line="threshold")]
    assert drawn == ["1500", "1200"] and len(lines(html, "window")) == 1
    # The newest call stands first.
    rows = [each.text for each in find(html) if each.tag == "tr" and "data-call" in each.attributes][::-1]
    for row, event in zip(rows, (first, second, third), strict=False):
        assert f"{event.estimate:,}" in row and f"{event.threshold:,}" in row and "4,000" in row
    assert "past it" in rows[2] and "past it" not in rows[0]
    assert figure(html, "measured.threshold") == "1200" and "1 time past" in str(html)
    assert "and strategy “threshold and cut point” acts above" in str(html), "whose threshold it is"


def test_among_characters_the_threshold_is_no_line_and_the_page_says_so() -> None:
    session = reading(begun(), 2)
    html = now(session, replace(VIEWER, tab="turns"))
    assert not lines(html, "threshold") and not lines(html, "window") and "no line among characters" in str(html)
    [link] = [each for each in find(html) if each.tag == "a" and "Show tokens" in each.text]
    assert "unit=estimated" in link.attributes["href"] and "Thresholds" not in str(html)
    session = reading(begun(window=1_000_000), 2)
    html = now(session, replace(VIEWER, tab="turns", unit="estimated"))
    assert not lines(html, "threshold") and "far above every bar" in str(html) and "999,200" not in str(html)
    assert "850,000" in str(html), "the table has it"


def test_a_strategy_that_cannot_say_costs_no_page() -> None:
    session = reading(begun())
    del session.state.settings["reserve"]
    panel = panel_of(session, VIEWER)
    assert (panel.threshold, panel.boundary, panel.gauge) == (None, None, None)
    html = render_session(session, VIEWER, Asked(keep=1), sandbox="none")
    assert not find(html, id="threshold") and not find(html, id="by-hand") and "window is 4,000 tokens" in html


def test_by_hand_there_is_nothing_to_choose_and_the_preview_names_what_stays() -> None:
    session = reading(begun(), 3)
    html = render_session(session, VIEWER, Asked(keep=2), sandbox="none")
    form = html.split('id="by-hand"')[1].split("</details>\n    </div>")[0]
    assert 'type="radio"' not in form and "nothing to choose" in form and "data-preview" in form
    plan, _ = planned(session, "by hand", 1)
    assert [figure(html, f"hand.{name}") for name in ("removed", "pinned", "kept")] == [
        str(len(each)) for each in (plan.removed, plan.pinned, plan.kept)
    ]
    assert find(html, name="cut")[0].attributes["value"] == str(plan.cut)
    tokens = render_session(session, replace(VIEWER, unit="estimated"), sandbox="none")
    removed = size_of(parts_of(session.state.context, plan)[0])
    assert figure(tokens, "hand.cut.tokens.estimated") == str(removed.tokens)
    assert figure(html, "hand.cut.chars") == str(removed.chars)


# --- With a real server. ---


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("threshold"), lab="08", language="en") as running:
        yield running


def page_of(web: Web, session: Session, query: str = "") -> str:
    return web.ask(f"/s/{session.id}{query}", headers=HTML).text


def pressed(html: str) -> list[str]:
    """Return the presets that are shown as on."""
    return [x.attributes["value"] for x in find(html, name="preset") if x.attributes["aria-pressed"] == "true"]


def test_compact_now_does_what_the_preview_said(web: Web) -> None:
    session = web.session()
    web.run(run_sample(session, 1), 60)
    path, html = f"/s/{session.id}", page_of(web, session)
    cut = find(html, name="cut")[0].attributes["value"]
    plan, _ = by_hand.plan_by_hand(STRATEGY, session.state, 1)
    stale = web.post(f"{path}/compact", {"cut": str(int(cut) - 1), "focus": ""}, HTMX)
    assert stale.status == 409 and "since the preview" in stale.text
    before = len(session.state.compactions)
    assert web.post(f"{path}/compact", {"keep": "1", "cut": cut, "focus": ""}, HTMX).status == 204

    async def settled() -> None:
        while session.status != "idle":
            await asyncio.sleep(0.01)

    web.run(settled())
    made = session.state.compactions[before:]
    refused = events(session, e.CompactionRefused)
    assert [each.event.removed for each in made] == [plan.removed] or refused[-1].reason == "not_smaller"


def test_a_preset_is_chosen_with_one_click_and_each_number_is_an_event(web: Web) -> None:
    session = web.session()
    path = f"/s/{session.id}"
    small, article = LAB.presets
    html = page_of(web, session)
    assert pressed(html) == ["small"] and chip(html, "preset") == f"Numbers: {small.title['en']}"
    answer = web.post(f"{path}/preset", {"preset": "article"}, HTMX)
    assert answer.status == 200 and "In force from now on" in answer.text and pressed(answer.text) == ["article"]
    changed = {each.name: each.value for each in events(session, e.SettingChanged)}
    assert changed == {k: v for k, v in article.settings.items() if small.settings[k] != v}
    assert [bool(each.preset) for each in events(session, e.SettingChanged)] == [True] + [False] * (len(changed) - 1)
    rows = [each.text for each in find(page_of(web, session)) if each.attributes.get("data-event") == "SettingChanged"]
    assert f"You chose the numbers “{article.title['en']}”" in rows[0] and "You chose" not in "".join(rows[1:])
    assert "in force already" in web.post(f"{path}/preset", {"preset": "article"}, HTMX).text
    web.post(f"{path}/numbers", {"reserve": "1000"}, HTMX)
    html = page_of(web, session)
    assert pressed(html) == [] and chip(html, "preset") == "Numbers: your own" and "your own numbers" in html
    plain = web.post(f"{path}/preset", {"preset": "small"})
    assert (plain.status, plain.headers["location"]) == (303, f"{path}?drawer=1")
    assert session.state.settings.items() >= small.settings.items()
    before = len(session.records)
    for wrong in ("huge", "", "<b>"):
        assert web.post(f"{path}/preset", {"preset": wrong}, HTMX).status == 404
    assert len(session.records) == before


def test_while_a_task_runs_a_preset_with_another_window_is_refused_whole(web: Web) -> None:
    session = web.session()

    async def begin() -> None:
        session.emit(e.FaultChosen(fault="stall"))
        session.start_task("Say something.", language="en")

    web.run(begin())
    answer = web.post(f"/s/{session.id}/preset", {"preset": "article"}, HTMX)
    assert answer.status == 409 and 'hx-target="#notice"' in answer.text and "still running" in answer.text
    assert events(session, e.SettingChanged) == [] and preset_on(LAB, session.state.settings) == LAB.presets[0]
    assert web.post(f"/s/{session.id}/preset", {"preset": "small"}, HTMX).status == 200, "it changes nothing"
    web.run(session.stop())


def test_a_preset_with_a_number_that_cannot_be_is_refused_whole(web: Web) -> None:
    session = web.session()
    broken = replace(LAB.presets[0], id="broken", settings={"keep": 1, "colour": 2})
    session.lab = replace(LAB, presets=(broken,))
    assert web.post(f"/s/{session.id}/preset", {"preset": "broken"}, HTMX).status == 422
    assert events(session, e.SettingChanged) == []


def test_an_open_page_hears_of_a_preset(web: Web) -> None:
    session = web.session()
    stream = web.stream(f"/s/{session.id}/events?after={session.committed}", {})
    web.post(f"/s/{session.id}/preset", {"preset": "article"}, HTMX)
    read = stream.until(len(session.records))
    assert pressed(drawer_in(read[-1].data)) == ["article"]
    panel = stream.next()
    while panel and panel.id is not None:
        panel = stream.next()
    assert panel and "Numbers: The article&#39;s numbers" in panel.data


def drawer_in(data: str) -> str:
    found = re.search(r'<hx-partial hx-target="#drawer-session"[^>]*>(.*?)</hx-partial>', data, re.DOTALL)
    assert found
    return found[1]


def test_a_lab_without_presets_has_no_such_choice_and_a_past_moment_changes_none() -> None:
    session = FoldedSession().begin()
    html = render_session(session, VIEWER, sandbox="none")
    assert not find(html, id="drawer-presets") and not find(html, name="preset")
    assert chip(html, "preset") == ""
    moment = render_session(reading(begun()), replace(VIEWER, at=3), sandbox="none")
    assert moment.split('id="drawer-presets"')[1].lstrip().split("<fieldset")[1].startswith(" disabled")


def test_switches_are_boxes_to_tick_and_no_numbers(web: Web) -> None:
    session = web.session()
    html = page_of(web, session)
    for name in ("count_simply", "keep_demands", "confirm_summary"):
        [box] = find(html, id=f"set-{name}")
        assert box.attributes["type"] == "checkbox" and box.attributes["value"] == "1"
        assert ("checked" in box.attributes) == bool(session.state.settings[name])
        assert find(html, id=box.attributes["aria-describedby"])[0].text.endswith(".")
    headers = HTMX | {"Content-Type": "application/x-www-form-urlencoded"}
    sent = "count_simply=0&count_simply=1&keep_demands=0"
    answer = web.ask(f"/s/{session.id}/numbers", "POST", sent, headers)
    assert answer.status == 200
    assert (session.state.settings["count_simply"], session.state.settings["keep_demands"]) == (1, 0)
    rows = page_of(web, session)
    assert "Switched on: Count characters ÷ 4." in rows and "Switched off: Keep your own limits" in rows


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_of_every_lab_has_words(language: str) -> None:
    words = load_words(language)
    for name in {name for lab in ALL.values() for name in lab.settings}:
        sections = (
            ("switch_name", "switch_says") if name in SWITCHES else ("setting_name", "setting_unit", "setting_says")
        )
        assert all(words.has(section, name) for section in sections), name


def test_what_is_drawn_is_well_formed() -> None:
    session = reading(begun(), 3)
    cut(session)
    for tab in ("now", "turns"):
        for unit in ("characters", "estimated", "reported"):
            assert elements(render_session(session, replace(VIEWER, tab=tab, unit=unit), sandbox="none"))
