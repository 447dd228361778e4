"""A person at lab 08: the threshold as a line, a cut inside the running task, presets, units, in every look."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import by_hand
from harness import events as e
from harness.by_hand import plan_by_hand
from harness.session import Session
from tests.browser_support import follow, until
from tests.harness_support import events, run_sample
from tests.test_browser_lab07 import Command, figure
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
ALIVE = "!!document.querySelector('#stream')?._htmx?.sse"
# What a reload must show as well: the parts of the page that change while it is open.
PARTS = "['meter', 'panel', 'drawer-session', 'feed'].map(id => document.getElementById(id).innerText)"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, lab="08", language="en", offline_assets=True) as running:
        yield running


def visit(page: Page, web: Web, query: str = "", *, samples: int = 0, **settings: int) -> Session:
    """Open a new session's page after its first samples, once the page is alive."""
    session = web.session()

    async def prepare() -> None:
        for name, value in settings.items():
            by_hand.change_setting(session, name, value)
        for number in range(1, samples + 1):
            await run_sample(session, number)

    web.run(prepare(), 60)
    page.goto(f"{web.address}/s/{session.id}{query}")
    until(page, ALIVE)
    return session


def play(page: Page, number: int) -> None:
    """Run a sample to its end and allow all that it asks for."""
    ended = page.locator('[data-event="TaskEnded"]').count()
    page.locator(f'[data-sample="{number}"]').click()
    over = f"document.querySelectorAll('[data-event=\"TaskEnded\"]').length > {ended}"
    while True:
        until(page, f"document.body.dataset.state === 'waiting' || ({over})", 40)
        if page.evaluate(over):
            break
        button = page.locator('button[value="allow"]').last
        row = button.evaluate("button => button.closest('li').id")
        button.click()
        # The next call may wait before anyone could see that this one does no more.
        until(page, f"!document.querySelector('#{row} button[value=allow]')")
    until(page, "document.body.dataset.state === 'idle'")


def settled(page: Page, session: Session) -> None:
    """Wait until the panel shows the session as it is."""
    until(page, f"document.querySelector('#panel [data-figure=\"context.chars\"]')?.dataset.value === "
                f"'{session.state.context.total.chars}'")  # fmt: skip


def open_drawer(page: Page) -> None:
    page.locator("#drawer > summary").click()


def pressed(page: Page) -> list[str]:
    return page.locator('[name="preset"][aria-pressed="true"]').evaluate_all("each => each.map(one => one.value)")


