"""Lab 10 as a person meets it: the server ends in the middle of thirty steps and the task goes on; a stage is ended."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import events as e
from harness.session import Session
from tests.browser_support import until
from tests.checkpoints_support import assert_nothing_done_twice, finish
from tests.harness_support import Recorder, events, offline
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
CONNECTED = "!!document.querySelector('#stream')?._htmx?.sse"
ENDED = "document.body.dataset.state === 'idle' && !!document.querySelector('[data-event=TaskEnded]')"
SAVED = '[data-event="CheckpointSaved"]'
# The newest rows; a page that is loaded anew shows no more than some.
ROWS = "[...document.querySelectorAll('#feed > li')].slice(-120).map(row => row.outerHTML)"
ON = {"en": "Go on from here, checkpoint {n}", "zh": "从这里接着做：检查点 {n}"}


@pytest.fixture
def model() -> Iterator[Recorder]:
    # Slow enough for a person, and a browser on a busy machine, to act while the task runs.
    with offline(delay=0.012) as running:
        yield running


def idle(page: Page) -> None:
    until(page, ENDED, 60)


def reopened(web: Web, session: Session) -> Session:
    again = web.run(web.library.open(session.id))
    web.run(finish(again), 60)
    return again


def test_the_server_ends_in_the_middle_and_the_task_goes_on(
    page: Page, model: Recorder, tmp_path: Path, axe: Axe
) -> None:
    with serving(tmp_path, lab="10", model=model, offline_assets=True) as web:
        session, port = web.session(), web.port
        page.goto(f"{web.address}/s/{session.id}")
        until(page, CONNECTED)
        page.locator('[data-sample="1"]').click()
        page.locator(SAVED).nth(4).wait_for()
        assert page.locator(f"{SAVED} .resume:visible").count() == 0, "not while something runs"
        assert page.get_by_role("button", name="End this stage").is_visible()
    with serving(tmp_path, port=port, lab="10", model=model, offline_assets=True) as web:
        page.goto(f"{web.address}/s/{session.id}")
        row = page.locator('[data-event="TaskResumed"]')
        row.wait_for()
        assert "The server had stopped. Task 1 goes on by itself from checkpoint" in row.inner_text()
        idle(page)
        again = reopened(web, session)
        assert again.state.tasks[0].ended == "answered" and len(events(again, e.TaskResumed)) == 1
        assert_nothing_done_twice(again.records)
        assert page.locator('[data-event="ContextCompacted"]').count() >= 4
        assert axe(page) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_person_goes_on_from_an_older_checkpoint(
    chromium: Browser, model: Recorder, tmp_path: Path, axe: Axe, language: str
) -> None:
    with serving(tmp_path, lab="10", model=model, offline_assets=True) as web:
        session = web.session()
        page = chromium.new_page(locale=language, viewport={"width": 320, "height": 800})
        page.goto(f"{web.address}/s/{session.id}")
        until(page, CONNECTED)
        page.locator('[data-sample="1"]').click()
        idle(page)
        page.get_by_role("button", name=ON[language].format(n=26), exact=True).click()
        page.locator('[data-event="TaskResumed"]').wait_for()
        idle(page)
        again = reopened(web, session)
        assert events(again, e.TaskResumed) == [e.TaskResumed(number=26, task=1, by="person")]
        assert [each.turn for each in events(again, e.CheckpointSaved)][30:] == [27, 28, 29, 30]
        live = page.evaluate(ROWS)
        page.reload()
        until(page, CONNECTED)
        assert page.evaluate(ROWS) == live, "what came live is what a reload shows"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "fits 320 px"
        assert axe(page) == []
        page.locator("#ask").fill("Which way of matching was rejected?")
        page.locator("#composer-actions .strong").click()
        page.locator('[data-event="TaskStarted"]').nth(1).wait_for()
        until(page, "document.body.dataset.state === 'idle'", 30)
        assert page.locator(f"{SAVED} .resume:visible").count() == 0, "a newer task has begun"
        page.close()


def test_a_person_ends_a_stage_and_a_checkpoint_that_is_none_is_said(web_page: tuple[Web, Page]) -> None:
    web, page = web_page
    session = web.session()
    page.goto(f"{web.address}/s/{session.id}")
    until(page, CONNECTED)
    assert page.get_by_role("button", name="End this stage").count() == 0, "there is nothing to end yet"
    page.locator('[data-sample="1"]').click()
    page.locator(SAVED).nth(2).wait_for()
    page.get_by_role("button", name="End this stage").click()
    row = page.locator('[data-event="StageEnded"]')
    row.wait_for()
    assert "You ended a stage. Before the next call" in row.inner_text()
    idle(page)
    assert page.get_by_role("button", name="End this stage").count() == 0, "no stage is going on"
    reply = web.post(f"/s/{session.id}/stage", {"name": ""})
    assert reply.status == 409 and "no task runs" in reply.text and len(events(session, e.StageEnded)) == 1
    reply = web.post(f"/s/{session.id}/resume", {"number": "77"})
    assert reply.status == 409 and "There is no checkpoint 77 in this session." in reply.text


def test_between_tasks_all_of_them_give_way_only_after_a_preview(web_page: tuple[Web, Page], axe: Axe) -> None:
    web, page = web_page
    session = web.session()
    page.goto(f"{web.address}/s/{session.id}")
    until(page, CONNECTED)
    page.locator('[data-sample="3"]').click()
    idle(page)
    page.locator("#by-hand summary").first.click()
    box = page.locator("#by-hand")
    assert box.get_by_label("what the lab's own rule says").is_checked()
    box.get_by_label("nothing", exact=True).check()
    until(page, "document.querySelector('#by-hand-preview [data-figure=\"hand.kept\"]').innerText === '0'")
    assert axe(page) == [] and not events(session, e.CompactionAsked)
    seqs = tuple(entry.seq for entry in session.state.context.entries)
    box.get_by_role("button", name="Compact now").click()
    page.locator('[data-event="CompactionAsked"]').wait_for()
    assert "to keep no task word for word" in page.locator('[data-event="CompactionAsked"]').inner_text()
    until(page, "document.body.dataset.state === 'idle'", 30)
    made = session.state.compactions[-1]
    assert made.event.trigger == "by hand" and made.event.removed == seqs
    assert [entry.category for entry in session.state.context.entries] == ["summary"]


@pytest.fixture
def web_page(page: Page, model: Recorder, tmp_path: Path) -> Iterator[tuple[Web, Page]]:
    with serving(tmp_path, lab="10", model=model, offline_assets=True) as web:
        yield web, page
