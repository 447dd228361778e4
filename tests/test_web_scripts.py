"""What the page's own scripts do: the box for a task, approvals by key, the title, the end of the feed."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from harness import by_hand
from tests.browser_support import Tabs, until
from tests.harness_support import offline
from tests.web_support import Web, serving

CONNECTED = "!!document.querySelector('#stream')?._htmx?.sse"


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Web]:
    """Lab 01, whose sample "fix" asks for approvals, on a model that takes its time."""
    model = offline(delay=0.02)
    model.start()
    with serving(tmp_path, lab="01", model=model, offline_assets=True) as web:
        yield web
    model.stop()


@pytest.fixture
def open_page(slow: Web, page: Page) -> Page:
    page.goto(f"{slow.address}/s/{slow.session().id}")
    until(page, CONNECTED)
    return page


def state(page: Page, wanted: str) -> None:
    until(page, f"document.body.dataset.state === '{wanted}'", 40)


def test_the_box_sends_by_key_and_is_emptied_only_when_the_text_was_taken(slow: Web, open_page: Page) -> None:
    page, box = open_page, open_page.locator("#ask")
    box.fill("First line")
    box.press("Shift+Enter")
    assert box.input_value() == "First line\n", "Shift+Enter is a new line"
    box.press("Enter")
    until(page, "document.querySelector('#ask').value === ''")
    state(page, "running")
    box.fill("Too early")
    box.press("Control+Enter")
    until(page, "document.querySelector('#notice').textContent.length > 20")
    assert box.input_value() == "Too early", "nothing that was typed is lost"
    page.click("#composer-actions button")
    state(page, "idle")
    until(page, "document.querySelector('#notice').textContent === ''")
    box.press("Control+Enter")
    until(page, "document.querySelector('#ask').value === ''")
    until(page, "document.querySelectorAll('[data-event=TaskStarted]').length === 2")


def test_an_approval_is_answered_by_key_only_inside_its_row(slow: Web, open_page: Page) -> None:
    page, title = open_page, open_page.title()
    page.click("[data-sample] >> nth=1")
    state(page, "waiting")
    assert page.title() != title and page.title().endswith(title)
    page.locator("body").press("d")
    page.locator("#ask").press("d")
    page.wait_for_timeout(300)
    assert page.locator("[data-approval]").count() == 1, "keys elsewhere answer nothing"
    left = page.inner_text("[data-countdown]")
    minutes, seconds = map(int, left.split(":"))
    assert 200 < minutes * 60 + seconds <= 300
    page.locator("[data-approval] button >> nth=0").focus()
    page.keyboard.press("Control+d")
    page.keyboard.press("d")
    until(
        page, "document.querySelectorAll('[data-approval]').length === 0 || document.body.dataset.state !== 'waiting'"
    )
    session = slow.run(slow.library.open(page.url.rpartition("/")[2]))
    answers = [each.event for each in session.records if type(each.event).__name__ == "ApprovalAnswered"]
    assert [(answer.allowed, answer.by) for answer in answers] == [(False, "person")]
    slow.post(f"/s/{session.id}/stop", {})
    state(page, "idle")
    assert page.title() == title


def test_a_hidden_tab_says_in_its_title_that_it_waits(slow: Web, tabs: Tabs) -> None:
    session = slow.session()
    tab, page = tabs.open(f"{slow.address}/s/{session.id}")
    end = time.monotonic() + 20
    while not tabs.value(page, CONNECTED):
        assert time.monotonic() < end
    title = tabs.value(page, "document.title")
    tabs.open("about:blank")
    slow.post(f"/s/{session.id}/tasks", {"sample": "fix"})
    end = time.monotonic() + 40
    while tabs.value(page, "document.title") == title:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert session.status == "waiting" and tabs.value(page, "document.title").endswith(title)


def test_the_feed_stays_where_the_reader_is(slow: Web, open_page: Page) -> None:
    page = open_page
    page.set_viewport_size({"width": 1200, "height": 700})
    session = slow.run(slow.library.open(page.url.rpartition("/")[2]))
    many = "[...document.querySelectorAll('#feed > li')].length"
    last = changed(slow, session, 30)
    until(page, f"!!document.querySelector('#row-{last}')")
    scroller = (
        "[...document.querySelectorAll('main, main *')].find(each => each.contains(document.querySelector('#feed')) &&"
        " /auto|scroll/.test(getComputedStyle(each).overflowY) && each.scrollHeight > each.clientHeight)"
        " || document.scrollingElement"
    )
    scroller = f"({scroller})"
    page.evaluate(f"{scroller}.scrollTo({{top: 0, behavior: 'instant'}})")
    page.wait_for_timeout(100)
    rows = page.evaluate(many)
    last = changed(slow, session, 5)
    until(page, f"{many} > {rows} && !!document.querySelector('#row-{last}')")
    assert page.evaluate(f"{scroller}.scrollTop") == 0, "who reads above is left there"
    assert page.locator("#newer").is_visible()
    page.click("#newer")
    until(page, f"{scroller}.scrollTop > 0 && document.querySelector('#newer').hidden")
    last = changed(slow, session, 5)
    until(page, f"!!document.querySelector('#row-{last}')")
    row = f"document.querySelector('#row-{last}').getBoundingClientRect().bottom"
    until(page, f"{row} <= innerHeight && {row} > 0")
    dock = "document.querySelector('#newer').parentElement.getBoundingClientRect().top"
    assert page.evaluate(f"{row} <= {dock}"), "the dock does not lie over the newest row"
    assert not page.locator("#newer").is_visible()


def changed(web: Web, session, times: int) -> int:
    async def change() -> int:
        for _ in range(times):
            by_hand.change_setting(session, "step_limit", session.state.settings["step_limit"] + 1)
        return len(session.records)

    return web.run(change())
