"""A student at lab 06: runs its samples, finds them in the tree, reads its text, and Phoenix is not there."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from tests.browser_support import until
from tests.harness_support import offline
from tests.test_browser_lab08 import ALIVE, check_looks, play, proved, visit
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
TAB = {"en": "Trace", "zh": "轨迹"}


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with offline() as model, serving(tmp_path_factory.mktemp("lab"), lab="06", model=model, offline_assets=True) as lab:
        yield lab


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_samples_are_found_in_the_tree_and_the_text_shows_its_picture(
    page: Page, web: Web, axe: Axe, language: str
) -> None:
    visit(page, web, language)
    for number in (1, 2, 3):
        play(page, number)
    proved(page, "waited")
    page.get_by_role("tab", name=TAB[language]).or_(
        page.get_by_role("link", name=TAB[language], exact=True)
    ).first.click()
    until(page, f"{ALIVE} && document.querySelector('#panel').innerText.includes('tariff.ini')")
    picture = page.locator(".lab-text img")
    picture.scroll_into_view_if_needed()
    until(page, "document.querySelector('.lab-text img').naturalWidth > 0")
    assert len(picture.get_attribute("alt") or "") > 60
    check_looks(page, axe)
