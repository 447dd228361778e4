"""A student at lab 03: which rule was obeyed, what trust changes, and a skill that a compaction does not take away."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from harness import events as e
from tests.browser_support import follow, until
from tests.harness_support import events, offline
from tests.test_browser_lab07 import figure
from tests.test_browser_lab08 import ALIVE, check_looks, play, proved, rows, settled, visit
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
SAYS = {
    "en": {"yes": "Trust this folder", "back": "Take the trust back", "none": "nothing", "compact": "Compact now",
           "word": "HERON", "z": "", "missing": "its head has no name", "kind": "Project rules"},
    "zh": {"yes": "信任这个文件夹", "back": "收回信任", "none": "都不保留", "compact": "现在整理", "word": "白鹭",
           "z": ".zh", "missing": "文件头里没有 name", "kind": "项目规则"},
}  # fmt: skip


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with offline() as model, serving(tmp_path_factory.mktemp("lab"), lab="03", model=model, offline_assets=True) as lab:
        yield lab


def said(page: Page) -> str:
    return rows(page, "ModelCallEnded").locator(".prose").last.inner_text()


def newest_call(page: Page) -> str:
    return rows(page, "ToolEnded").last.locator("summary").first.inner_text()


def after_the_yes(page: Page, language: str) -> None:
    """Step back twice, as the text says, to the first call with the folder's own prompt."""
    here = page.url
    page.goto(f"{here.split('?')[0]}?tab=diff")
    for _ in range(2):
        before = page.url
        page.locator('[data-step="back"]').click()
        page.wait_for_url(lambda address, before=before: address != before)
    assert {"en": "call 6 goes out", "zh": "第 6 次调用发出"}[language] in page.locator("#stepper").inner_text()
    assert "⇄" in page.locator("#panel").inner_text(), "the system prompt was replaced"
    page.goto(here)
    until(page, ALIVE)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_samples_show_what_they_promise(page: Page, web: Web, axe: Axe, language: str) -> None:
    says = SAYS[language]
    session = visit(page, web, language)
    first = rows(page, "InstructionsSet").first
    assert (
        says["kind"] in first.inner_text()
        and says["missing"] in first.locator("[data-problem=skill_no_name]").inner_text()
    )
    assert says["missing"] in page.locator("#sources [data-problem=skill_no_name]").inner_text()
    play(page, 1)
    assert (
        "python3 check.py" in newest_call(page) and f"tides{says['z']}.md" in rows(page, "ToolEnded").first.inner_text()
    )
    play(page, 2)
    assert f"README{says['z']}.md" in newest_call(page) and "09:40" not in said(page)
    page.get_by_role("button", name=says["yes"]).first.click()
    rows(page, "WorkspaceTrusted").wait_for()
    until(page, "document.querySelector('#trust').hidden")
    play(page, 2)
    assert f"watch-log{says['z']}.md" in newest_call(page) and "09:40" in said(page)
    after_the_yes(page, language)
    play(page, 3)
    assert "cancelled-sailing" in newest_call(page) and says["word"] in said(page)
    page.locator("#drawer > summary").click()
    page.locator("[name=lab-07]").check()
    page.locator("#use-extensions").click()
    rows(page, "ExtensionsChanged").wait_for()
    page.locator("#drawer > summary").click()
    page.locator("#by-hand summary").first.click()
    page.locator("#by-hand").get_by_label(says["none"], exact=True).check()
    until(page, "document.querySelector('#by-hand-preview [data-figure=\"hand.kept\"]')?.innerText === '0'")
    page.locator("#by-hand").get_by_role("button", name=says["compact"], exact=True).click()
    card = rows(page, "ContextCompacted")
    card.wait_for()
    assert says["word"] in card.locator(".beside pre").inner_text()
    assert says["word"] not in card.locator(".summary-text").inner_text()
    until(page, "document.body.dataset.state === 'idle'")
    calls = rows(page, "ToolEnded").count()
    play(page, 4)
    assert rows(page, "ToolEnded").count() == calls and says["word"] in said(page)
    proved(page, "trusted", "skill", "compacted")
    settled(page, session)
    check_looks(page, axe, ("", "?view=model") if language == "en" else ("",))


