"""A student looks at what a compaction dropped: with the keyboard, on a small screen, live, and without JavaScript."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness.session import Session
from tests.browser_support import follow, until
from tests.harness_support import run_sample
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
WORDS = {"en": "lost", "zh": "丢了"}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, offline_assets=True) as web:
        yield web


def played(web: Web, *numbers: int, language: str = "en") -> Session:
    """A session in which these samples were run."""
    session = web.run(web.library.create(language=language))
    for number in numbers:
        web.run(run_sample(session, number, language=language), 60)
    return session


def row(text: str) -> str:
    """JavaScript for the row of the fact with this text."""
    wanted = json.dumps(text)
    return f"[...document.querySelectorAll('.fact')].find(x => x.querySelector('.fact-text').textContent === {wanted})"


def fate(page: Page, text: str) -> str:
    return page.evaluate(f"{row(text)}?.dataset.fate")


def test_the_keyboard_leads_from_the_tab_to_a_lost_fact_and_to_where_it_stood(page: Page, web: Web, axe: Axe) -> None:
    session = played(web, 1)
    page.goto(f"{web.address}/s/{session.id}")
    page.get_by_role("link", name="What was lost").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**tab=lost**")
    assert "Nothing was cut yet" in page.locator("#panel").inner_text()
    assert axe(page) == []
    web.run(run_sample(session, 2), 60)
    until(page, "document.querySelectorAll('.fact').length > 20")
    assert [fate(page, text) for text in ("E-217", "tg-5c91", "Don't change any file.")] == ["lost", "lost", "summary"]
    assert page.locator(".fact").first.locator(".fact-text").inner_text() == "Don't change any file."
    page.evaluate(f"{row('E-217')}.querySelector('.from').focus()")
    page.keyboard.press("Enter")
    page.wait_for_url("**#tool-call-**")
    place = page.locator(page.evaluate("location.hash"))
    assert "E-217" in (place.text_content() or "")
    until(page, "document.querySelector(location.hash).getBoundingClientRect().top < innerHeight")
    assert axe(page) == []


def test_what_is_read_again_stands_in_the_context_again_without_a_reload(page: Page, web: Web) -> None:
    session = played(web, 1, 2)
    page.goto(f"{web.address}/s/{session.id}?tab=lost&facts=identifier&compaction=1")
    until(page, "!!document.querySelector('#stream')?._htmx?.sse")
    assert fate(page, "tg-5c91") == "lost"
    web.run(run_sample(session, 5), 60)
    until(page, f"{row('tg-5c91')}?.dataset.fate === 'again'")
    assert page.locator('[data-fact="number"]').count() == 0, "the kind that was chosen stays chosen"
    assert "Compaction 1" in page.locator("#panel").inner_text()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_clean_in_both_languages_and_themes_and_fits_a_small_screen(
    chromium: Browser, web: Web, axe: Axe, language: str, theme: str
) -> None:
    session = played(web, 1, 2, language=language)
    locale = {"en": "en-GB", "zh": "zh-CN"}[language]
    with chromium.new_context(locale=locale, color_scheme=theme, viewport={"width": 1400, "height": 900}) as context:
        opened = context.new_page()
        opened.goto(f"{web.address}/s/{session.id}?tab=lost")
        assert WORDS[language] in opened.locator('.fact[data-fate="lost"]').first.inner_text()
        assert axe(opened) == []
        opened.set_viewport_size({"width": 320, "height": 800})
        assert opened.evaluate("document.documentElement.scrollWidth") == 320
        links = opened.locator(".facts a, .part a.inline")
        assert links.evaluate_all("all => all.every(x => x.getBoundingClientRect().height >= 24)")
        assert axe(opened) == []


def test_it_can_be_read_without_javascript(chromium: Browser, web: Web) -> None:
    session = played(web, 1, 2, 3, 4)
    with chromium.new_context(java_script_enabled=False, locale="en-GB") as context:
        opened = context.new_page()
        opened.goto(f"{web.address}/s/{session.id}?tab=lost")
        newest = opened.locator(".fates").inner_text()
        follow(opened, opened.get_by_role("link", name="Compaction 1, the one before"))
        assert opened.locator(".fates").inner_text() != newest
        more = opened.get_by_role("link", name=re.compile(r"All \d+: Numbers"))
        count = int(more.inner_text().split()[1].rstrip(":"))
        follow(opened, more)
        assert opened.locator(".fact").count() == count
        assert set(opened.locator(".fact").evaluate_all("all => all.map(x => x.dataset.fact)")) == {"number"}
        follow(opened, opened.get_by_role("link", name="Show every kind"))
        assert opened.locator('[data-fact="identifier"]').count() > 3
