"""A student steps through a session and looks at what each request changed, with the keyboard and without a model."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness.session import Session
from tests.browser_support import follow, until
from tests.harness_support import offline, run_sample
from tests.web_support import Web, serving
from web.moment import STOPS

Axe = Callable[[Page], list[str]]


@pytest.fixture
def finished(tmp_path: Path) -> Iterator[tuple[Web, Session]]:
    """A session of two tasks and a compaction; the model is off by now."""
    model = offline()
    model.start()
    with serving(tmp_path, model=model, offline_assets=True) as web:
        session = web.session()
        for number in (1, 2):
            web.run(run_sample(session, number))
        model.stop()
        yield web, session


def stops(session: Session) -> list[int]:
    return [each.seq for each in session.records if isinstance(each.event, STOPS)]


def shown(page: Page, name: str, within: str = "#panel") -> int:
    return int(page.locator(f'{within} [data-figure="{name}"]').first.get_attribute("data-value") or -1)


def test_the_keyboard_goes_call_by_call_and_everything_shows_that_moment(
    page: Page, finished: tuple[Web, Session], axe: Axe
) -> None:
    web, session = finished
    page.goto(f"{web.address}/s/{session.id}?tab=turns")
    page.locator('[data-step="back"]').click()
    page.wait_for_url("**at=**")
    page.keyboard.press("Home")
    seen = []
    for number, at in enumerate(stops(session), 1):
        page.wait_for_url(f"**at={at}**")
        record = session.records[at - 1]
        last = page.locator("#feed > .row").last
        assert int(last.get_attribute("data-seq") or 0) == at
        calls = [call for call in session.state.calls if call.seq <= at]
        assert page.locator("#panel g[data-call]").count() == len(calls)
        assert f"{number} of {len(stops(session))}" in page.locator("#stepper").inner_text()
        seen.append(type(record.event).__name__)
        if number < len(stops(session)):
            page.keyboard.press("ArrowRight")
    assert seen.count("ModelCallStarted") == 3 and "ContextCompacted" in seen
    assert page.evaluate("document.activeElement.closest('#stepper') !== null"), "the focus stays on the stepper"
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(f"**at={stops(session)[-2]}**")
    assert axe(page) == []
    page.keyboard.press("End")
    page.wait_for_url(lambda address: "at=" not in address)


def test_a_link_names_a_moment_and_nothing_can_be_changed_there(
    page: Page, finished: tuple[Web, Session], axe: Axe
) -> None:
    web, session = finished
    call = [call for call in session.state.calls if call.purpose == "turn"][1]
    page.goto(f"{web.address}/s/{session.id}?at={call.seq}")
    assert shown(page, "context.chars") == call.size.chars
    assert shown(page, "compactions", ".meter") == 0
    assert "goes out" in page.locator("#stepper").inner_text()
    assert page.locator("#composer, .undo, #by-hand, #budget form").count() == 0
    assert page.locator("[data-sample]").first.is_disabled()
    assert page.locator('[data-event="TaskEnded"]').count() == 0
    assert axe(page) == []
    page.get_by_role("link", name="Model view").click()
    page.wait_for_url("**view=model**")
    assert f"at={call.seq}" in page.url, "the moment stays"
    before = [entry for entry in session.state.history if entry.seq < call.seq]
    assert page.locator("#feed .entry").count() == len(before)


def test_the_diff_says_what_a_cache_could_reuse_and_where_it_breaks(
    page: Page, finished: tuple[Web, Session], axe: Axe
) -> None:
    web, session = finished
    page.goto(f"{web.address}/s/{session.id}")
    page.get_by_role("link", name="Diff", exact=True).click()
    page.wait_for_url("**tab=diff**")
    made = session.state.compactions[0]
    fixed = session.state.context.totals["system"].chars + session.state.context.totals["tools"].chars
    assert shown(page, "diff.shared.chars") == fixed
    assert shown(page, "diff.total.chars") == session.state.context.total.chars
    assert "Summary" in page.locator("[data-breaks]").inner_text()
    replaced = page.locator('[data-change="replaced"]')
    assert shown(page, "diff.replaced.before.chars") == sum(entry.size.chars for entry in made.removed)
    assert shown(page, "diff.replaced.after.chars") == made.summary.size.chars
    replaced.get_by_text("What stood there before").click()
    replaced.get_by_role("link", name="Task 1 · User").click()
    assert page.evaluate("location.hash") == f"#row-{made.removed[0].seq}"
    assert axe(page) == []
    page.goto(f"{web.address}/s/{session.id}?tab=diff&at={session.state.calls[1].seq}")
    assert page.locator("[data-breaks]").count() == 0, "the second call only adds"
    assert {"kept", "added"} == set(
        page.locator("[data-change]").evaluate_all("all => all.map(each => each.dataset.change)")
    )


@pytest.mark.parametrize("unit", ["characters", "estimated", "reported"])
@pytest.mark.parametrize("tab", ["now", "turns", "diff"])
def test_one_switch_changes_the_unit_of_every_figure(
    page: Page, finished: tuple[Web, Session], axe: Axe, unit: str, tab: str
) -> None:
    web, session = finished
    page.goto(f"{web.address}/s/{session.id}?tab={tab}")
    page.locator(f'.units [data-unit="{unit}"]').click()
    until(page, f"document.body.dataset.unit === '{unit}'")
    size = session.state.context.total
    names = page.locator("#feed .who [data-figure]").evaluate_all("all => all.map(each => each.dataset.figure)")
    expected = {"characters": "message.chars", "estimated": "message.tokens.estimated"}
    assert set(names) == ({expected[unit]} if unit in expected else set())
    meter = page.locator(".meter").inner_text()
    if unit == "reported":
        assert "unknown" in meter, "after a compaction nobody knows until the next call"
        assert "not reported" in page.locator("#feed").inner_text()
    else:
        assert f"{size.chars if unit == 'characters' else size.tokens:,}" in meter
    if tab == "turns":
        heights = page.locator("#panel g[data-call]").count()
        assert heights == len(session.state.calls)
        usage = session.state.calls[0].usage
        assert usage and usage.prompt
        value = {"characters": session.state.calls[0].size.chars, "estimated": session.state.calls[0].size.tokens}
        row = page.locator('#panel tr[data-call="1"]').inner_text()
        assert f"{value.get(unit, usage.prompt):,}" in row
    assert axe(page) == []


def test_moments_and_the_diff_are_read_without_javascript(chromium: Browser, finished: tuple[Web, Session]) -> None:
    web, session = finished
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(f"{web.address}/s/{session.id}?tab=diff")
    follow(plain, plain.locator('[data-step="back"]'))
    follow(plain, plain.locator('[data-step="back"]'))
    plain.wait_for_url(f"**at={stops(session)[-3]}")
    plain.locator("[data-change]").nth(1).wait_for()
    follow(plain, plain.locator('[data-step="now"]'))
    assert "at=" not in plain.url
    context.close()


@pytest.mark.parametrize("tab", ["now", "turns", "diff", "lost"])
def test_a_small_screen_and_large_text_hold_every_panel(
    page: Page, finished: tuple[Web, Session], axe: Axe, tab: str
) -> None:
    web, session = finished
    page.goto(f"{web.address}/s/{session.id}?tab={tab}")
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert axe(page) == [], "320 px"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert axe(page) == [], "200 % text"
