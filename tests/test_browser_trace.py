"""A class looks at a task as a tree, without a trace viewer: live, by keyboard, small, dark, and without JavaScript."""

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness.session import Session
from tests.browser_support import follow, until
from tests.checks_support import DEMO, accept_all
from tests.harness_support import offline, run, run_sample
from tests.test_browser_lab08 import ALIVE, play
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
TREE = "[...document.querySelectorAll('.tree li')].map(li => li.dataset.what)"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("lab"), offline_assets=True) as web:
        yield web


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Lab 04, whose model takes a little time, so that there is something to see while it works."""
    with offline(delay=0.02) as model:
        with serving(tmp_path_factory.mktemp("lab"), lab="04", model=model, offline_assets=True) as web:
            yield web


def played(web: Web, *numbers: int, language: str = "en") -> Session:
    """A session in which these samples were run."""
    session = web.run(web.library.create(language=language))
    for number in numbers:
        web.run(run_sample(session, number, language=language), 90)
    return session


def line(page: Page, what: str, number: int = 0) -> str:
    """The text of a line itself, without what stands inside of it."""
    return page.locator(f'.tree li[data-what="{what}"] > .line').nth(number).inner_text()


def test_the_keyboard_leads_from_the_tab_to_a_row_and_to_a_moment(page: Page, web: Web, axe: Axe) -> None:
    session = played(web, 1, 2)
    page.goto(f"{web.address}/s/{session.id}")
    page.get_by_role("link", name="Trace", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**tab=trace**")
    assert page.evaluate(TREE)[:2] == ["task", "turn"]
    made = line(page, "compaction")
    assert "Compaction 1" in made and "→" in made and "CHAIN" in made
    assert "for a summary" in line(page, "summary_call")
    assert page.evaluate("document.querySelector('[data-what=compaction] [data-what=summary_call]') !== null")
    assert axe(page) == []
    page.locator('[data-what="compaction"] > .line .called a').focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelector(location.hash)?.dataset.event === 'ContextCompacted'")
    page.locator('[data-what="call"] > .line .since a').focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**at=**")
    assert page.evaluate("document.body.dataset.moment")
    open_then = page.locator(".tree li[data-open]").evaluate_all("all => all.map(li => li.dataset.what)")
    assert open_then == ["task", "turn", "call"], "at that moment the call was going on"
    assert not page.locator('[data-what="compaction"]').count() and axe(page) == []
    page.get_by_role("link", name="Task 1").click()
    page.wait_for_url("**task=1**")
    assert (
        "read" in page.evaluate("document.querySelector('.tree').innerText") and not page.locator("[data-open]").count()
    )


def test_it_grows_while_a_task_runs_and_shows_the_wait_apart_from_the_tool(page: Page, agents: Web, axe: Axe) -> None:
    session = agents.run(agents.library.create(language="en"))
    page.goto(f"{agents.address}/s/{session.id}?tab=trace")
    until(page, ALIVE)
    page.locator('[data-sample="4"]').click()
    until(page, "document.querySelector('.tree [data-what=child] [data-what=approval][data-open]')", 60)
    assert axe(page) == []
    assert page.locator(".tree li[data-open]").evaluate_all("all => all.map(li => li.dataset.what)") == [
        "task", "turn", "tool", "child", "turn", "approval",
    ]  # fmt: skip
    page.wait_for_timeout(1200)
    page.locator('form[data-approval] [value="deny"]').last.click()
    until(page, "document.body.dataset.state === 'idle' && !document.querySelector('.tree [data-open]')", 90)
    waited = page.locator('[data-what="approval"] > .line [data-figure="trace.seconds"]').first
    assert float(waited.get_attribute("data-value") or 0) > 1
    assert (
        "denied by you" in line(page, "approval") and "not run" in page.locator('[data-fault="not_run"]').inner_text()
    )
    live = page.evaluate("document.querySelector('.tree').innerText")
    page.reload()
    until(page, ALIVE)
    assert page.evaluate("document.querySelector('.tree').innerText") == live
    follow(page, page.locator('[data-what="child"] [data-what="call"] > .line .called a').first)
    assert page.evaluate("document.body.dataset.child") == "1" and page.evaluate(
        "!!document.querySelector(location.hash)"
    )
    assert page.evaluate(TREE)[0] == "child" and axe(page) == []


def test_a_check_and_what_it_sent_back_stand_in_the_tree(page: Page, tmp_path: Path) -> None:
    accept_all(tmp_path, DEMO)
    with serving(tmp_path, lab="05", source=DEMO, offline_assets=True) as web:
        session = played(web, 1)
        page.goto(f"{web.address}/s/{session.id}?tab=trace")
        checks = page.locator('.tree > li > ol > li[data-kind="EVALUATOR"]')
        assert checks.count() == len(session.state.checks) > 0
        assert [each.get_attribute("data-fault") or "passed" for each in checks.all()] == [
            each.result.outcome for each in session.state.checks if each.result
        ]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_clean_and_fits_in_every_width(
    chromium: Browser, agents: Web, axe: Axe, language: str, theme: str
) -> None:
    session = played(agents, 1, language=language)
    locale = {"en": "en-GB", "zh": "zh-CN"}[language]
    with chromium.new_context(locale=locale, color_scheme=theme, viewport={"width": 1360, "height": 900}) as context:
        opened = context.new_page()
        opened.goto(f"{agents.address}/s/{session.id}?tab=trace")
        assert opened.locator('.tree li[data-what="child"]').count() == 5
        tabs = "[...document.querySelectorAll('.tabs a')].map(a => a.getBoundingClientRect().top)"
        assert len(set(opened.evaluate(tabs))) == 1, "five tabs stand in one line"
        for width in (1360, 1000, 640, 320):
            opened.set_viewport_size({"width": width, "height": 900})
            assert opened.evaluate("document.documentElement.scrollWidth") <= width
            assert opened.evaluate(
                "[...document.querySelectorAll('.tree .when')].every(bar => bar.getBoundingClientRect().width > 50)"
            )
            small = "all => all.filter(x => x.getBoundingClientRect().height < 24).map(x => x.outerHTML)"
            assert opened.locator(".trace a, .near a").evaluate_all(small) == []
            assert width not in (1360, 320) or axe(opened) == []
        opened.evaluate("document.documentElement.style.fontSize = '200%'")
        assert opened.evaluate("document.documentElement.scrollWidth") <= 320


def test_every_bar_stands_on_the_scale_of_the_whole_task(page: Page, agents: Web) -> None:
    session = played(agents, 4)
    page.goto(f"{agents.address}/s/{session.id}?tab=trace")
    bars = page.locator(".tree .when").evaluate_all(
        "all => all.map(x => x.getBoundingClientRect()).map(r => [r.x, r.width])"
    )
    assert len({round(x) for x, _ in bars}) == 1 and len({round(width) for _, width in bars}) == 1
    assert page.locator(".tree ol ol ol").count(), "however deep a line stands"
    begins = "all => all.map(x => x.getBoundingClientRect().x)"
    deep = [page.locator(f".tree {'> li > ol ' * depth}> li > .line .kind").evaluate_all(begins) for depth in range(6)]
    assert all(len(set(each)) == 1 for each in deep)
    assert [each[0] for each in deep] == sorted({each[0] for each in deep})


def test_it_can_be_read_without_javascript(chromium: Browser, web: Web) -> None:
    session = played(web, 1, 2)
    for number in range(40):
        web.run(run(session, f"Tell me about number {number}."), 60)
    with chromium.new_context(java_script_enabled=False, locale="en-GB") as context:
        opened = context.new_page()
        opened.goto(f"{web.address}/s/{session.id}?tab=trace")
        assert "Task 42" in opened.locator(".asked").inner_text()
        follow(opened, opened.locator('.near [rel="prev"]'))
        assert "Task 33" in opened.locator(".asked").inner_text()
        opened.goto(f"{web.address}/s/{session.id}?tab=trace&task=2")
        assert "Compaction 1" in opened.locator(".tree").inner_text()
        follow(opened, opened.locator('[data-what="call"] > .line .called a'))
        assert re.search(r"#model-call-\d+$", opened.url)
        assert opened.evaluate("!!document.querySelector(location.hash)"), "on a page of older rows"


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> str:
    """An address at which nobody answers, as the one of the trace viewer."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", address)
    return address


