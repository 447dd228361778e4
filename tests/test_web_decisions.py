"""Cuts inside a task, texts that stand for results, and resumes: the page shows what the model reads."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness import by_hand
from harness import events as e
from harness.breaker import MOST_FAILURES
from harness.messages import ToolCall, ToolResult
from harness.result_events import Decision
from harness.session import Session
from tests.harness_support import library, run_sample, until
from tests.test_web_feed import Page, rows
from tests.web_html import Element, elements, figure, find
from tests.web_session import (
    LOG,
    FoldedSession,
    decided_session,
    first_task,
    read_turn,
    resumed_session,
    threshold_session,
)
from web.catalogue import load
from web.feed import render_feed
from web.moment import moment_of
from web.pages import Pages
from web.panel import panel_of
from web.parts import in_context
from web.screens import Asked, render_session
from web.updates import render_updates
from web.viewer import Viewer
from web.words import LANGUAGES

VIEWER = Viewer(Pages.load(), form_token="token-1")
MODEL = replace(VIEWER, view="model")
SESSIONS = {"threshold": threshold_session, "decided": decided_session, "resumed": resumed_session}
Make = Callable[[], FoldedSession]
# The settings of all labs whose 0 is no amount.
ZEROS = {"window", "trigger", "result_limit", "turn_limit", "stale_turns", "event_chars", "read_chars"}


def follow(whole: FoldedSession, viewer: Viewer) -> tuple[FoldedSession, Page, list[e.Event]]:
    """Return an empty session and page, and the events that are to come."""
    return FoldedSession(lab=whole.lab), Page(), [each.event for each in whole.records]


def step(session: FoldedSession, page: Page, event: e.Event, viewer: Viewer) -> None:
    """Record one event and let the page take what it changes."""
    session.status = "idle" if isinstance(event, e.TaskEnded) else "running"
    session.waiting = event if isinstance(event, e.ApprovalRequested) else None
    recorded = session.add(event)
    for update in render_updates(session, recorded, viewer):
        page.take(update)


def shown(html: str) -> list[Element]:
    return [x for x in elements(html) if "data-event" in x.attributes or x.attributes.get("id") == "cut-line"]


def read_by_eye(html: str) -> list[int]:
    """The messages that are not dimmed, as static/css/feed.css does it: by the line, `stays` and `left`."""
    found = shown(html)
    cut = next((place for place, x in enumerate(found) if x.attributes.get("id") == "cut-line"), 0)
    bright = []
    for place, row in enumerate(found):
        classes = set(row.attributes["class"].split())
        if "entry" in classes and "left" not in classes and (place > cut or "stays" in classes or not cut):
            bright.append(int(row.attributes["data-seq"]))
    return bright


@pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)
def test_after_every_event_what_is_not_dimmed_is_the_context(make: Make) -> None:
    session, page, events = follow(make(), VIEWER)
    for event in events:
        step(session, page, event, VIEWER)
        # A tool's row shows its message once it has one; the summary has its own rule.
        told = {entry.seq for entry in session.state.context.entries if entry.category != "summary"}
        assert set(read_by_eye(page.html)) == told, event
        assert page.html == render_feed(session, VIEWER)


@pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)
def test_after_every_event_the_model_view_is_the_context_in_its_order(make: Make) -> None:
    session, page, events = follow(make(), MODEL)
    for event in events:
        step(session, page, event, MODEL)
        assert re.sub("\n+", "\n", page.html) == re.sub("\n+", "\n", render_feed(session, MODEL)), event
        there = in_context(session.state)
        seqs = [int(row.attributes["data-seq"]) for row in find(page.html) if "data-seq" in row.attributes]
        assert [seq for seq in seqs if seq in there] == list(there)
        assert not {entry.seq for entry in session.state.history if entry.seq not in there} & set(seqs)
        for seq, entry in there.items():
            if isinstance(entry.message, ToolResult):
                row = next(row for row in shown(page.html) if row.attributes.get("data-seq") == str(seq))
                content = str(entry.wire["content"])
                assert content in row.text and (content == entry.message.text or entry.message.text not in row.text)


def test_a_page_of_older_rows_keeps_what_stays_bright() -> None:
    session = threshold_session()
    [stays] = {x.event.pinned for x in session.state.in_force[-1:]}
    html = render_session(session, VIEWER, Asked(before=stays[0] + 3), sandbox="none")
    [feed] = find(html, id="feed")
    assert "past-cut" in feed.attributes["class"]
    [row] = [x for x in shown(html) if x.attributes["class"].endswith(" stays")]
    assert row.attributes["data-seq"] == str(stays[0])


@pytest.mark.parametrize("tab", ["now", "turns", "diff", "lost"])
def test_in_the_model_view_every_link_leads_to_a_row_that_is_there(tab: str) -> None:
    for make in SESSIONS.values():
        html = render_session(make(), replace(MODEL, tab=tab), sandbox="none")
        ids = {x.attributes.get("id") for x in elements(html)}
        inside = [x.attributes["href"] for x in elements(html) if x.attributes.get("href", "").startswith("#")]
        assert {link[1:] for link in inside} <= ids


def lines(session: FoldedSession, kind: str, viewer: Viewer = VIEWER) -> list[str]:
    return [" ".join(row.text.split()) for row in find(render_feed(session, viewer), data_event=kind)]


def test_a_measuring_says_both_estimates_with_units_and_what_was_reported() -> None:
    session = FoldedSession().begin()
    session.task("Read")
    first = session.watch().event
    session.call_started()
    session.call_ended("Done.")
    session.end()
    session.task("Again")
    event = session.watch(100).event
    assert isinstance(first, e.ContextMeasured) and isinstance(event, e.ContextMeasured) and event.reported
    html = render_feed(session, VIEWER)
    names = ("estimate", "threshold", "simple")
    assert [figure(html, f"measured.{name}") for name in names] == [str(getattr(first, name)) for name in names]
    one, two = lines(session, "ContextMeasured")
    assert (
        one.count("tokens") >= 2
        and "o200k_base" in one
        and "With characters ÷ 4" in one
        and "No call of this context" in one
    )
    assert f"{event.estimate} tokens (report + estimate with o200k_base), past the threshold of 100 tokens" in two
    assert f"{first.estimate} tokens (estimated with o200k_base) of a threshold of 3,200 tokens" in one
    assert f"The provider reported {event.reported:,} for call 1" in two
    simple = replace(event, estimate=event.simple)
    session.add(simple)
    last = lines(session, "ContextMeasured")[-1]
    assert f"{event.simple} tokens (report + estimate as characters ÷ 4)" in last
    assert f"With o200k_base instead it would be {event.exact} tokens" in last
    chinese = lines(session, "ContextMeasured", replace(VIEWER, language="zh"))
    assert "字符数 ÷ 4" in chinese[0] and "超过了阈值 100 个 token" in chinese[1]


def test_only_results_that_were_replaced_have_a_row_and_it_says_why_and_where() -> None:
    session = decided_session()
    events = [each.event for each in session.records if isinstance(each.event, e.ResultsDecided)]
    html = render_feed(session, VIEWER)
    found = find(html, data_event="ResultsDecided")
    assert len(found) == len(events)
    first, failed, stale, together, back, again = (" ".join(row.text.split()) for row in found)
    assert "read log-0.md" in first and "too large by itself" in first and ".tool-results/1-read.txt" in first
    assert "The whole result lies in the file .tool-results/1-read.txt" in first
    assert "log-1.md" not in first and "log-2.md" not in first, "what was kept is not listed"
    large = events[0].decisions[0]
    assert f"{large.chars:,} → {len(large.text)} characters" in first and large.text in found[0].text
    assert figure(html, "decided.freed.chars") == str(events[0].freed_chars) and events[0].freed_chars > 1000
    assert f"{events[0].freed_tokens:,} tokens (estimated)" in first
    assert "could not be written (.tool-results/1-read.txt: No space left on device)" in failed
    assert "characters" not in failed and "old" in stale and "too large together" in together
    assert "Decided anew" in back and "sent as it came again" in back and "Decided anew" in again
    assert "Decided anew" not in first + stale + together
    chinese = lines(session, "ResultsDecided", replace(VIEWER, language="zh"))
    assert "单独一条就太大" in chinese[0] and "个字符" in chinese[0]


@pytest.mark.parametrize("viewer", [VIEWER, MODEL], ids=["full", "model"])
def test_results_that_are_all_kept_leave_no_trace_on_the_page(viewer: Viewer) -> None:
    session = FoldedSession().begin()
    session.task("Read")
    call = read_turn(session, 1)
    before = render_feed(session, viewer)
    recorded = session.decide(Decision(call.id, "kept", len(LOG)))
    assert [update.target_id for update in render_updates(session, recorded, viewer)] == ["status"]
    assert render_feed(session, viewer) == before
    session.call_started()
    session.call_ended("Read.")
    session.end()
    assert render_feed(session, viewer), "the cut point may fall where it stands"


def test_a_replaced_result_keeps_its_original_and_says_that_the_model_reads_another() -> None:
    session = decided_session()
    decision = session.records[[x.seq for x in session.records if isinstance(x.event, e.ResultsDecided)][2] - 1]
    assert isinstance(decision.event, e.ResultsDecided)
    old = decision.event.decisions[0]
    entry = session.state.results[old.call_id]
    [row] = [row for row in shown(render_feed(session, VIEWER)) if row.attributes.get("data-seq") == str(entry.seq)]
    assert entry.message.text in row.text and old.text in row.text
    assert f"The model reads another text of {len(old.text)} characters" in row.text
    # The one figure is the message with its envelope, the other a text.
    assert f"{entry.size.chars:,} characters as JSON" in row.text
    [row] = [row for row in shown(render_feed(session, MODEL)) if row.attributes.get("data-seq") == str(entry.seq)]
    assert entry.message.text not in row.text and old.text in row.text
    now = in_context(session.state)[entry.seq]
    assert f"{now.size.chars} characters" in row.text


def compaction(session: FoldedSession, number: int, viewer: Viewer = VIEWER) -> Element:
    seq = session.state.compactions[number - 1].seq
    [row] = find(render_feed(session, viewer), id=f"row-{seq}")
    return row


def test_a_compaction_inside_a_task_says_its_trigger_its_threshold_and_what_stays() -> None:
    session = threshold_session()
    texts = [" ".join(compaction(session, number).text.split()) for number in (1, 2, 3, 4)]
    event = session.state.compactions[0].event
    assert f"{event.measured:,} tokens and the threshold is {event.budget:,}" in texts[0] or event.measured <= 3200
    assert "the provider refused the request as too long" in texts[1]
    assert "because you asked for it" in texts[2] and "Trigger:" not in texts[2]
    for text, made in zip(texts, session.state.compactions, strict=True):
        assert f"threshold {made.event.budget:,}" in text and "Finished tasks" not in text
        way = r"( tokens \(report \+ estimate, [^)]+\))?"
        assert re.search(rf"{made.event.measured:,}{way} → {made.event.measured_after:,} ", text)
        assert ("running task's request" in text) == bool(made.event.pinned)
        assert (f"{len(made.event.pinned)} from before the cut point stay" in text) == bool(made.event.pinned)
    assert "characters of JSON" not in texts[0]


def test_what_stands_beside_a_summary_has_its_own_heading_and_the_exact_text_is_the_message() -> None:
    session = threshold_session()
    made = session.state.compactions[0]
    html = render_feed(session, VIEWER)
    [row] = find(html, id=f"row-{made.seq}")
    assert "Beside the summary" in row.text and "Your own demands and limits" in row.text
    prose = find(html, class_="prose summary-text")[0]
    assert "Word for word" not in prose.text and "find out why" in prose.text
    assert str(made.summary.wire["content"]) in [x.text for x in find(html) if x.tag == "pre"]
    [demand] = [x for x in find(html) if x.tag == "li" and "ul" in x.inside and x.text.startswith("Don't change")][:1]
    assert "beside it" in demand.text
    second = session.state.compactions[1]
    assert not second.event.beside
    assert "Beside the summary" not in find(html, id=f"row-{second.seq}")[0].text


def test_in_the_model_view_the_summary_is_the_whole_message() -> None:
    session = FoldedSession().begin()
    session.task("Find out why.")
    read_turn(session, 1)
    read_turn(session, 2)
    session.cut(2, "## Goal\n- why", beside="[Files]\n<b>README.md</b>")
    [summary] = find(render_feed(session, MODEL), data_event="ContextCompacted")
    content = str(session.state.context.entries[0].wire["content"])
    assert content in summary.text and f"{len(content)} characters of text" in summary.text
    assert "sent as a system message" not in summary.text
    resumed = resumed_session()
    assert "sent as a system message" not in compaction(resumed, 3, MODEL).text
    at = next(each.seq for each in resumed.records if isinstance(each.event, e.TaskResumed))
    then = FoldedSession()
    for each in resumed.records[:at]:
        then.add(each.event)
    assert "sent as a system message" in compaction(then, 1, MODEL).text
    assert "Left behind when the task went on from a checkpoint." in compaction(then, 2).text


def test_undoing_says_what_it_does_inside_a_task() -> None:
    session = FoldedSession().begin()
    first_task(session)
    session.task("Find out why.")
    read_turn(session, 1)
    session.cut(2)
    session.end()
    event = session.state.compactions[0].event
    assert f"Puts {len(event.removed)} messages back where they stood" in compaction(session, 1).text
    before = session.state.entries_at(session.state.compactions[0].seq)
    session.undo()
    assert session.state.context.entries == before
    assert "a higher threshold prevents that" in lines(session, "CompactionUndone")[0]


REASONS = {
    "summary_too_long": "too long for the model",
    "little_gain": "too little would be freed",
    "nothing_to_cut": "at the very start",
    "breaker_failures": "too many attempts in a row have failed",
    "breaker_no_progress": "freed too little",
}


@pytest.mark.parametrize(("reason", "words"), REASONS.items())
def test_a_refusal_is_one_line_that_says_what_was_kept(reason: str, words: str) -> None:
    session = FoldedSession().begin()
    session.task("Find out why.")
    refused = {"task": 1, "strategy": "threshold", "trigger": "threshold"}
    session.add(e.CompactionRefused(reason=reason, failures=2, **refused))
    [line] = lines(session, "CompactionRefused")
    assert words in line and "The conversation is as it was" in line
    assert f"Failure 2 of {MOST_FAILURES} in a row." in line
    assert ("The next call tries again." in line) == (reason == "summary_too_long")
    session.add(e.CompactionRefused(reason=reason, **refused))
    assert "in a row." not in lines(session, "CompactionRefused")[1]
    [chinese, _] = lines(session, "CompactionRefused", replace(VIEWER, language="zh"))
    assert "没有整理" in chinese and "连续第 2 次失败" in chinese


@pytest.mark.parametrize("trigger", ["task ended", "threshold", "stage", "overflow", "by hand"])
@pytest.mark.parametrize("failures", [2, 3, 4])
def test_the_failure_that_stops_it_says_so_and_promises_no_further_attempt(trigger: str, failures: int) -> None:
    session = FoldedSession().begin()
    session.task("Find out why.")
    refused = {"task": 1, "strategy": "threshold", "trigger": trigger, "reason": "summary_cut_off"}
    session.add(e.CompactionRefused(failures=failures, **refused))
    [line] = lines(session, "CompactionRefused")
    [chinese] = lines(session, "CompactionRefused", replace(VIEWER, language="zh"))
    stopped = failures >= MOST_FAILURES
    assert ("From now on nothing is compacted by itself" in line) == stopped == ("从现在起不再自动整理" in chinese)
    assert ("tries again" in line) == (trigger in ("task ended", "threshold", "stage") and not stopped)
    assert ("再试" in chinese) == ("tries again" in line)
    assert ("You can ask again." in line) == (trigger == "by hand")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", sorted(ZEROS))
def test_a_setting_whose_zero_has_a_meaning_is_told_by_it(name: str, language: str) -> None:
    session = FoldedSession().begin()
    viewer = replace(VIEWER, language=language)
    session.add(e.SettingChanged(name=name, value=0))
    session.add(e.SettingChanged(name=name, value=7))
    zero, seven = lines(session, "SettingChanged", viewer)
    assert not re.search(r"\b0\b", zero) and "7" in seven
    assert "0" in str(viewer.words.code("setting_says", name)), "the drawer says it too"


def test_every_zero_that_switches_something_off_is_among_them() -> None:
    assert ZEROS == {key.removeprefix("setting_zero.") for key in load("en").entries if key.startswith("setting_zero.")}


def test_a_request_that_was_too_large_is_not_to_be_sent_again() -> None:
    session = FoldedSession().begin()
    session.task("Read")
    session.add(e.TaskEnded(task=1, reason="failed", detail="overflow", seconds=0.1))
    session.task("Read")
    session.add(e.TaskEnded(task=2, reason="failed", detail="connection", seconds=0.1))
    large, other = lines(session, "TaskEnded")
    assert "it would be refused again" in large and "Send it again." not in large and "request too large" in large
    assert "Send it again." in other


def test_a_cut_counted_in_two_ways_is_still_past_only_by_the_share_that_is_left() -> None:
    session = threshold_session()
    made = session.state.compactions[0]
    before, after = made.event.before, made.event.after
    told = {"measured": before.tokens - 200, "measured_after": after.tokens}
    # By our count it stays above both, by the provider's it comes below one of them.
    for budget, words in ((after.tokens - 1, "within it, going by the share"), (1, "still past it")):
        event = replace(made.event, budget=budget, **told)
        recorded = replace(session.records[made.seq - 1], event=event)
        session.records[made.seq - 1] = recorded
        assert (event.left > budget) == (budget == 1)
        text = " ".join(compaction(session, 1).text.split())
        assert words in text and ("still past it" in text) == (budget == 1)


def fates_of(session: FoldedSession) -> dict[str, str]:
    html = render_session(session, replace(VIEWER, tab="lost", facts="identifier"), sandbox="none")
    facts = [row for row in elements(html) if "data-fate" in row.attributes]
    return {row.text.split()[0]: row.attributes["data-fate"] for row in facts}


def test_what_was_lost_knows_what_stays_and_what_stands_beside() -> None:
    session = FoldedSession().begin()
    session.task("Read `probe_a`. Never touch /etc/hosts.")
    read_turn(session, 1, "probe_a probe_b probe_c probe_d")
    read_turn(session, 2, "probe_b E-217")
    session.cut(2, "## Goal\n- probe_c", beside="- probe_d\n- Never touch /etc/hosts.")
    fates = fates_of(session)
    assert fates == {"probe_a": "tail", "probe_b": "tail", "probe_c": "summary", "probe_d": "beside"}


def test_what_was_lost_goes_by_what_the_model_read() -> None:
    session = FoldedSession().begin()
    session.task("Read.")
    calls = [read_turn(session, number, f"probe_{number} lane_{number} gate_x") for number in (1, 2, 3)]
    session.decide(Decision(calls[0].id, "stale", 21, "lane_1 …"))
    session.cut(2, "## Goal\n- none")
    session.decide(Decision(calls[2].id, "stale", 21, "lane_3 …"))
    fates = fates_of(session)
    assert "probe_1" not in fates, "it had left the request before"
    assert fates["lane_1"] == fates["probe_2"] == "lost" and fates["gate_x"] == "lost", "no longer in what stayed"


def test_in_the_diff_a_replaced_result_shows_both_texts_and_breaks_the_shared_start() -> None:
    session = FoldedSession().begin()
    session.task("Read.")
    calls = [read_turn(session, number, f"first line of {number}\n{LOG}") for number in (1, 2, 3)]
    session.call_started()
    session.call_ended("One moment.", next_call := ToolCall("n1", "read", "{}"))
    session.tool(next_call, "short")
    session.decide(Decision(calls[1].id, "stale", 900, "[a preview]"))
    session.call_started()
    view = panel_of(session, replace(VIEWER, tab="diff")).request
    assert view and view.later
    assert [change.change.kind for change in view.changes] == ["kept", "replaced", "kept", "added"]
    replaced = view.changes[1]
    assert [line.first for line in (*replaced.before.lines, *replaced.after.lines)] == [
        "first line of 2 …", "[a preview]",
    ]  # fmt: skip
    entry = session.state.results[calls[1].id]
    assert view.diff.breaks_at and view.diff.breaks_at.seq == entry.seq and view.breaks
    assert max(piece.seq for piece in view.diff.shared) < entry.seq
    html = render_session(session, replace(VIEWER, tab="diff"), sandbox="none")
    [shown_change] = find(html, data_change="replaced")
    assert "first line of 2" in shown_change.text and "[a preview]" in shown_change.text


async def played(folder: Path) -> Session:
    """Lab 08 with a small window: compactions inside tasks, one by hand, one undone."""
    async with library(folder, lab="08", settings={"window": 4000, "trigger": 1500}) as opened:
        session = await opened.create(language="en")
        await run_sample(session, 1)
        plan, _ = by_hand.plan_by_hand(session.strategy, session.state, 1)
        if by_hand.cuts(session.state, plan):
            by_hand.compact_now(session, focus="", keep=1, cut=plan.cut, language="en")
            await until(lambda: session.status == "idle")
        by_hand.undo(session, session.state.in_force[-1].event.number)
        await run_sample(session, 2)
        await until(lambda: session.status == "idle" and session.committed == len(session.records))
        return session


def test_a_real_session_of_lab_08_looks_the_same_live_and_after_a_reload_at_every_moment(tmp_path: Path) -> None:
    async def scenario() -> None:
        session = await played(tmp_path)
        inside = [made for made in session.state.compactions if made.event.pinned]
        assert len(inside) > 1 and any(made.undone for made in session.state.compactions)
        for viewer in (VIEWER, MODEL):
            live, page = FoldedSession(lab=session.lab, strategy=session.strategy), Page()
            for recorded in session.records:
                step(live, page, recorded.event, viewer)
                assert rows(page.html) == rows(render_feed(live, viewer)), recorded
                if isinstance(recorded.event, e.ContextMeasured | e.ContextCompacted | e.TaskEnded):
                    then = await moment_of(session, recorded.seq)
                    assert rows(render_feed(then, viewer)) == rows(page.html)
                    assert then.state.context.entries == live.state.context.entries
                    told = {entry.seq for entry in then.state.context.entries if entry.category != "summary"}
                    assert viewer is MODEL or set(read_by_eye(render_feed(then, viewer))) == told
                    for tab in ("now", "turns", "diff", "lost"):
                        assert panel_of(then, replace(viewer, tab=tab)).total == then.state.context.total
            assert list(page.rows) == rows(render_feed(session, viewer))

    asyncio.run(scenario())


def test_an_undoing_says_that_the_meter_goes_by_another_figure_now() -> None:
    session = threshold_session()
    [line] = lines(session, "CompactionUndone")
    assert "the meter and the threshold go by an estimate of all of it" in line
    assert "计量条和阈值都改看整个请求的估计" in lines(session, "CompactionUndone", replace(VIEWER, language="zh"))[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_changed_summary_that_a_resume_left_was_in_the_context_until_then(language: str) -> None:
    session, viewer = resumed_session(), replace(VIEWER, language=language)
    left = next(made for made in session.state.compactions if made.undone)
    place = left.seq - 1
    event = replace(left.event, written="## Goal\n- as the model had it")
    session.records[place] = replace(session.records[place], event=event)
    text = compaction(session, left.event.number, viewer).text
    says = {"en": "until the task went on from a checkpoint.", "zh": "任务从检查点继续之前，上下文里的是你的版本"}
    assert says[language] in text and {"en": "until the undoing", "zh": "撤销之前"}[language] not in text
