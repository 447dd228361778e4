"""A student at lab 02: two things told, one of them kept; what each new session knows; the notes on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from harness.notes.folder import look
from harness.places import notes_folder
from tests.browser_support import until
from tests.harness_support import offline
from tests.test_browser_lab07 import figure
from tests.test_browser_lab08 import ALIVE, Axe, check_looks, play, proved, rows
from tests.web_support import Web, serving
from web.visitor import LANGUAGE_COOKIE

TELL, ASK, AGAIN, FORGET = 1, 2, 3, 4
DAY, ROOM = "14:30", "K-207"
NAME = {"en": "new-versions-of-the-tide-board", "zh": "潮汐牌的新版本"}
SAYS = {
    "en": {"new": "New session", "none": "There are no notes", "offered": "Offered in this session",
           "since": "Kept since", "gone": "forgotten since", "unknown": "does not contain the answer",
           "forget": "Forget this note…", "yes": "Forget it for good", "memory": "Memory"},
    "zh": {"new": "新会话", "none": "还没有笔记", "offered": "这个会话开始时列出的", "since": "会话开始以后记下的",
           "gone": "已经忘掉", "unknown": "没有这个问题的答案", "forget": "忘掉这条笔记…",
           "yes": "永久忘掉", "memory": "记忆"},
}  # fmt: skip


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with offline() as model, serving(tmp_path, lab="02", model=model, offline_assets=True) as lab:
        yield lab


def folder(web: Web) -> Path:
    return notes_folder(web.library.setup.data, web.library.setup.source)


def come(page: Page, web: Web, language: str) -> None:
    """Open the lab as a student does, and wait for the notes."""
    page.context.add_cookies([{"name": LANGUAGE_COOKIE, "value": language, "url": web.address}])
    page.goto(web.address)
    ready(page)


def ready(page: Page) -> None:
    until(page, f"{ALIVE} && !!document.querySelector('#notes') && !document.querySelector('#notes[hx-get]')")


def start_anew(page: Page, language: str) -> None:
    before = page.url
    page.get_by_role("button", name=SAYS[language]["new"], exact=True).click()
    page.wait_for_url(lambda address: address != before)
    ready(page)


def answer(page: Page) -> str:
    return rows(page, "ModelCallEnded").locator(".prose").last.inner_text()


def notes(page: Page) -> str:
    ready(page)
    return page.locator("#notes").inner_text()


def memory_cost(page: Page, language: str) -> int:
    """Return how many characters the memory takes of the system prompt, as the panel has it."""
    row = page.locator("#sources tbody tr").filter(has_text=SAYS[language]["memory"])
    return int(row.locator("[data-figure$='.chars']").get_attribute("data-value") or 0)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_student_s_whole_way(page: Page, web: Web, axe: Axe, language: str) -> None:
    says = SAYS[language]
    come(page, web, language)
    assert says["none"] in notes(page)
    without = memory_cost(page, language)
    page.locator(f'[data-sample="{TELL}"]').click()
    until(page, "!!document.querySelector('form[data-approval]')")
    asked = rows(page, "ApprovalRequested").last.inner_text()
    assert f"memory/{folder(web).name}/{NAME[language]}.md" in asked and DAY in asked and ROOM not in asked
    assert not folder(web).exists(), "nothing is written before the yes"
    page.locator('form[data-approval] [value="allow"]').click()
    until(page, "document.body.dataset.state === 'idle'")
    until(page, f"document.querySelector('#notes')?.innerText.includes('{says['since']}')")
    assert page.locator(f'#notes [data-note="{NAME[language]}"]').count() == 1
    play(page, ASK)
    assert DAY in answer(page) and ROOM in answer(page) and rows(page, "ToolEnded").count() == 1
    assert memory_cost(page, language) == without, "the list of this session is what it was"
    proved(page, "remembered")
    between_the_calls(page, language)
    check_looks(page, axe, ("", "?tab=diff"))

    start_anew(page, language)
    assert says["offered"] in notes(page) and says["since"] not in notes(page)
    assert memory_cost(page, language) > without
    play(page, AGAIN)
    assert DAY in answer(page) and ROOM not in answer(page) and says["unknown"] in answer(page)
    assert "recall" in rows(page, "ToolEnded").inner_text()
    play(page, FORGET)
    until(page, f"document.querySelector('#notes')?.innerText.includes('{says['gone']}')")
    proved(page, "recalled", "forgotten")
    check_looks(page, axe)

    start_anew(page, language)
    assert says["none"] in notes(page) and memory_cost(page, language) == without
    play(page, AGAIN)
    assert answer(page).count(says["unknown"]) == 2 and DAY not in answer(page)


def between_the_calls(page: Page, language: str) -> None:
    """Step back three times, as the text says, to the call in front of which the note was kept."""
    here = page.url
    page.goto(f"{here.split('?')[0]}?tab=diff")
    for _ in range(3):
        before = page.url
        page.locator('[data-step="back"]').click()
        page.wait_for_url(lambda address, before=before: address != before)
    assert {"en": "call 2 goes out", "zh": "第 2 次调用发出"}[language] in page.locator("#stepper").inner_text()
    told = page.locator("#panel").inner_text()
    kept, added = {"en": ("3 parts", "2 parts"), "zh": ("3 个部分", "2 个部分")}[language]
    assert kept in told and added in told and "⇄" not in told, "nothing was replaced"
    page.goto(here)
    ready(page)


def test_a_person_reads_mends_and_forgets_a_note(page: Page, web: Web, axe: Axe) -> None:
    come(page, web, "en")
    play(page, TELL)
    note = folder(web) / f"{NAME['en']}.md"
    note.write_text(note.read_text().replace("Thursday at 14:30", "Monday at 16:45"))
    index = folder(web) / "index.md"
    index.write_text("- a line of my own\n")
    start_anew(page, "en")
    assert "This list was changed by hand (- a line of my own)" in page.locator("#sources").inner_text()
    assert "This list has no line for" in rows(page, "InstructionsSet").inner_text()
    play(page, AGAIN)
    assert "Monday at 16:45" in answer(page), "a note carries no proof"
    item = page.locator(f'#notes [data-note="{NAME["en"]}"]')
    item.locator("summary").first.click()
    assert "Monday at 16:45" in item.locator("pre").inner_text()
    item.get_by_text(SAYS["en"]["forget"]).click()
    for theme, width in (("light", 1280), ("dark", 320)):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        assert axe(page) == [] and page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 800})
    item.get_by_role("button", name=SAYS["en"]["yes"]).click()
    until(page, "!document.querySelector('#notes [data-note]')")
    assert SAYS["en"]["gone"] in notes(page) and look(folder(web)).notes == () and look(folder(web)).problems == ()
    assert (folder(web) / "index-by-hand-1.txt").read_text() == "- a line of my own\n"
    page.goto(f"{page.url.split('?')[0]}/notes")
    assert page.get_by_role("heading", name="Notes").count() == 1 and axe(page) == []


def test_a_compaction_takes_what_was_only_said_and_not_the_note(page: Page, web: Web) -> None:
    come(page, web, "en")
    page.locator("#drawer > summary").click()
    page.locator("#drawer").get_by_role("checkbox", name="07").check()
    page.get_by_role("button", name="Use this choice").click()
    until(page, "!!document.querySelector('[data-event=ExtensionsChanged]')")
    page.locator("#drawer > summary").click()
    play(page, TELL)
    page.locator("#by-hand summary").first.click()
    page.get_by_label("nothing", exact=True).check()
    until(page, "document.querySelector('#by-hand-preview [name=keep]')?.value === '0'")
    page.get_by_role("button", name="Compact now", exact=True).click()
    until(page, "!!document.querySelector('[data-event=ContextCompacted]') && document.body.dataset.state === 'idle'")
    card = rows(page, "ContextCompacted").text_content() or ""
    assert "Please remember that" in card and "## Changes and checks\n- none" in card
    assert f"({NAME['en']}.md)" in card and "Notes kept in this session" in card, "its line stands beside the summary"
    play(page, AGAIN)
    assert DAY in answer(page) and ROOM not in answer(page)
    proved(page, "remembered", "recalled", "compacted")
    assert figure(page, "compactions") == 1