def widths(page: Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth")


def test_one_task_is_compacted_inside_and_the_threshold_is_a_line(page: Page, tmp_path: Path, axe: Axe) -> None:
    lab = Command(tmp_path, "--lab", "08", "--preset", "small", "--set", "trigger=1500")
    try:
        page.goto(lab.address)
        assert page.locator("#threshold [data-line=threshold]").count() == 1
        assert figure(page, "threshold", "#meter") == 1500 and axe(page) == [], "empty"
        assert page.locator("[data-chip=preset]").inner_text() == "Numbers: your own"
        play(page, 1)
        order = page.locator("#feed > li[data-event]").evaluate_all("rows => rows.map(row => row.dataset.event)")
        cut = order.index("ContextCompacted")
        assert order.index("TaskStarted") < cut < order.index("TaskEnded"), "inside the one task"
        assert order[cut:].count("ModelCallEnded") > 1, "which went on"
        [compacted, *_] = [each.event for each in lab.records(page) if isinstance(each.event, e.ContextCompacted)]
        assert compacted.budget == 1500 and compacted.scope == "request" and compacted.pinned
        page.goto(page.url + "?tab=turns")
        assert page.locator("#panel [data-line=threshold]").count() == 0
        page.get_by_role("link", name="Show tokens and the lines").click()
        until(page, "document.querySelector('#panel [data-line=threshold]')")
        assert {"1500"} == set(
            page.locator("#panel [data-line=threshold]").evaluate_all("all => all.map(one => one.dataset.value)")
        )
        assert page.locator("#panel [data-line=window]").count() >= 1
        assert page.locator("#panel [data-mark=compaction]").count() >= 1 and axe(page) == [], "over turns"
        page.locator('.units [data-unit="characters"]').click()
        until(page, "!document.querySelector('#panel [data-line=threshold]')")
        page.locator('.units [data-unit="reported"]').click()
        until(page, "document.querySelector('#panel [data-line=threshold]')")
    finally:
        lab.stop()


def test_what_an_open_page_shows_is_what_a_reload_shows(page: Page, web: Web) -> None:
    session = visit(page, web, "?drawer=1")
    play(page, 1)
    settled(page, session)
    page.locator("#preset-article").click()
    until(page, "document.querySelector('#preset-article').getAttribute('aria-pressed') === 'true'")
    until(page, "document.querySelector('[data-chip=preset]').innerText.includes('article')")
    threshold = session.strategy(session.state, session.state.settings, "", 1)[0].budget
    until(page, f"document.querySelector('#panel [data-figure=threshold]').dataset.value === '{threshold}'")
    live = page.evaluate(PARTS)
    page.reload()
    assert page.evaluate(PARTS) == live


def test_presets_are_switched_by_click_and_by_key_in_every_open_page(page: Page, web: Web, axe: Axe) -> None:
    session = visit(page, web)
    other = page.context.new_page()
    other.goto(page.url)
    open_drawer(page)
    assert pressed(page) == ["small"] and "Small window" in page.locator("[data-chip=preset]").inner_text()
    page.locator("#preset-article").focus()
    page.keyboard.press("Enter")
    for tab in (page, other):
        until(tab, "document.querySelector('[data-chip=preset]').innerText.includes('article')")
        assert pressed(tab) == ["article"]
    assert page.evaluate("document.activeElement.id") == "preset-article", "the focus stays"
    assert "In force from now on" in page.locator("#drawer-said").inner_text()
    assert page.locator("#set-reserve").input_value() == "32768" and axe(page) == [], "article"
    page.locator("#set-keep").fill("700")
    page.locator("#use-numbers").click()
    until(page, "document.querySelector('[data-chip=preset]').innerText.includes('your own')")
    assert pressed(page) == [] and axe(page) == [], "own numbers"
    assert page.locator('[data-event="SettingChanged"]').count() == len(events(session, e.SettingChanged))
    page.locator("#set-count_simply").check()
    page.locator("#use-numbers").click()
    until(page, "document.querySelector('[data-way=simple]').innerText.includes('counts here')")
    other.close()


def test_by_hand_the_preview_follows_and_does_what_it_says(page: Page, web: Web, axe: Axe) -> None:
    # The numbers are a person's own already, so that the next change shows in no word of the meter.
    session = visit(page, web, samples=1, keep=500)
    page.locator("#by-hand summary").first.click()
    assert page.locator("#by-hand input[type=radio]").count() == 0
    plan, _ = plan_by_hand(session.strategy, session.state, 1)
    assert figure(page, "hand.removed", "#by-hand-preview") == len(plan.removed) and axe(page) == [], "preview"

    async def keep() -> None:
        by_hand.change_setting(session, "keep", 60)

    web.run(keep())
    wider, _ = plan_by_hand(session.strategy, session.state, 1)
    assert len(wider.removed) > len(plan.removed)
    until(page, f"document.querySelector('#by-hand-preview [data-figure=\"hand.removed\"]').innerText === "
                f"'{len(wider.removed)}'")  # fmt: skip
    before = len(session.state.compactions)
    page.get_by_role("button", name="Compact now").click()
    until(page, f"document.querySelectorAll('[data-event=ContextCompacted]').length === {before + 1}", 30)
    assert session.state.compactions[-1].event.removed == wider.removed
    until(page, "document.body.dataset.state === 'idle'")
    assert axe(page) == [], "compacted by hand"


def test_three_failures_are_a_notice_until_something_is_changed(page: Page, web: Web, axe: Axe) -> None:
    session = visit(page, web)

    async def fail() -> None:
        by_hand.choose_fault(session, "summary_empty")
        by_hand.change_setting(session, "trigger", 700)

    web.run(fail())
    play(page, 1)
    until(page, "document.querySelector('#breaker')")
    assert "Three attempts in a row failed" in page.locator("#breaker").inner_text()
    assert page.locator("[data-chip=breaker]").count() == 1
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert axe(page) == [], f"breaker, {theme}"
    open_drawer(page)
    page.locator("#preset-small").click()
    until(page, "!document.querySelector('#breaker') && !document.querySelector('[data-chip=breaker]')")


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh", "light"), ("zh", "dark"), ("en", "dark")])
def test_every_look_is_whole_and_clean(chromium: Browser, tmp_path: Path, axe: Axe, language: str, theme: str) -> None:
    with serving(tmp_path, lab="08", language=language, offline_assets=True) as web:
        session = web.session()
        web.run(run_sample(session, 1, language=language), 60)
        context = chromium.new_context(color_scheme=theme)  # type: ignore[arg-type]
        page = context.new_page()
        for width in (1400, 320):
            page.set_viewport_size({"width": width, "height": 800})
            for query in ("", "?tab=turns&unit=estimated", "?tab=turns&unit=reported", "?drawer=1", "?by_hand"):
                page.goto(f"{web.address}/s/{session.id}{query}")
                if "by_hand" in query:
                    page.locator("#by-hand > summary").click()
                assert axe(page) == [], f"{query} at {width}"
                assert width > 320 or widths(page) <= 320, f"{query} sticks out"
        context.close()


def test_all_of_it_works_without_javascript(chromium: Browser, page: Page, web: Web) -> None:
    session = visit(page, web, samples=1)
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(page.url)
    plain.locator("#drawer > summary").click()
    follow(plain, plain.locator("#preset-article"))
    assert pressed(plain) == ["article"] and "drawer=1" in plain.url
    assert session.state.settings["reserve"] == 32_768
    follow(plain, plain.locator("#preset-small"))
    plain.locator("#drawer > summary").click()
    plain.locator("#by-hand > summary").click()
    follow(plain, plain.get_by_role("button", name="Show what would be cut"))
    assert plain.locator("#by-hand[open] #by-hand-preview").count() == 1
    context.close()
