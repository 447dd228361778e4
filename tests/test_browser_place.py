"""Where a reader is: at the feed's end past a compaction, at what waits for an answer, and with the keyboard."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import by_hand
from harness.session import Session
from tests.browser_support import until
from tests.harness_support import offline
from tests.test_browser_lab08 import ALIVE, play, visit
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
WAITS = "document.body.dataset.state === 'waiting' && !!document.querySelector('form[data-approval]')"
COLUMN = "document.querySelector('#conversation')"
# Whether the last "Allow" lies where it can be seen: inside the column and above the dock.
SEEN = (
    "(allow => allow.top >= document.querySelector('#conversation').getBoundingClientRect().top &&"
    " allow.bottom <= document.querySelector('.dock').getBoundingClientRect().top)"
    "([...document.querySelectorAll('form[data-approval] [value=allow]')].at(-1).getBoundingClientRect())"
)
FOCUS = "document.activeElement.id"


@pytest.fixture
def web(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Web]:
    with offline() as model, serving(tmp_path, lab=request.param, model=model, offline_assets=True) as web:
        yield web


def waiting(page: Page, web: Web, **settings: int) -> Session:
    """Run the sample of lab 08 until it has compacted and asks for something; what it asks before is allowed."""
    page.set_viewport_size({"width": 1360, "height": 900})
    session = visit(page, web, **settings)
    page.locator('[data-sample="1"]').click()
    until(page, WAITS, 60)
    while not session.state.compactions:
        allow(page)
        until(page, WAITS, 60)
    return session


def allow(page: Page) -> None:
    asked = page.locator("form[data-approval] [name=call_id]").get_attribute("value")
    page.locator('form[data-approval] [value="allow"]').click()
    until(page, f"!document.querySelector('form[data-approval] [value=\"{asked}\"]')")


def finish(page: Page) -> None:
    """Allow what is still asked for, until the task has ended."""
    until(page, f"({WAITS}) || document.body.dataset.state === 'idle'", 60)
    while page.evaluate(WAITS):
        allow(page)
        until(page, f"({WAITS}) || document.body.dataset.state === 'idle'", 60)


@pytest.mark.parametrize("web", ["08"], indirect=True)
def test_the_end_is_followed_past_a_compaction_and_who_reads_above_is_left_there(page: Page, web: Web) -> None:
    session = waiting(page, web)
    until(page, SEEN)
    assert page.locator("#newer").is_hidden()
    finish(page)
    page.evaluate(f"{COLUMN}.scrollTo({{top: 40, behavior: 'instant'}})")
    page.wait_for_timeout(100)
    made = page.locator('[data-event="ContextCompacted"]').count()

    async def compact() -> None:
        plan = by_hand.plan_by_hand(session.strategy, session.state, 0)[0]
        by_hand.compact_now(session, focus="", keep=0, cut=plan.cut, language="en")

    web.run(compact())
    until(page, f"document.querySelectorAll('[data-event=ContextCompacted]').length > {made}")
    until(page, "!document.querySelector('#newer').hidden")
    assert page.evaluate(f"{COLUMN}.scrollTop") == 40


@pytest.mark.parametrize("web", ["08"], indirect=True)
def test_the_status_line_leads_to_what_waits_and_the_keyboard_goes_on_from_there(
    page: Page, web: Web, axe: Axe
) -> None:
    waiting(page, web)
    row = page.locator("form[data-approval]").evaluate("form => form.closest('li').id")
    page.evaluate(f"{COLUMN}.scrollTo({{top: 0, behavior: 'instant'}})")
    assert not page.evaluate(SEEN) and axe(page) == []
    page.locator("#status a").focus()
    page.keyboard.press("Enter")
    until(page, SEEN)
    assert page.evaluate(FOCUS) == row
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "allow", "the next stop is the answer"
    page.keyboard.press("Enter")
    until(page, f"!document.querySelector('#{row} form[data-approval]')")
    until(page, f"({WAITS}) || document.body.dataset.state === 'idle'", 60)
    assert page.evaluate(FOCUS) == row, "the answered row keeps the keyboard's place, whatever comes next"
    finish(page)
    page.locator("#ask").fill("What is left to do?")
    page.locator("#composer-actions .strong").focus()
    page.keyboard.press("Enter")
    until(page, "document.body.dataset.state === 'running' || !document.querySelector('#ask').value")
    until(page, "document.body.dataset.state === 'idle'", 60)
    assert page.evaluate(FOCUS) == "composer-actions", "beside what the button became"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("web", ["10"], indirect=True)
def test_the_box_has_room_and_the_newest_calls_are_seen_first(
    page: Page, chromium: Browser, web: Web, axe: Axe, language: str
) -> None:
    visit(page, web, language)
    play(page, 1)
    plain = chromium.new_context(java_script_enabled=False, locale=language).new_page()
    for width in (320, 768, 1024, 1360, 1920):
        plain.set_viewport_size({"width": width, "height": 900})
        plain.goto(f"{page.url}?tab=turns")
        box, dock = plain.locator("#ask").bounding_box(), plain.locator(".dock").bounding_box()
        assert box and dock and box["width"] >= min(200, dock["width"] * 0.9), f"{width}: {box}"
        bar, plot = plain.locator("#panel g[data-call]").last.bounding_box(), plain.locator(".plot").bounding_box()
        assert bar and plot and bar["x"] + bar["width"] <= plot["x"] + plot["width"] + 20, f"{width}: the newest bar"
        fits = "each => each.closest('.wide').scrollWidth <= each.closest('.wide').clientWidth"
        assert width < 1360 or plain.locator(".calls").evaluate(fits), f"{width}: the whole table is seen"
        numbers = plain.locator(".calls tbody tr[data-call]").evaluate_all("all => all.map(each => +each.dataset.call)")
        assert numbers == sorted(numbers, reverse=True)
        for each in (".tabs", ".units"):
            tops = plain.locator(f"{each} a").evaluate_all("all => all.map(each => each.offsetTop)")
            assert len(set(tops)) == 1, f"{each} is one row at {width}"
    plain.context.close()
    page.goto(f"{page.url}?tab=turns")
    until(page, ALIVE)
    for width in (320, 1360):
        page.set_viewport_size({"width": width, "height": 900})
        assert axe(page) == [] and page.evaluate("document.documentElement.scrollWidth") <= width