def test_without_a_viewer_the_task_goes_on_and_the_page_says_what_to_do(
    page: Page, tmp_path: Path, nowhere: str, axe: Axe
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with serving(tmp_path, extensions=("06",), offline_assets=True) as web:
        session = web.run(web.library.create(language="en"))
        page.goto(f"{web.address}/s/{session.id}?tab=trace")
        until(page, ALIVE)
        play(page, 1)
        assert session.state.tasks[0].ended == "answered"
        until(
            page, "document.querySelector('#sending .warned') && document.querySelector('#trace-sending [data-fault]')"
        )
        said = page.locator("#trace-sending [data-fault]").inner_text()
        assert nowhere in said and "journal keeps everything" in said and "phoenix serve" in said
        assert int(page.locator('[data-figure="spans.waiting"]').get_attribute("data-value") or 0) > 4
        assert axe(page) == []
        page.get_by_role("button", name="Send this session again").click()
        until(page, "document.querySelector('[data-by-hand]')")
        assert "Not all was sent: 0 spans" in page.locator("[data-by-hand]").inner_text()
        assert page.evaluate("document.activeElement.textContent.trim()") == "Send this session again"
        assert axe(page) == []


def test_any_session_can_be_sent_by_hand_also_without_javascript(chromium: Browser, web: Web, nowhere: str) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    session = played(web, 1)
    with chromium.new_context(java_script_enabled=False, locale="en-GB") as context:
        opened = context.new_page()
        opened.goto(f"{web.address}/s/{session.id}?tab=trace")
        assert not opened.locator("#sending").is_visible(), "nothing sends by itself here"
        follow(opened, opened.get_by_role("button", name="Send this session to Phoenix"))
        assert opened.url.endswith("#trace-sending")
        said = opened.locator("#trace-sending").inner_text()
        assert "Not all was sent" in said and nowhere in said


def test_with_a_viewer_the_page_counts_what_was_sent_and_can_send_it_again(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from tests.collector import collecting

    with collecting() as collector, serving(tmp_path, extensions=("06",), offline_assets=True) as web:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", collector.address)
        session = web.run(web.library.create(language="en"))
        page.goto(f"{web.address}/s/{session.id}")
        until(page, ALIVE)
        play(page, 1)
        # The last spans leave after the last event, and no event tells of that.
        for _ in range(600):
            if "task 1" not in collector.names:
                page.wait_for_timeout(50)
        said = f"Trace: {len(collector.spans)} spans sent"
        until(page, f"document.querySelector('#sending').innerText.trim() === '{said}'")
        assert "task 1" in collector.names
        sent = len(collector.spans)
        page.locator("#sending a").click()
        page.wait_for_url("**tab=trace**")
        assert page.locator('[data-figure="spans.sent"]').get_attribute("data-value") == str(sent)
        page.get_by_role("button", name="Send this session again").click()
        until(page, "document.querySelector('[data-by-hand]')")
        assert page.locator('[data-figure="by_hand.sent"]').get_attribute("data-value") == str(sent)
        assert len(collector.spans) == 2 * sent
        assert {span.span_id for span in collector.spans[:sent]} == {span.span_id for span in collector.spans[sent:]}
