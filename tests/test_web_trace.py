"""The tab "Trace": its tree says what the events say, leads to where that stands, and stays small in a long task."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness import events as e
from harness.hooks import Extension
from harness.messages import ToolCall
from harness.sizes import Usage
from harness.tracing.standing import Sending
from tests.web_html import Element, elements, figure, find
from tests.web_session import (
    FoldedSession,
    checked_session,
    compacted_session,
    decided_session,
    first_task,
    handed_session,
    read_turn,
    resumed_session,
    threshold_session,
)
from web.child_view import ChildShown
from web.pages import Pages
from web.panel import panel_of
from web.screens import render_session
from web.sending_changes import render_sending
from web.trace import NEAR, Line, trace_view
from web.trace_tree import LISTED
from web.updates import render_panel_updates
from web.viewer import Viewer
from web.words import LANGUAGES

VIEWER = Viewer(Pages.load(), tab="trace", form_token="token-1")
SESSIONS = (compacted_session, handed_session, checked_session, threshold_session, decided_session, resumed_session)


def panel(session: FoldedSession, viewer: Viewer = VIEWER) -> str:
    """The panel as it is sent to an open page."""
    return next(str(update.html) for update in render_panel_updates(session, viewer) if update.target_id == "panel")


def roots(session: FoldedSession, viewer: Viewer = VIEWER) -> tuple[Line, ...]:
    view = trace_view(session, viewer)
    assert view
    return view.roots


def lines(some: tuple[Line, ...], depth: int = 0) -> Iterator[tuple[int, Line]]:
    for line in some:
        yield depth, line
        yield from lines(line.inside, depth + 1)


def told(session: FoldedSession, **asked: int) -> list[str]:
    """Every line as it is read, indented as it stands."""
    viewer = replace(VIEWER, **asked)
    return [f"{'  ' * depth}{line.name.unescape()}" for depth, line in lines(roots(session, viewer))]


def items(html: str, **attributes: str) -> list[Element]:
    return [item for item in find(html, **attributes) if item.tag == "li"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_before_the_first_task_it_says_what_will_stand_there(language: str) -> None:
    viewer = replace(VIEWER, language=language)
    html = panel(FoldedSession().begin(), viewer)
    assert str(viewer.words.t("trace.none")) in html and not items(html, data_kind="AGENT")


def test_what_a_task_did_stands_inside_of_what_it_was_done_for() -> None:
    session = compacted_session()
    assert told(session, task=1) == [
        "Task 1",
        "  Turn 1",
        "    Model call 1",
        "    read",
        "  Turn 1",
        "    Model call 2",
        "  Finished tasks measured: 0 characters, budget 1,500",
    ]
    newest = told(session)
    assert newest[0] == "Task 2" and "  Compaction 1" in newest
    inside = newest[newest.index("  Compaction 1") + 1]
    assert inside == "    Call 4, for a summary"
    assert told(session, task=99) == newest, "a task that is not there is the newest one"


def test_sub_agents_stand_inside_of_their_calls_and_lead_to_their_own_pages() -> None:
    session = handed_session()
    found = told(session)
    place = found.index("      Sub-agent 1")
    assert found[place - 1] == "    task", "below the call that it works for"
    assert "          Compaction 1" not in found[:place]
    children = [line for _, line in lines(roots(session)) if line.span and line.span.child == 2]
    assert {line.what for line in children} >= {"child", "turn", "call", "approval", "tool"}
    call = next(line for line in children if line.what == "call")
    assert call.row == "/s/s1/children/2?tab=trace#model-call-1"
    own = trace_view(ChildShown(session, session.state.children[2]), replace(VIEWER, at=session.committed, child=2))
    assert own and own.tasks == () and own.request == "look <2>"
    assert [line.name for line in own.roots] == ["Sub-agent 2"]
    assert {line.row for _, line in lines(own.roots) if line.what == "call"} == {"#model-call-1", "#model-call-2"}


def test_waiting_for_a_person_is_no_part_of_the_tools_own_time() -> None:
    session = FoldedSession().begin()
    session.task("Mend it")
    session.call_started()
    call = ToolCall("c1", "bash", '{"command":"make <b>"}')
    session.call_ended("", call)
    named = {"task": 1, "call_id": call.id, "name": call.name, "arguments": call.arguments}
    session.add(e.ApprovalRequested(preview="make", seconds=5, **named))
    for _ in range(7):
        session.add(e.Ticked(tick="t", on=True))  # each second one event
    session.add(e.ApprovalAnswered(allowed=True, by="person", **named))
    session.tool(call, "done")
    session.end()
    asked, ran = (next(line for _, line in lines(roots(session)) if line.what == what) for what in ("approval", "tool"))
    assert (asked.seconds, ran.seconds) == (8, 1)
    assert float(ran.x[:-1]) >= float(asked.x[:-1]) + float(asked.width[:-1]), "one after the other"
    html = panel(session)
    assert "waited 8.0 s for you" in items(html, data_what="task")[0].text
    assert "allowed by you" in items(html, data_what="approval")[0].text
    assert "Ticked" not in html and "make &lt;b&gt;" in html
    assert re.findall(r'fill="url\(#hatch-waits\)"', html) == ['fill="url(#hatch-waits)"']


@pytest.mark.parametrize("language", LANGUAGES)
def test_tokens_are_those_that_a_provider_reported_and_what_it_left_out_is_said(language: str) -> None:
    session, viewer = FoldedSession().begin(), replace(VIEWER, language=language)
    session.task("Hello")
    for usage in (Usage(1200, 34, 560), Usage(100, 7), Usage()):
        session.call_started()
        session.call_ended("Hi", usage=usage)
    session.end()
    html, words = panel(session, viewer), viewer.words
    calls = items(html, data_what="call")
    assert [figure(html, f"trace.{name}") for name in ("prompt", "completion", "cached")] == ["1200", "34", "560"]
    assert str(words.t("trace.cache_unknown")) in calls[1].text and str(words.t("trace.unreported")) in calls[2].text
    assert [figure(html, f"trace.all.{name}") for name in ("prompt", "completion", "cached")] == ["1300", "41", "560"]
    assert str(words.t("children.part", n=2, m=3)) in items(html, data_what="task")[0].text


def test_a_compaction_says_what_it_made_smaller_and_leads_to_its_row() -> None:
    session = compacted_session()
    event = session.state.compactions[0].event
    html = panel(session)
    made = items(html, data_what="compaction")[0]
    assert figure(html, "trace.before.chars") == str(event.before.chars)
    assert figure(html, "trace.after.chars") == str(event.after.chars) and "→" in made.text
    line = next(line for _, line in lines(roots(session)) if line.what == "compaction")
    assert line.row == f"#row-{session.state.compactions[0].seq}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_went_wrong_is_said_in_words(language: str) -> None:
    viewer = replace(VIEWER, language=language)
    words = viewer.words
    session = checked_session()
    failed = panel(session, replace(viewer, task=1))
    assert [item.attributes.get("data-fault") for item in items(failed, data_what="check")] == ["failed", None]
    assert str(words.t("check_outcome.passed")) in items(failed, data_what="check")[1].text
    session.task("Again")
    session.call_started()
    session.call_ended("Done.")
    session.add(e.CheckStarted(task=6, attempt=1, command="make check", limit=60))
    session.end("stopped")
    cut = panel(session, viewer)
    assert str(words.t("trace_fault.stopped")) in items(cut, data_what="check")[0].text
    assert str(words.t("status_ended.stopped", task=6)) in items(cut, data_what="task")[0].text
    handed = panel(handed_session(), viewer)
    assert str(words.t("child_looks.failed")) in items(handed, data_what="child")[1].text
    assert str(words.t("ended_detail.server")) in handed
    assert "The sub-agent ended without an answer." in handed, "what the model reads of a call that failed"


def test_what_goes_on_is_said_to_and_has_no_duration() -> None:
    session = handed_session()
    html = panel(session)
    going = [item for item in items(html) if "data-open" in item.attributes]
    assert [item.attributes["data-what"] for item in going] == ["task", "turn", "tool", "child", "turn", "call"]
    assert all(line.seconds is None for _, line in lines(roots(session)) if line.span and line.span.end is None)


def test_what_took_no_time_is_a_mark_where_it_happened() -> None:
    found = told(threshold_session(), task=2)
    assert any(
        re.fullmatch(r"  +Request measured: [\d,]+ tokens \(estimated\), threshold 3,200", line) for line in found
    )
    stages = resumed_session()
    found = told(stages)
    assert any(line.strip() == "A stage ended" for line in found)
    assert any(line.strip() == "Checkpoint 1 saved" for line in found)
    assert [line for line in found if not line.startswith(" ")] == ["Task 2", "Task 2, resumed"]


@pytest.mark.parametrize("made", SESSIONS, ids=lambda made: made.__name__)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_has_words_and_every_link_a_place(made: object, language: str) -> None:
    session = made()  # type: ignore[operator]
    for task in range(1, len(session.state.tasks) + 1):
        viewer = replace(VIEWER, language=language, task=task, unit="reported")
        html = render_session(session, viewer, sandbox="none", live=session)
        ids = {element.attributes.get("id") for element in elements(html)}
        for _, line in lines(roots(session, viewer)):
            assert line.name and "{" not in line.name and line.what != line.name, line.what
            assert line.seconds is None or line.seconds >= 0
            x, width = float(line.x[:-1]), float(line.width[:-1])
            assert 0 <= x <= 100 and 0 <= width and x + width <= 100.01
            assert line.row, f"{line.name} leads nowhere"
            assert line.row[1:] in ids or line.row.startswith(f"/s/{session.id}"), line.row
            seq = int(re.search(r"at=(\d+)", line.moment)[1])  # type: ignore[index]
            assert 0 < seq <= session.committed


def long_session(turns: int) -> FoldedSession:
    session = FoldedSession().begin()
    first_task(session)
    session.task("Read all")
    for number in range(turns):
        read_turn(session, number, "short")
    session.call_started()
    session.call_ended("Read.")
    session.end()
    return session


def test_of_a_long_task_a_part_is_listed_and_links_lead_through_all_of_it() -> None:
    session, seen, viewer, steps = long_session(150), [], VIEWER, 0
    view = trace_view(session, viewer)
    assert view and view.part.count > 4 * LISTED and view.part.last == view.part.count, "the newest come first"
    count = view.part.count
    while True:
        view = trace_view(session, viewer)
        assert view
        listed = [line for _, line in lines(view.roots) if line.listed]
        around = [line for _, line in lines(view.roots) if not line.listed]
        assert len(listed) <= LISTED and len(around) <= 8
        assert view.roots[0].name == "Task 2", "what holds them is always there"
        html = panel(session, viewer)
        assert f"Lines {view.part.first} to {view.part.last} of {count}" in html
        seen[:0] = [(line.name, line.moment) for line in listed]
        if view.part.before is None:
            break
        viewer, steps = replace(viewer, lines=view.part.before), steps + 1
        assert steps < 20
    assert len(seen) == count == len(set(seen))
    assert len(panel(session)) < 200_000


def test_of_many_tasks_a_few_are_offered_and_arrows_lead_on() -> None:
    session = FoldedSession().begin()
    for number in range(30):
        session.task(f"Task {number}")
        session.call_started()
        session.call_ended("Yes.")
        session.end()
    newest, middle, first = (trace_view(session, replace(VIEWER, task=task)) for task in (0, 15, 1))
    assert newest and middle and first
    assert (newest.before, newest.tasks, newest.after) == (30 - 2 * NEAR - 1, tuple(range(30 - 2 * NEAR, 31)), 0)
    assert (middle.tasks[0], middle.tasks[-1]) == (15 - NEAR, 15 + NEAR) and middle.before and middle.after
    assert (first.before, first.tasks[0]) == (0, 1)
    html = panel(session, replace(VIEWER, task=15))
    chosen = next(each for each in find(html, aria_current="true") if "near" not in each.text and "15" in each.text)
    assert chosen.text == "Task 15"


def test_nothing_is_folded_while_another_tab_is_open() -> None:
    session = long_session(3)
    assert all(panel_of(session, replace(VIEWER, tab=tab)).trace is None for tab in ("now", "turns", "diff", "lost"))
    assert panel_of(session, VIEWER).trace


def test_a_clock_that_was_set_back_and_a_time_that_is_none_break_nothing() -> None:
    session = compacted_session()
    session.records = [replace(each, time=1e300 if each.seq % 3 else -5.0) for each in session.records]
    for _, line in lines(roots(session)):
        assert (line.seconds is None or line.seconds >= 0) and 0 <= float(line.x[:-1]) <= 100
    assert panel(session)


def sends(answer: object) -> Extension:
    def sending(session: str) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Extension("observability", sending=sending)  # type: ignore[arg-type]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("fault", ["", "unreachable", "refused", "missing_packages", "bad_address", "failed"])
def test_the_page_says_how_the_sending_stands_and_what_to_do(language: str, fault: str) -> None:
    session, viewer = compacted_session(), replace(VIEWER, language=language)
    session.extensions = (sends(Sending("http://127.0.0.1:6006", 12, 3, 1, fault, "HTTP 401 <b>")),)  # type: ignore[arg-type]
    html = render_session(session, viewer, sandbox="none", live=session)
    assert [figure(html, f"spans.{name}") for name in ("sent", "waiting", "lost")] == ["12", "3", "1"]
    said = [each for each in find(html, data_fault=fault) if each.tag == "div"] if fault else []
    assert len(said) == bool(fault)
    if fault:
        assert str(viewer.words.t("sending.kept")) in said[0].text and "<b>" not in said[0].inside
        assert "{" not in said[0].text
    chip = find(html, id="sending")[0]
    assert "hidden" not in chip.attributes and chip.attributes["hx-get"].startswith("/s/s1/sending")


def test_a_hook_that_fails_or_answers_nonsense_costs_the_page_nothing() -> None:
    session = compacted_session()
    for answer in (ValueError("no"), "nonsense", None):
        session.extensions = (sends(answer),)
        html = render_session(session, VIEWER, sandbox="none", live=session)
        assert "hidden" in find(html, id="sending")[0].attributes and not find(html, data_figure="spans.sent")
        assert find(html, id="trace-sending"), "out of the journal it can be sent all the same"


def test_of_a_moment_of_the_past_nothing_is_sent() -> None:
    session = compacted_session()
    session.extensions = (sends(Sending("http://127.0.0.1:6006", 12)),)
    html = render_session(session, replace(VIEWER, at=session.committed), sandbox="none", live=session)
    assert not find(html, id="trace-sending") and "hidden" in find(html, id="sending")[0].attributes


def test_the_page_looks_again_until_the_figures_rest() -> None:
    session = compacted_session()

    def looks_again(stands: Sending, seen: int) -> bool:
        session.extensions = (sends(stands),)
        return "hx-trigger" in render_sending(session, VIEWER, seen)

    there = "http://127.0.0.1:6006"
    assert looks_again(Sending(there, 5, 0), 3), "more came since it last looked"
    assert looks_again(Sending(there, 3, 2), 5), "some still wait"
    assert not looks_again(Sending(there, 5, 0), 5)
    assert not looks_again(Sending(there, 4, 0, 1), 5), "what is given up is waited for no more"
