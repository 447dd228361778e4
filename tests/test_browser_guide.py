"""A student at the guide's column: ticks by hand and by the journal, the drawing, and what the text tells to try."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import events as e
from tests.browser_support import follow, until
from tests.harness_support import offline
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
CONNECTED = "!!document.querySelector('#stream')?._htmx?.sse"
# The state runs ahead of the rows: the end that it tells of, or the question, may still be on its way.
SETTLED = (
    "(document.body.dataset.state === 'waiting' && document.querySelector('#proposal-text, [data-approval]')"
    " || document.body.dataset.state === 'idle' && document.querySelectorAll('[data-event=TaskStarted]').length ==="
    " document.querySelectorAll('[data-event=TaskEnded]').length)"
)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, lab="07", offline_assets=True) as running:
        yield running


@pytest.fixture
def first_lab(tmp_path: Path) -> Iterator[Web]:
    model = offline(delay=0.02)
    model.start()
    with serving(tmp_path, lab="01", model=model, offline_assets=True) as running:
        yield running
    model.stop()


def begin(web: Web, page: Page, language: str = "en") -> None:
    """Open a new session in this language."""
    page.context.add_cookies([{"name": "context-lab-language", "value": language, "url": web.address}])
    page.goto(f"{web.address}/s/{web.session().id}")
    until(page, CONNECTED)


def seen(page: Page, tick: str) -> bool:
    return page.locator(f'[data-tick="{tick}"]').get_attribute("data-seen") == "true"


def until_seen(page: Page, tick: str, yes: bool = True) -> None:
    until(page, f"document.querySelector('[data-tick={tick}]').dataset.seen === '{str(yes).lower()}'")


def play(page: Page, number: int) -> None:
    """Run a sample until nothing runs or a person is asked."""
    begun = "document.querySelectorAll('[data-event=TaskStarted]').length"
    before = page.evaluate(begun)
    page.locator(f'[data-sample="{number}"]').click()
    until(page, f"{begun} > {before} && {SETTLED}", 90)


def test_a_student_ticks_and_the_journal_ticks_while_the_page_is_open(web: Web, page: Page, axe: Axe) -> None:
    begin(web, page)
    page.locator("#tick-views").focus()
    page.keyboard.press("Space")
    until_seen(page, "views")
    assert page.evaluate("document.activeElement.id") == "tick-views", "the focus stays where it was"
    assert page.get_by_role("button", pressed=True).count() == 1
    assert "1 of 8 so far in this session." in page.inner_text("#guide-ticks")
    play(page, 1)
    until_seen(page, "largest")
    play(page, 2)
    until_seen(page, "compacted")
    assert "3 of 8 so far in this session." in page.inner_text("#guide-ticks") and not seen(page, "again")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert axe(page) == [], theme
    page.reload()
    assert [seen(page, tick) for tick in ("views", "largest", "compacted", "again")] == [True, True, True, False]
    until(page, CONNECTED)
    page.locator("#tick-views").click()
    until_seen(page, "views", yes=False)
    play(page, 5)
    until_seen(page, "again")


def test_ticks_work_without_javascript(web: Web, chromium: Browser) -> None:
    context = chromium.new_context(java_script_enabled=False, locale="en-GB")
    page = context.new_page()
    page.goto(f"{web.address}/s/{web.session().id}")
    follow(page, page.locator("#tick-detail"))
    assert page.url.endswith("#guide-ticks") and seen(page, "detail")
    follow(page, page.locator("#tick-detail"))
    assert not seen(page, "detail")
    context.close()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_drawing_and_ticks_fit_a_small_screen_and_large_text(web: Web, page: Page, axe: Axe, language: str) -> None:
    begin(web, page, language)
    wide = "[...document.querySelectorAll('.picture, .picture svg, .ticks, .tick-line, .drawn-key li')]"
    for width, size in ((320, "100%"), (1400, "100%"), (1400, "200%")):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(f"document.documentElement.style.fontSize = '{size}'")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(f"{wide}.every(each => each.scrollWidth <= each.clientWidth + 1)"), (width, size)
        small = f"{wide}.filter(each => each.matches('button')).some(each => each.offsetHeight < 24)"
        assert not page.evaluate(small), "what is clicked is large enough"
        letters = (
            "[...document.querySelectorAll('.drawn .letter')].every(each => each.getBBox().width <="
            " each.parentNode.querySelector('rect').getBBox().width)"
        )
        assert page.evaluate(letters), f"a letter fits its part at {width} px, {size}"
        assert axe(page) == [], (width, size)


def use(page: Page, setting: str, value: str) -> None:
    """Open the settings, set one of the numbers or the switch, and use it."""
    page.locator("#drawer > summary").click()
    field = page.locator(f'#drawer-numbers [name="{setting}"]:not([type=hidden])')
    field.check() if field.get_attribute("type") == "checkbox" else field.fill(value)
    rows = page.locator('[data-event="SettingChanged"]').count()
    page.locator("#use-numbers").click()
    until(page, f"document.querySelectorAll('[data-event=SettingChanged]').length > {rows}")
    page.locator("#drawer > summary").click()


def strike(text: str, language: str) -> str:
    """Do to a summary what the lab's text tells: the wish goes, and a guess becomes a fact."""
    wish, head, sure = {
        "en": ("Don't change any file.", "## Confirmed", "- 07:56 the key `k-19` is the cause."),
        "zh": ("不要改动任何文件。", "## 已确认", "- 07:56 新密钥 `k-19` 就是原因。"),
    }[language]
    lines = [line for line in text.splitlines() if wish not in line and not line.startswith("- 07:56")]
    assert len(lines) == len(text.splitlines()) - 2
    lines.insert(lines.index(head) + 1, sure)
    return "\n".join(lines)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_lab_07_goes_wrong_on_purpose_as_its_text_says(web: Web, page: Page, language: str) -> None:
    sure = {"en": "the key k-19 is the cause.", "zh": "新密钥 k-19 就是原因。"}[language]
    limits = {"en": "Limits that still hold", "zh": "仍然有效的限制"}[language]
    begin(web, page, language)
    use(page, "confirm_summary", "1")
    play(page, 1)
    play(page, 2)
    box = page.locator("#proposal-text")
    box.fill(strike(box.input_value(), language))
    page.locator('.proposal button[value="use"]').click()
    until_seen(page, "wish")
    until(page, "document.body.dataset.state === 'idle'")
    answer = page.locator('[data-event="ModelCallEnded"]').last
    play(page, 3)
    assert sure in answer.inner_text() and limits not in answer.inner_text()
    page.locator(".undo button").last.click()
    until_seen(page, "undone")
    play(page, 3)
    assert sure in answer.inner_text() and limits in answer.inner_text(), "the undo does not reach an answer"
    session = web.run(web.library.open(page.url.split("/s/")[1].split("?")[0]))
    assert isinstance(session.state.compactions[0].event, e.ContextCompacted) and session.state.compactions[0].undone


@pytest.mark.parametrize("language", ["en", "zh"])
def test_lab_01_goes_wrong_on_purpose_as_its_text_says(first_lab: Web, page: Page, language: str) -> None:
    begin(first_lab, page, language)
    use(page, "step_limit", "2")
    play_and_allow(page, 2)
    session = first_lab.run(first_lab.library.open(page.url.split("/s/")[1].split("?")[0]))
    assert session.state.tasks[-1].ended == "step_limit"
    use(page, "step_limit", "30")
    play_and_allow(page, 2)
    assert session.state.tasks[-1].ended == "answered"
    until_seen(page, "approved")
    assert not seen(page, "denied") and not seen(page, "stopped")


def play_and_allow(page: Page, number: int) -> None:
    play(page, number)
    while page.evaluate("document.body.dataset.state") == "waiting":
        asked = page.locator("[data-approval] [name=call_id]").get_attribute("value")
        page.locator("[data-approval] button[value=allow]").click()
        until(page, f"!document.querySelector('[data-approval] [value=\"{asked}\"]') && {SETTLED}", 90)
