"""A student at the list of sessions: finds, names, takes out, brings in and deletes them, in a real browser."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness.session import Session
from tests.browser_support import follow, until
from tests.harness_support import run_sample
from tests.harness_support import until as settled
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
CONNECTED = "!!document.querySelector('#stream')?._htmx?.sse"
# How far anything of the page reaches to the right, text that sticks out of its element too.
REACH = """(() => {
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_ALL), range = new Range();
    let reach = 0;
    while (nodes.nextNode()) {
        const node = nodes.currentNode, text = node.nodeType === Node.TEXT_NODE;
        if ((text ? node.parentElement : node).closest('.hidden, thead, script')) continue;
        range.selectNode(node);
        reach = Math.max(reach, (text ? range : node).getBoundingClientRect().right);
    }
    return reach;
})()"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("list"), offline_assets=True) as running:
        yield running


@pytest.fixture(scope="module")
def session(web: Web) -> Session:
    """A session of two tasks and a compaction, beside one that is empty."""

    async def live() -> Session:
        lived = await web.library.create(language="en")
        for number in (1, 2):
            await run_sample(lived, number)
        await settled(lambda: lived.committed == len(lived.records))
        return lived

    web.session()
    return web.run(live(), 60)


def row(page: Page, session_id: str) -> str:
    return page.locator(f"#session-{session_id}").inner_text()


def test_a_line_shows_what_the_session_holds(page: Page, web: Web, session: Session) -> None:
    page.goto(f"{web.address}/sessions")
    line = page.locator(f"#session-{session.id}")
    turns = [call.size for call in session.state.calls if call.purpose == "turn"]
    largest = max(turns, key=lambda size: size.chars)
    expected = {"tasks": 2, "compactions": 1, "largest.chars": largest.chars, "largest.tokens": largest.tokens}
    for name, value in expected.items():
        assert line.locator(f'[data-figure="list.{name}"]').get_attribute("data-value") == str(value)
    assert "tokens (estimated)" in line.inner_text() and "07 · " in line.inner_text()
    assert "offline model" in line.inner_text()
    cells = page.get_by_role("row").nth(1).get_by_role("cell")
    assert cells.count() == 7 and page.get_by_role("columnheader").count() == 8


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_of_it_is_clean_and_fits(
    chromium: Browser, web: Web, session: Session, axe: Axe, language: str, theme: str
) -> None:
    locale = {"en": "en-GB", "zh": "zh-CN"}[language]
    context = chromium.new_context(locale=locale, color_scheme=theme)  # type: ignore[arg-type]
    page = context.new_page()
    for path in ("/sessions", "/sessions?q=nothing", f"/s/{session.id}/delete"):
        for width in (1280, 800, 320):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{web.address}{path}")
            if page.locator("summary").count():
                page.locator("summary").first.click()
            assert axe(page) == [], f"{path} at {width}"
            assert page.evaluate(REACH) <= width, f"{path} at {width}"
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        assert page.evaluate(REACH) <= 320 and axe(page) == [], f"{path} with large text"
        assert small_targets(page) == []
    context.close()


def small_targets(page: Page) -> list[str]:
    """Return what can be clicked and is lower than 24 pixels, links inside of a sentence apart."""
    script = """[...document.querySelectorAll('main :is(button, input:not([type=hidden]), summary, a)')]
        .filter(each => !each.closest('p.say') && each.getClientRects().length)
        .filter(each => each.getBoundingClientRect().height < 23.5).map(each => each.outerHTML)"""
    return page.evaluate(script)


def test_it_works_by_keyboard_and_without_javascript(chromium: Browser, web: Web, session: Session) -> None:
    context = chromium.new_context(java_script_enabled=False, locale="en-GB")
    page = context.new_page()
    page.goto(f"{web.address}/sessions")
    page.get_by_role("searchbox").fill("WHICH only")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"q=WHICH\+only"))
    assert re.search(r"1 of \d+ sessions has WHICH only in its name", page.locator("main").inner_text())
    name = page.locator("tbody th a").inner_text()
    summary = page.locator("summary").filter(has_text="Rename")
    assert " ".join(summary.inner_text().split()) == f"Rename {name}", "a button says which session it means"
    summary.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("The log of May")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"/sessions\?q=WHICH\+only#session-{session.id}$"))
    assert "The log of May" in row(page, session.id)
    page.locator("summary").filter(has_text="Rename").click()
    page.get_by_label("New name").fill("")
    follow(page, page.get_by_role("button", name="Save"))
    assert name in row(page, session.id)
    follow(page, page.get_by_role("link", name="Show all"))
    assert page.url.endswith("/sessions")
    assert page.get_by_role("row").count() >= 3
    context.close()