def test_the_question_is_answered_by_key_and_the_answer_taken_back(page: Page, web: Web, axe: Axe) -> None:
    session = visit(page, web)
    before = figure(page, "source.1.chars", "#sources")
    card = page.locator("#trust")
    assert "SYSTEM.md" in card.inner_text() and str(session.state.started.source) in card.inner_text()
    for theme, width in (("light", 1280), ("dark", 320)):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        assert axe(page) == [] and page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 800})
    card.get_by_role("button", name="Not now").focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#trust').hidden")
    assert rows(page, "WorkspaceTrusted").count() == 1 and session.state.trusted is False
    page.reload()
    assert page.locator("#trust").is_hidden(), "it is not asked again"
    page.locator("#drawer > summary").click()
    form = page.locator("#drawer-trust")
    form.get_by_role("button", name="Trust this folder").focus()
    page.keyboard.press("Enter")
    form.get_by_role("button", name="Take the trust back").wait_for()
    until(page, f"document.querySelector('#sources [data-figure=\"source.2.chars\"]')?.dataset.value !== '{before}'")
    assert rows(page, "InstructionsSet").last.locator("[data-problem=replaced]").is_visible()
    # At its end: where the dock covers half a line, that line is no target that one could hit.
    page.locator("#conversation").evaluate("box => box.scrollTop = box.scrollHeight")
    assert axe(page) == []
    form.get_by_role("button", name="Take the trust back").click()
    form.get_by_role("button", name="Trust this folder").wait_for()
    expect(rows(page, "WorkspaceTrusted")).to_have_count(3)
    assert [each.trusted for each in events(session, e.WorkspaceTrusted)] == [False, True, False]


def test_the_answer_waits_while_a_task_runs_and_the_page_says_so(page: Page, web: Web) -> None:
    session = visit(page, web)
    page.locator('[data-sample="1"]').click()
    page.locator("form[data-approval]").wait_for()
    page.locator("#trust").get_by_role("button", name="Trust this folder").click()
    until(page, "document.querySelector('#notice').innerText.includes('nothing was changed about the folder')")
    assert session.state.trusted is None and page.locator("#trust").is_visible()


def test_where_the_question_is_out_of_sight_the_status_leads_to_it(page: Page, web: Web) -> None:
    visit(page, web)
    play(page, 1)
    in_sight = """(box => box.top >= document.querySelector('header.top').getBoundingClientRect().bottom
        && box.bottom <= document.querySelector('.dock').getBoundingClientRect().top)
        (document.querySelector('#trust-title').getBoundingClientRect())"""
    page.locator("#conversation").evaluate("box => box.scrollTop = 0")
    until(page, f"!({in_sight})")
    link = page.locator("#status").get_by_role("link", name="wait for your answer")
    link.click()
    until(page, in_sight)
    page.locator("#trust").get_by_role("button", name="Not now").click()
    expect(link).to_have_count(0)


def test_without_scripts_the_question_can_be_answered_too(page: Page, web: Web) -> None:
    session = web.session()
    browser = page.context.browser
    assert browser
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{web.address}/s/{session.id}")
    follow(plain, plain.locator("#trust").get_by_role("button", name="Trust this folder"))
    assert plain.locator("#trust").is_hidden() and plain.locator('[data-event="WorkspaceTrusted"]').count() == 1
    assert session.state.trusted and plain.url.endswith(f"/s/{session.id}")
    plain.context.close()


def test_a_session_without_a_task_opens_at_the_top_of_the_conversation(page: Page, web: Web) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    visit(page, web)
    overflows = "(box => box.scrollHeight > box.clientHeight)(document.querySelector('#conversation'))"
    until(page, overflows)
    assert page.evaluate("document.querySelector('#conversation').scrollTop") == 0
    heading = page.locator("#feed-title").bounding_box()
    header = page.locator("header.top").bounding_box()
    assert heading and header and heading["y"] >= header["y"] + header["height"]
