"""A journal that cannot be written any more: the page says so, at once and after a reload, and does not come back."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from harness import by_hand
from harness.journal import JournalError
from tests.browser_support import until
from tests.harness_support import offline
from tests.test_web_sse import CONNECTED, wait_for
from tests.web_html import find
from tests.web_session import waiting_session
from tests.web_support import Web, serving
from web.pages import Pages
from web.screens import render_session
from web.viewer import Viewer


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, offline_assets=True) as running:
        yield running


def on_journal(folder: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "journal.db", timeout=10)) as database, database:
        database.execute(statement)


def break_journal(folder: Path) -> None:
    """Let the journal be read and not written, as a full disk does."""
    on_journal(folder, "CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'full'); END")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_says_why_nothing_goes_on(language: str) -> None:
    viewer, session = Viewer(Pages.load(), language=language), waiting_session()
    assert not find(render_session(session, viewer, sandbox="none"), id="failure")[0].text
    session.failure = JournalError("journal_write", reason="OperationalError")
    html = render_session(session, viewer, sandbox="none")
    [alert], [status] = find(html, id="failure"), find(html, id="status")
    assert alert.text == viewer.words.t("problem.journal_write", reason="OperationalError").unescape()
    assert status.text == viewer.words.t("status.failed") and status.attributes["data-state"] == "idle"


def test_the_stream_ends_with_the_reason_and_says_not_to_come_back(web: Web, tmp_path: Path) -> None:
    session = web.session()
    stream = web.stream(f"/s/{session.id}/events?after=3")
    last = web.change(session, 1)
    stream.until(last)
    break_journal(tmp_path)
    web.run(change(session))
    rest = stream.answer.read().decode()
    assert "The journal cannot be written (" in rest
    assert rest.rstrip().endswith("event: over") and 'hx-target="#status"' in rest


def test_an_open_page_shows_it_and_does_not_connect_again(web: Web, page: Page, tmp_path: Path) -> None:
    session = web.session()
    asked: list[str] = []
    page.on("request", lambda request: "/events" in request.url and asked.append(request.url))
    page.goto(f"{web.address}/s/{session.id}")
    until(page, CONNECTED)
    assert not page.locator("#failure").is_visible()
    break_journal(tmp_path)
    web.run(change(session))
    until(page, "document.querySelector('#failure').innerText.startsWith('The journal cannot be written')")
    wait_for(lambda: web.pages() == 0)
    page.wait_for_timeout(2000)
    assert len(asked) == 1 and not page.locator("#offline").is_visible()
    on_journal(tmp_path, "DROP TRIGGER full")
    page.reload()
    until(page, CONNECTED)
    assert not page.locator("#failure").is_visible(), "a reload tries again"
    last = web.change(web.run(web.library.open(session.id)), 1)
    until(page, f"!!document.querySelector('#row-{last}')")


def test_a_task_that_the_failure_cuts_short_does_not_look_as_if_it_went_on(page: Page, tmp_path: Path) -> None:
    model = offline(delay=0.3)
    model.start()
    with serving(tmp_path, model=model, offline_assets=True) as web:
        session = web.session()
        page.goto(f"{web.address}/s/{session.id}")
        until(page, CONNECTED)
        web.post(f"/s/{session.id}/tasks", {"text": "Say what you can do."})
        until(page, "document.querySelectorAll('[data-event=ModelCallStarted] .busy').length === 1")
        break_journal(tmp_path)
        web.run(change(session))
        until(page, "document.querySelector('#failure').innerText.startsWith('The journal cannot be written')")
        assert page.evaluate("document.body.dataset.state") == "idle" and not page.locator(".busy").count()
        assert page.locator("#composer-actions .stop").count() == 0
    model.stop()


async def change(session) -> None:
    by_hand.change_setting(session, "budget", session.state.settings["budget"] + 1)
