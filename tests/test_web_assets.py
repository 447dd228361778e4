"""The scripts from elsewhere: the right bytes, in the right order, and the page works when they cannot be had."""

import base64
import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

from tests.browser_support import follow, until
from tests.web_support import Web, serving
from web.assets import VENDOR, load

ASSETS = load()
ELSEWHERE = re.compile("^https://")
CONNECTED = "!!document.querySelector('#stream')?._htmx?.sse"
LOADED = "[...document.querySelectorAll('head script')].map(each => each.src).filter(each => !each.endsWith('main.js'))"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("assets")) as running:
        yield running


@pytest.fixture
def address(web: Web) -> str:
    return f"{web.address}/s/{web.session().id}"


def local(web: Web) -> list[str]:
    return [f"{web.address}/static/vendor/{asset.file}" for asset in ASSETS]


def give(route: Route) -> None:
    """Answer as the other host does, from the copy that is shipped here."""
    asset = next(each for each in ASSETS if each.address == route.request.url)
    body = (VENDOR / asset.file).read_bytes()
    headers = {"access-control-allow-origin": "*", "content-type": "application/javascript"}
    route.fulfill(status=200, body=body, headers=headers)


def works(page: Page) -> None:
    """The page is alive: it is connected, once, and htmx was started once."""
    until(page, CONNECTED)
    assert page.evaluate("htmx.version") == "4.0.1"
    page.click("#composer textarea")
    page.fill("#composer textarea", " ")
    page.evaluate("document.querySelector('#composer').noValidate = true")
    page.keyboard.press("Control+Enter")
    until(page, "document.querySelector('#notice').textContent.length > 0")


@pytest.mark.parametrize("asset", ASSETS, ids=lambda asset: asset.file)
def test_the_manifest_names_the_very_bytes(asset) -> None:
    body = (VENDOR / asset.file).read_bytes()
    assert base64.b64encode(hashlib.sha384(body).digest()).decode() == asset.sha384
    assert asset.version in asset.file and f"@{asset.version}/" in asset.address
    assert asset.address.startswith("https://") and asset.licence
    assert len((VENDOR / asset.licence_file).read_text("utf-8")) > 500


def test_nothing_is_vendored_that_is_not_used() -> None:
    named = {asset.file for asset in ASSETS} | {asset.licence_file for asset in ASSETS} | {"manifest.toml"}
    assert {path.name for path in VENDOR.iterdir()} == named
    assert b"eval(" not in b"".join((VENDOR / asset.file).read_bytes() for asset in ASSETS)


def test_the_policy_allows_exactly_the_pinned_addresses(web: Web, address: str) -> None:
    page = web.ask(address.removeprefix(web.address), headers={"Accept": "text/html"})
    scripts = page.headers["content-security-policy"].partition("script-src ")[2].partition(";")[0].split()
    assert scripts[1:] == [asset.address for asset in ASSETS]
    assert re.findall(r'(?:src|href)="(?:https?:)?//[^"]*', page.text) == []


def test_our_own_modules_are_small_and_build_no_html() -> None:
    modules = sorted((VENDOR.parent / "js").glob("*.js"))
    assert modules
    for module in modules:
        text = module.read_text("utf-8")
        assert text.count("\n") <= 60 and text.startswith("//"), module.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|\.write\(|eval\(|new Function", text), module.name


def test_from_the_pinned_address(web: Web, page: Page, address: str) -> None:
    page.route(ELSEWHERE, give)
    page.goto(address)
    works(page)
    assert page.evaluate(LOADED) == [asset.address for asset in ASSETS]
    assert "context-lab-assets" not in page.evaluate("document.cookie")
    assert web.pages() == 1


def test_without_a_network_from_the_copy_and_remembered(web: Web, page: Page, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    works(page)
    assert page.evaluate(LOADED) == local(web)
    assert "context-lab-assets=local" in page.evaluate("document.cookie")
    asked.clear()
    page.reload()
    works(page)
    assert [url for url in asked if not url.startswith(web.address)] == []


def test_when_the_other_host_hangs_after_two_seconds_and_never_twice(web: Web, page: Page, address: str) -> None:
    hanging: list[Route] = []
    page.route(ELSEWHERE, lambda route: hanging.append(route))
    started = time.monotonic()
    page.goto(address)
    works(page)
    assert 2 <= time.monotonic() - started < 8
    page.evaluate("window.first = htmx; window.loads = 0; addEventListener('load', () => loads++, true)")
    for route in hanging:
        give(route)
    page.wait_for_timeout(700)
    assert page.evaluate("htmx === first"), "what comes too late does not run any more"
    assert page.evaluate(LOADED) == local(web)
    assert web.pages() == 1


def test_when_only_the_second_one_hangs(web: Web, page: Page, address: str) -> None:
    page.route(ASSETS[0].address, give)
    page.route(ASSETS[1].address, lambda route: None)
    page.goto(address)
    works(page)
    assert page.evaluate(LOADED) == [ASSETS[0].address, local(web)[1]]


def test_wrong_bytes_do_not_run(web: Web, page: Page, address: str) -> None:
    headers = {"access-control-allow-origin": "*", "content-type": "application/javascript"}
    page.route(ELSEWHERE, lambda route: route.fulfill(body="window.evil = true", headers=headers))
    page.goto(address)
    works(page)
    assert page.evaluate("window.evil") is None
    assert page.evaluate(LOADED) == local(web)


def test_with_offline_assets_nothing_else_is_asked(tmp_path: Path, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with serving(tmp_path, offline_assets=True) as web:
        page.goto(web.address)
        works(page)
        assert all(url.startswith(web.address) for url in asked)
        answer = web.ask("/sessions", headers={"Accept": "text/html"})
        assert "https://" not in answer.headers["content-security-policy"]


def test_the_forms_work_while_no_script_has_come(web: Web, chromium) -> None:
    context = chromium.new_context(java_script_enabled=False, locale="en-GB")
    try:
        page = context.new_page()
        page.goto(f"{web.address}/s/{web.session().id}")
        follow(page, page.locator("[data-sample]").first)
        assert page.url.startswith(f"{web.address}/s/")
        end = time.monotonic() + 20
        while not page.locator("[data-event=TaskEnded]").count():
            assert time.monotonic() < end
            page.reload()
        assert page.locator("[data-event=TaskStarted]").count() == 1
        page.fill("#composer textarea", "x" * 20_001)
        follow(page, page.locator("#composer-actions button"))
        assert "20,001" in page.inner_text("body"), "the error is a page that says what to do"
    finally:
        context.close()
