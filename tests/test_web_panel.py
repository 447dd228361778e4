"""The panel: every figure equals the state, and what nobody knows is called unknown."""

from dataclasses import replace

import pytest

from harness import events as e
from harness.accounting import Anchor, anchor
from harness.by_hand import SETTING_MAX
from harness.sizes import CATEGORIES, Usage
from tests.web_html import elements, figure, find
from tests.web_session import FoldedSession, compacted_session, first_task, second_task
from web.figures import boundary
from web.pages import Pages
from web.panel import render_dry_run
from web.screens import Asked, render_session
from web.updates import render_panel_updates
from web.viewer import Viewer

PAGES = Pages.load()
VIEWER = Viewer(PAGES)


def panel_html(session: FoldedSession, viewer: Viewer) -> str:
    """The panel as it is sent to an open page."""
    return next(update.html for update in render_panel_updates(session, viewer) if update.target_id == "panel")


def one_task() -> FoldedSession:
    session = FoldedSession().begin()
    first_task(session)
    return session


def test_the_table_shows_the_next_request_by_category() -> None:
    session = one_task()
    html = panel_html(session, VIEWER)
    totals = session.state.context.totals
    for category in CATEGORIES:
        assert figure(html, f"part.{category}.chars") == str(totals[category].chars if category in totals else 0)
        assert figure(html, f"part.{category}.tokens") == str(totals[category].tokens if category in totals else 0)
    assert figure(html, "context.chars") == str(session.state.context.total.chars)
    meter = render_session(session, VIEWER, sandbox="none")
    assert figure(meter, "context.chars") == str(session.state.context.total.chars)
    assert figure(meter, "context.tokens.estimated") == str(session.state.context.total.tokens)
    assert figure(meter, "compactions") == "0" and figure(meter, "budget") == "1500"


def test_the_anchor_is_the_last_usage_with_what_came_since_and_void_after_a_compaction() -> None:
    session = FoldedSession().begin()
    assert anchor(session.state) == "first_call"
    session.task("Hello")
    session.call_started()
    assert anchor(session.state) == "first_call", "a call without a reply has told nothing"
    session.call_ended("Hi", usage=Usage(300, 5, 100))
    held = anchor(session.state)
    assert held == Anchor(1, Usage(300, 5, 100), session.state.context.entries[-1].size)
    html = panel_html(session, VIEWER)
    assert figure(html, "context.tokens.reported") == "300" and figure(html, "context.tokens.cached") == "100"
    session.call_started()
    session.call_ended("Hi", usage=Usage())
    assert anchor(session.state) == "not_reported"
    assert figure(panel_html(session, VIEWER), "context.tokens.reported") == ""
    compacted = compacted_session()
    assert anchor(compacted.state) == "next_call"
    assert "Unknown until the next call" in str(panel_html(compacted, VIEWER))


def test_the_next_border_measures_what_will_have_finished_by_then() -> None:
    session = FoldedSession().begin()
    assert boundary(session).measured == 0 and not boundary(session).plan.past
    first_task(session)
    between = boundary(session)
    entries = session.state.context.entries
    assert between.measured == sum(entry.size.chars for entry in entries) and between.before == 2
    assert between.messages == len(entries) and between.plan.past
    session.task("Which are guesses?")
    running = boundary(session)
    assert running.measured == between.measured and running.before == 2
    session.call_started()
    session.call_ended("These.")
    measured = session.measure("past").event.measured
    assert measured == running.measured == boundary(session).measured
    session.compact()
    session.end()
    after = boundary(session)
    assert after.measured == sum(x.size.chars for x in session.state.context.entries if x.category != "summary")


def test_a_lab_without_a_budget_has_no_boundary_and_no_slider() -> None:
    session = FoldedSession().begin(budget=None)
    assert boundary(session) is None
    html = render_session(session, VIEWER, sandbox="none")
    assert not find(html, id="budget-range") and not find(html, data_figure="budget")


@pytest.mark.parametrize("budget", [0, 500, 1500, 2300, 100_000])
def test_the_dry_run_says_what_would_happen_and_changes_nothing(budget: int) -> None:
    session = one_task()
    before = list(session.records)
    html = render_dry_run(session, VIEWER, budget)
    measured = sum(entry.size.chars for entry in session.state.context.entries)
    if measured > budget:
        assert figure(html, "dry.messages") == str(len(session.state.context.entries))
        assert figure(html, "dry.chars") == str(measured) == figure(html, "dry.frees")
    else:
        assert figure(html, "dry.measured") == str(measured) and "nothing would be cut" in str(html)
    [field] = find(html, id="budget-number")
    assert (field.attributes["value"], field.attributes["max"]) == (str(budget), str(SETTING_MAX))
    assert elements(html)[0].attributes["id"] == "dry-run" and session.records == before


def test_a_dry_run_can_be_asked_for_without_scripts() -> None:
    html = render_session(one_task(), VIEWER, Asked(dry=700), sandbox="none")
    [slider] = find(html, id="budget-range")
    assert slider.attributes["value"] == "700" and slider.attributes["name"] == "budget"
    assert int(slider.attributes["max"]) >= 2 * 1500 and "At 700 it would cut" in html


def test_over_turns_draws_every_call_and_repeats_its_numbers_in_a_table() -> None:
    session = compacted_session()
    html = panel_html(session, replace(VIEWER, tab="turns"))
    bars = [
        (x.attributes["data-call"], x.attributes["data-purpose"]) for x in find(html) if "data-purpose" in x.attributes
    ]
    assert bars == [("1", "turn"), ("2", "turn"), ("3", "turn"), ("4", "summary")]
    assert len(find(html, data_mark="compaction")) == 1 and figure(html, "calls") == "4"
    lines = [x.text for x in find(html) if x.tag == "tr" and "data-call" in x.attributes]
    for line, call in zip(lines, reversed(session.state.calls), strict=True):
        assert line.strip().startswith(str(call.call)) and f"{call.size.chars:,}" in line
    assert figure(html, "largest.chars") == str(max(call.size.chars for call in session.state.calls))
    measured = [r.event.measured for r in session.records if isinstance(r.event, e.BoundaryMeasured)]
    assert [x.attributes["data-border"] for x in find(html) if "data-border" in x.attributes] == ["1", "2"]
    assert measured[0] == 0 and f"{measured[1]:,}" in str(html)


def test_the_panel_updates_replace_elements_that_the_page_has() -> None:
    session = one_task()
    page = render_session(session, VIEWER, sandbox="none")
    for update in render_panel_updates(session, VIEWER):
        assert elements(update.html)[0].attributes["id"] == update.target_id and find(page, id=update.target_id)
        assert update.html in page


def test_samples_are_ticked_when_their_task_has_ended() -> None:
    session = one_task()
    buttons = [x for x in find(render_session(session, VIEWER, sandbox="none")) if "data-sample" in x.attributes]
    assert [x.attributes["data-sample"] for x in buttons] == ["1", "2"]
    assert "done" in buttons[0].attributes["class"] and "next" in buttons[1].attributes["class"]
    second_task(session)
    buttons = [x for x in find(render_session(session, VIEWER, sandbox="none")) if "data-sample" in x.attributes]
    assert all("done" in x.attributes["class"] for x in buttons)


def test_the_address_keeps_what_is_not_the_default_and_ignores_what_it_does_not_know() -> None:
    viewer = VIEWER.asked({"view": "model", "tab": "nonsense", "scale": "equal"})
    assert (viewer.view, viewer.tab, viewer.scale) == ("model", "now", "equal")
    assert viewer.query(tab="turns") == "?view=model&tab=turns&scale=equal" and VIEWER.query() == "?"
