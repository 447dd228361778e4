"""The cut point in a real browser: what a compaction dims while the page is open is what a reload dims."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page

from harness.events import (
    CompactionUndone,
    ContextCompacted,
    Event,
    ModelCallStarted,
    ResultsDecided,
    SummaryCallStarted,
    TaskResumed,
)
from harness.session import Session
from tests.browser_support import until
from tests.test_web_long import long_session
from tests.test_web_sse import CONNECTED
from tests.web_session import (
    FoldedSession,
    decided_session,
    first_task,
    resumed_session,
    second_task,
    threshold_session,
)
from tests.web_support import Web, serving
from web.rows import is_invisible, row_id

GONE = (
    "[...document.querySelectorAll('#feed > li')]"
    ".filter(row => [...row.querySelectorAll('.gone-mark')].some(mark => mark.checkVisibility())).map(row => row.id)"
)
ALL = "[...document.querySelectorAll('#feed > li')].map(row => row.id)"
SPOKEN = "[...document.querySelectorAll('#feed > li')].filter(r => r.innerText.includes('no longer in context')).length"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, offline_assets=True) as running:
        yield running


def record(web: Web, session: Session, events: list[Event]) -> int:
    async def emit() -> int:
        for event in events:
            # Told and not sent, and under other instructions: there is no request whose digest this could be.
            told = isinstance(event, ModelCallStarted | SummaryCallStarted)
            session.emit(replace(event, digest="") if told else event)
        return len(session.records)

    return web.run(emit())


def two_compactions() -> tuple[FoldedSession, list[int]]:
    session, ends = FoldedSession().begin(), []
    for _ in range(2):
        first_task(session)
        second_task(session)
        ends.append(len(session.records))
    return session, ends


@pytest.mark.parametrize("view", ["full", "model"])
def test_what_is_dimmed_live_is_what_a_reload_dims(web: Web, page: Page, view: str) -> None:
    session, (source, ends) = web.session(), two_compactions()
    page.goto(f"{web.address}/s/{session.id}?view={view}")
    until(page, CONNECTED)
    start = len(session.records)
    for end in ends:
        last = record(web, session, [each.event for each in source.records[start:end]])
        start = end
        row = last if view == "full" else session.state.compactions[-1].seq
        until(page, f"!!document.querySelector('#row-{row}')")
        until(page, "document.body.dataset.state === 'idle'")
        live, gone = page.evaluate(ALL), page.evaluate(GONE)
        newest = session.state.compactions[-1]
        assert live.count("cut-line") == 1 and live[live.index("cut-line") + 1] == f"row-{newest.event.cut}"
        if view == "model":
            assert not gone
        else:
            removed = [x for made in session.state.compactions for x in made.removed]
            assert len(gone) == len(removed) and f"row-{newest.seq}" not in gone
            assert page.evaluate(SPOKEN) == sum(x.category != "summary" for x in removed)
        page.reload()
        assert page.evaluate(ALL) == live and page.evaluate(GONE) == gone
        until(page, CONNECTED)


BRIGHT = (
    "[...document.querySelectorAll('#feed > li.entry')]"
    ".filter(row => ![...row.querySelectorAll('.gone-mark')].some(mark => mark.checkVisibility()))"
    ".map(row => Number(row.dataset.seq))"
)
INSIDE = {"threshold": threshold_session, "decided": decided_session, "resumed": resumed_session}


@pytest.mark.parametrize("make", INSIDE.values(), ids=INSIDE)
def test_what_stays_or_is_left_inside_a_task_is_bright_or_dim_live_and_after_a_reload(
    web: Web, page: Page, make: Callable[[], FoldedSession]
) -> None:
    session, source = web.session(), make()
    page.goto(f"{web.address}/s/{session.id}")
    until(page, CONNECTED)
    start = len(session.records)
    changes = (ContextCompacted, CompactionUndone, ResultsDecided, TaskResumed)
    ends = [each.seq for each in source.records if isinstance(each.event, changes)] + [len(source.records)]
    for end in ends:
        last = record(web, session, [each.event for each in source.records[start:end]])
        start = end
        name = row_id(session.records[last - 1])
        # A decision to leave all as it is has no row.
        if not is_invisible(session.records[last - 1].event):
            until(page, f"!!document.getElementById('{name}')")
        told = [x.seq for x in session.state.context.entries if x.category != "summary"]
        until(page, f"JSON.stringify({BRIGHT}) === '{json.dumps(sorted(told), separators=(',', ':'))}'")
    live, gone = page.evaluate(ALL), page.evaluate(GONE)
    page.reload()
    assert page.evaluate(ALL) == live and page.evaluate(GONE) == gone


def test_earlier_rows_come_in_above_and_the_page_stays_live(web: Web, page: Page) -> None:
    session, source = web.session(), long_session(150)
    second_task(source)
    record(web, session, [each.event for each in source.records[3:]])
    page.goto(f"{web.address}/s/{session.id}")
    until(page, CONNECTED)
    assert 200 <= len(page.evaluate(ALL)) < 210
    count = len(page.evaluate(ALL))
    page.locator("#earlier-link").focus()
    page.keyboard.press("Enter")
    until(page, f"({ALL}).length > {count} + 50 && !document.querySelector('#earlier')")
    rows = page.evaluate(ALL)
    assert len(rows) == len(set(rows)) and rows[0] == "row-2" and f"/s/{session.id}" in page.url
    assert len(page.evaluate(GONE)) == len(session.state.compactions[-1].removed)
    last = web.change(session, 1)
    until(page, f"!!document.querySelector('#row-{last}')")


def test_without_scripts_the_links_lead_back_and_forth(web: Web, page: Page) -> None:
    session, source = web.session(), long_session(150)
    second_task(source)
    record(web, session, [each.event for each in source.records[3:]])
    browser = page.context.browser
    assert browser
    with browser.new_context(java_script_enabled=False, locale="zh-CN") as context:
        plain = context.new_page()
        plain.goto(f"{web.address}/s/{session.id}")
        newest = [row.get_attribute("id") for row in plain.locator("#feed > li").all()]
        plain.get_by_role("link", name="显示更早的内容").click()
        plain.wait_for_url("**before=*")
        older = [row.get_attribute("id") for row in plain.locator("#feed > li").all()]
        assert older[0] == "row-2" and not set(newest) & set(older)
        assert plain.locator("#feed .entry .gone-mark >> nth=0").is_visible()
        plain.get_by_role("link", name="回到最新内容").click()
        # A click returns when the new page begins, not when it is all there.
        plain.locator("#cut-line").wait_for(state="attached")
        assert plain.locator("#cut-line").count() == 1


@pytest.mark.parametrize("size", [(390, 700), (900, 400)])
def test_the_way_down_is_in_sight_on_a_small_screen(web: Web, page: Page, size: tuple[int, int]) -> None:
    session = web.session()
    page.set_viewport_size({"width": size[0], "height": size[1]})
    web.change(session, 60)
    page.goto(f"{web.address}/s/{session.id}")
    until(page, CONNECTED)
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    page.wait_for_timeout(200)
    last = web.change(session, 3)
    until(page, f"!!document.querySelector('#row-{last}') && !document.querySelector('#newer').hidden")
    box = page.locator("#newer").bounding_box()
    assert box and 0 <= box["x"] and 0 <= box["y"] and box["y"] + box["height"] <= size[1]
    page.click("#newer")
    until(page, "document.querySelector('#newer').hidden")