def test_a_session_goes_out_as_a_file_and_comes_in_again(
    page: Page, web: Web, session: Session, tmp_path: Path
) -> None:
    page.goto(f"{web.address}/s/{session.id}")
    page.locator(".hand-on summary").click()
    with page.expect_download() as waiting:
        page.locator(".hand-on").get_by_role("link", name="JSONL").click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    assert file.name == f"context-lab-{session.id}.jsonl"
    original = page.locator("[data-event]").evaluate_all("rows => rows.map(row => row.innerText)")
    page.goto(f"{web.address}/sessions")
    line = page.locator(f"#session-{session.id}")
    line.locator("summary").filter(has_text="Export").click()
    with page.expect_download() as waiting:
        line.get_by_role("link", name="JSONL").click()
    assert Path(waiting.value.path()).read_bytes() == file.read_bytes()
    page.get_by_label("File").set_input_files(str(file))
    page.get_by_role("button", name="Import").click()
    page.wait_for_url(re.compile("/s/"))
    assert session.id not in page.url
    rows = page.locator("[data-event]").evaluate_all("rows => rows.map(row => row.innerText)")
    assert rows[:-1] == original
    assert rows[-1].startswith(f"Imported from {file.name}") and "fresh copy" in rows[-1]
    until(page, CONNECTED)
    page.locator('[data-sample="3"]').click()
    until(page, "document.querySelectorAll('[data-event=TaskEnded]').length === 3", 30)
    page.goto(f"{web.address}/sessions")
    assert f"imported from {file.name}" in page.get_by_role("row").nth(1).inner_text()


def test_a_file_that_was_changed_says_so_and_the_list_stays(
    page: Page, web: Web, session: Session, tmp_path: Path
) -> None:
    page.goto(f"{web.address}/sessions")
    rows = page.get_by_role("row").count()
    file = tmp_path / "mine.jsonl"
    file.write_text("Dear diary\n")
    page.get_by_label("File").set_input_files(str(file))
    page.get_by_role("button", name="Import").click()
    alert = page.get_by_role("alert")
    assert "nothing was imported" in alert.inner_text()
    assert page.get_by_role("row").count() == rows
    large = tmp_path / "large.jsonl"
    with large.open("wb") as writer:
        writer.truncate(65 * 1_048_576)
    page.get_by_label("File").set_input_files(str(large))
    page.get_by_role("button", name="Import").click()
    page.get_by_text("larger than 64 MB").wait_for()


def test_deleting_asks_twice_and_tells_who_watches(page: Page, web: Web, axe: Axe) -> None:
    gone = web.session()
    watching = page.context.new_page()
    watching.goto(f"{web.address}/s/{gone.id}")
    until(watching, CONNECTED)
    page.goto(f"{web.address}/sessions")
    page.locator(f"#session-{gone.id}").get_by_role("link", name="Delete").click()
    page.get_by_role("heading", name="Delete this session?").wait_for()
    assert f"{len(gone.records)} events" in page.locator("main").inner_text()
    page.get_by_role("button", name="Keep it").click()
    page.wait_for_url(re.compile(r"/sessions\??$"))
    page.locator(f"#session-{gone.id}").get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    page.wait_for_url(re.compile("/sessions$"))
    assert page.locator(f"#session-{gone.id}").count() == 0
    until(watching, "document.querySelector('#failure').innerText.includes('This session was deleted')")
    watching.wait_for_timeout(1500)
    assert watching.locator("#offline").is_hidden(), "it does not look for a server that is there"
    assert axe(watching) == []
    watching.reload()
    assert "may have been deleted" in watching.locator("main").inner_text()
    watching.close()
