"""A student compacts by hand, takes it back, and changes a summary before it takes effect, in a real browser."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import by_hand
from harness import events as e
from harness.session import Session
from tests.browser_support import follow, until
from tests.harness_support import events, run, run_sample
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
FOCUS = "every request id"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, offline_assets=True) as web:
        yield web


def start(web: Web, page: Page, *, confirm: bool = False, samples: int = 1) -> Session:
    """Open a session in which so many samples were run; nothing is compacted at their borders."""
    session = web.session()

    async def prepare() -> None:
        by_hand.change_setting(session, "budget", 100_000)
        by_hand.change_setting(session, "confirm_summary", int(confirm))
        for number in range(1, samples + 1):
            await run_sample(session, number)

    web.run(prepare(), 60)
    page.goto(f"{web.address}/s/{session.id}")
    until(page, "!!document.querySelector('#stream')?._htmx?.sse")
    return session


def rows(page: Page, name: str) -> int:
    return page.locator(f'#feed [data-event="{name}"]').count()


def appears(page: Page, name: str, count: int = 1) -> None:
    until(page, f"document.querySelectorAll('#feed [data-event=\"{name}\"]').length === {count}", 30)
    until(page, "document.body.dataset.state !== 'running'", 30)


def test_compact_now_with_a_focus_is_previewed_done_and_undone(page: Page, web: Web, axe: Axe) -> None:
    session = start(web, page, samples=2)
    total = session.state.context.total.chars
    page.locator("#by-hand summary").first.click()
    preview = page.locator("#by-hand-preview")
    plan = by_hand.plan_by_hand(session.strategy, session.state, 1)[0]
    assert preview.locator('[data-figure="hand.removed"]').inner_text() == str(len(plan.removed))
    page.locator("#by-hand").get_by_label("nothing").check()
    until(page, "document.querySelector('#by-hand-preview [data-figure=\"hand.kept\"]').innerText === '0'")
    assert preview.locator("li").count() == len(session.state.context.entries)
    page.locator("#by-hand").get_by_label("the newest task").check()
    until(page, "document.querySelector('#by-hand-preview [data-figure=\"hand.kept\"]').innerText !== '0'")
    page.get_by_label("Keep above all").fill(FOCUS)
    assert axe(page) == [], "preview"
    page.get_by_role("button", name="Compact now").click()
    appears(page, "ContextCompacted")
    [made] = session.state.compactions
    assert made.event.removed == plan.removed and made.event.focus == FOCUS
    row = page.locator('[data-event="ContextCompacted"]')
    assert FOCUS in row.inner_text() and "because you asked" in row.inner_text()
    until(page, "document.querySelector('#by-hand-preview [data-figure=\"hand.removed\"]') === null")
    assert "nothing to cut" in preview.inner_text(), "the preview follows what happened"
    assert axe(page) == [], "compacted"
    row.get_by_role("button", name="Undo compaction 1").click()
    appears(page, "CompactionUndone")
    until(page, "!document.querySelector('#cut-line')")
    assert session.state.context.total.chars == total
    assert "Undone" in row.inner_text() and row.get_by_role("button", name=re.compile("Undo")).count() == 0
    until(page, "document.querySelector('.meter [data-figure=compactions]').innerText === '0'")
    html = page.locator("#feed").inner_html()
    page.reload()
    assert page.locator("#feed > li").count() == html.count('class="row'), "a reload shows the same rows"
    assert axe(page) == [], "undone"


def test_the_form_is_there_once_a_first_task_has_ended(page: Page, web: Web) -> None:
    session = start(web, page, samples=0)
    assert page.locator("#by-hand").count() == 0, "there is nothing to compact yet"
    web.run(run_sample(session, 1), 60)
    until(page, "!!document.querySelector('#by-hand')")


def test_a_preview_that_is_out_of_date_is_not_carried_out(page: Page, web: Web) -> None:
    session = start(web, page, samples=2)
    page.evaluate("document.querySelector('#by-hand-preview').dataset.old = '1'")
    page.locator("#by-hand summary").first.click()
    until(page, "!document.querySelector('#by-hand-preview').dataset.old")
    page.evaluate("document.querySelector('#by-hand-preview [name=cut]').value = '3'")
    page.get_by_label("Keep above all").fill(FOCUS)
    page.get_by_role("button", name="Compact now").click()
    until(page, "document.querySelector('#notice').innerText.includes('since the preview')")
    assert page.get_by_label("Keep above all").input_value() == FOCUS, "what was typed is still there"
    assert not session.state.compactions and rows(page, "CompactionAsked") == 0


def test_a_summary_is_changed_by_hand_and_both_versions_can_be_compared(page: Page, web: Web, axe: Axe) -> None:
    session = start(web, page, confirm=True)
    web.run(change_budget(session, 1500))
    page.locator('[data-sample="2"]').click()
    until(page, "document.body.dataset.state === 'waiting'", 30)
    box = page.get_by_label("Summary", exact=True)
    written = box.input_value()
    assert "## Confirmed" in written and axe(page) == [], "waiting"
    assert page.title().startswith("Your answer is needed")
    box.fill("  ")
    page.get_by_role("button", name="Use this summary").click()
    until(page, "document.querySelector('#notice').innerText.includes('empty')")
    assert box.input_value() == "  " and not session.state.compactions
    changed = written.replace("## Unverified", "- the key was the cause\n## Unverified")
    box.fill(changed)
    page.get_by_role("button", name="Use this summary").click()
    appears(page, "ContextCompacted")
    [made] = session.state.compactions
    assert (made.event.summary, made.event.written) == (changed, written)
    row = page.locator('[data-event="ContextCompacted"]')
    row.get_by_text("Your version beside the model's").click()
    assert row.locator(".versions .add").all_inner_texts() == ["+- the key was the cause\n"]
    assert axe(page) == [], "compared"
    assert made.event.written in row.locator(".versions pre").last.inner_text()


async def change_budget(session: Session, budget: int) -> None:
    by_hand.change_setting(session, "budget", budget)


def test_leaving_the_conversation_as_it_is(page: Page, web: Web) -> None:
    session = start(web, page, confirm=True)
    web.run(change_budget(session, 1500))
    page.locator('[data-sample="2"]').click()
    until(page, "document.body.dataset.state === 'waiting'", 30)
    page.reload()
    page.get_by_role("button", name="Leave the conversation as it is").click()
    appears(page, "CompactionRefused")
    assert not session.state.compactions
    assert [answered.used for answered in events(session, e.SummaryAnswered)] == [False]


def test_all_of_it_works_without_javascript(chromium: Browser, page: Page, web: Web) -> None:
    session = start(web, page, samples=2)
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(page.url)
    plain.locator("#by-hand summary").first.click()
    plain.locator("#by-hand").get_by_label("nothing").check()
    follow(plain, plain.get_by_role("button", name="Show what would be cut"))
    assert plain.locator('#by-hand[open] [data-figure="hand.kept"]').inner_text() == "0"
    plain.get_by_label("Keep above all").fill(FOCUS)
    follow(plain, plain.get_by_role("button", name="Compact now"))
    for _ in range(100):
        if rows(plain, "ContextCompacted"):
            break
        plain.wait_for_timeout(100)
        plain.reload()
    assert session.state.compactions[0].event.focus == FOCUS
    follow(plain, plain.get_by_role("button", name="Undo compaction 1"))
    assert rows(plain, "CompactionUndone") == 1
    context.close()


def test_a_wish_that_says_code_stays_text(page: Page, web: Web) -> None:
    session = start(web, page, samples=1)
    hostile = '<img src=x onerror="window.hacked=1">{limit}{0} </history>'
    plan = by_hand.plan_by_hand(session.strategy, session.state, 0)[0]

    async def compact() -> None:
        by_hand.compact_now(session, focus=hostile, keep=0, cut=plan.cut, language="en")

    web.run(compact())
    appears(page, "ContextCompacted")
    page.reload()
    assert page.evaluate("window.hacked") is None and page.locator("#feed img").count() == 0
    assert hostile in page.locator('[data-event="ContextCompacted"] q').inner_text()
    web.run(run(session, "Which are guesses?"), 60)


def test_the_form_comes_and_goes_with_the_extension_that_compacts(page: Page, tmp_path: Path) -> None:
    with serving(tmp_path, lab="01", offline_assets=True) as web:
        session = web.session()
        web.run(run_sample(session, 1), 60)
        page.goto(f"{web.address}/s/{session.id}")
        until(page, "!!document.querySelector('#stream')?._htmx?.sse")
        assert page.locator("#by-hand").count() == 0

        async def switch(*names: str) -> None:
            await web.library.change_extensions(session, names)

        web.run(switch("07"))
        until(page, "!!document.querySelector('#by-hand')")
        web.run(switch())
        until(page, "!document.querySelector('#by-hand')")
