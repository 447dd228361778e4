"""A person at the settings drawer: by key and by mouse, with every fault, in both languages, themes and all sizes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import events as e
from harness.offline import FAULTS
from harness.session import Session
from tests.browser_support import follow, until
from tests.harness_support import ROOT, Recorder
from tests.web_support import Web, serving
from web.settings_file import parse_settings

Axe = Callable[[Page], list[str]]
OPEN = "document.querySelector('#drawer').open"
FOCUS = "document.activeElement.id || document.activeElement.tagName"

# What the first two samples of lab 07 come to: where the fault is chosen, and what the page says then.
BEFORE_THE_SUMMARY = {
    "summary_error": "Not compacted: the summary call failed.",
    "summary_empty": "Not compacted: the summary came back empty.",
    "summary_truncated": "Not compacted: the summary was cut off before its end.",
    "summary_tools": "Not compacted: instead of a summary the model asked for a tool.",
    "summary_bare": "Not compacted: the summary lacks headings",
}
LONG = {
    "summary_long": "The model was asked once for a shorter one, and this is it.",
    "summary_stubborn": "so it was cut at the end of a sentence.",
}
BEFORE_THE_TASK = {
    "rate_limit": "too many requests",
    "server_error": "The provider's server has a fault.",
    "key": "The provider does not accept the key.",
    "model_missing": "The server has no model of this name.",
    "cut": "The reply broke off on its way.",
    "empty": "empty reply, twice",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    scripts = sorted((ROOT / "labs").glob("*/offline.toml"))
    with Recorder(scripts, delay=0.002, slow=3.0) as model:
        with serving(tmp_path_factory.mktemp("lab"), model=model, language="en", offline_assets=True) as web:
            yield web


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, lab="01", language="en", offline_assets=True) as web:
        yield web


def visit(page: Page, web: Web, query: str = "") -> Session:
    """Open a new session's page, once it is alive."""
    session = web.session()
    page.goto(f"{web.address}/s/{session.id}{query}")
    until(page, "window.htmx && document.querySelector('#stream').hasAttribute('hx-sse:connect')")
    return session


def open_drawer(page: Page) -> None:
    if not page.evaluate(OPEN):
        page.locator("#drawer > summary").click()


def choose(page: Page, fault: str) -> None:
    """Choose a fault, or "" for none; returns when the header and the conversation show it."""
    rows = page.locator('[data-event="FaultChosen"]').count()
    open_drawer(page)
    page.locator(f'[name="fault"][value="{fault}"]').check()
    page.locator("#use-fault").click()
    until(page, f"document.querySelectorAll('[data-event=FaultChosen]').length === {rows + 1}")
    until(page, f"document.querySelector('#fault-chip').hidden === {'false' if fault else 'true'}")


def play(page: Page, number: int) -> None:
    """Run a sample to its end."""
    ended = page.locator('[data-event="TaskEnded"]').count()
    page.locator(f'[data-sample="{number}"]').click()
    until(page, f"document.querySelectorAll('[data-event=\"TaskEnded\"]').length > {ended}", 40)
    until(page, "document.body.dataset.state === 'idle'", 30)


def conversation(session: Session) -> list[tuple[int, str]]:
    return [(entry.seq, entry.message.text) for entry in session.state.context.entries]


async def told(session: Session) -> None:
    """Change something as another page does."""
    session.emit(e.FaultChosen(fault="summary_bare"))


def last_row(page: Page, event: str) -> str:
    return page.locator(f'[data-event="{event}"]').last.inner_text()


def test_every_fault_is_tried_here() -> None:
    alone = {"summary_slow", "summary_thinking", "summary_constraint", "stall", "slow"}
    assert {*BEFORE_THE_SUMMARY, *LONG, *BEFORE_THE_TASK, *alone} == set(FAULTS)


@pytest.mark.parametrize("fault", BEFORE_THE_SUMMARY)
def test_a_summary_that_fails_leaves_the_conversation_as_it_was(page: Page, lab: Web, fault: str) -> None:
    session = visit(page, lab)
    play(page, 1)
    first = conversation(session)
    choose(page, fault)
    play(page, 2)
    assert BEFORE_THE_SUMMARY[fault] in last_row(page, "CompactionRefused")
    assert conversation(session)[: len(first)] == first and session.state.compactions == []
    assert "Task 2 answered" in last_row(page, "TaskEnded")
    choose(page, "")
    play(page, 3)
    assert page.locator('[data-event="ContextCompacted"]').count() == 1


@pytest.mark.parametrize("fault", LONG)
def test_a_summary_that_is_too_long_is_made_shorter(page: Page, lab: Web, fault: str) -> None:
    session = visit(page, lab)
    play(page, 1)
    choose(page, fault)
    play(page, 2)
    assert LONG[fault] in last_row(page, "ContextCompacted")
    [made] = session.state.compactions
    assert len(made.event.summary) <= session.state.settings["summary_limit"] and len(made.event.calls) == 2


def test_a_summary_that_is_cut_off_once_is_whole_with_less_thinking(page: Page, lab: Web) -> None:
    session = visit(page, lab)
    play(page, 1)
    choose(page, "summary_thinking")
    play(page, 2)
    [made] = session.state.compactions
    asked = [each.event for each in session.records if isinstance(each.event, e.SummaryCallStarted)]
    assert len(made.event.calls) == 2 and [bool(each.extra) for each in asked] == [False, True]


@pytest.mark.parametrize("kept", [False, True])
def test_a_summary_without_the_limits_loses_them_unless_they_are_kept_beside_it(
    page: Page, lab: Web, kept: bool
) -> None:
    session = visit(page, lab)
    if kept:
        open_drawer(page)
        page.locator("#set-keep_demands").check()
        page.locator("#use-numbers").click()
        until(page, "document.querySelector('[data-event=SettingChanged]') !== null")
    play(page, 1)
    choose(page, "summary_constraint")
    play(page, 2)
    [made] = session.state.compactions
    assert "change any file" not in made.event.summary
    assert ("Don't change any file." in made.summary.wire["content"]) == kept
    assert ("Don't change any file." in last_row(page, "ContextCompacted").split("What it replaces")[0]) == kept


@pytest.mark.parametrize("fault", BEFORE_THE_TASK)
def test_a_call_that_fails_ends_the_task_and_costs_nothing(page: Page, lab: Web, fault: str) -> None:
    session = visit(page, lab)
    play(page, 1)
    first = conversation(session)
    choose(page, fault)
    play(page, 2)
    assert BEFORE_THE_TASK[fault] in page.locator("#feed").inner_text()
    assert "Task 2 ended without an answer" in last_row(page, "TaskEnded")
    now = conversation(session)
    assert now[: len(first)] == first and [text for _, text in now[len(first) :]] == [session.state.tasks[1].text]
    choose(page, "")
    play(page, 2)
    assert "Task 3 answered" in last_row(page, "TaskEnded")


def test_a_slow_summary_is_seen_while_it_is_written(page: Page, lab: Web) -> None:
    session = visit(page, lab)
    play(page, 1)
    choose(page, "summary_slow")
    page.locator('[data-sample="2"]').click()
    until(page, "document.querySelector('#status').innerText.includes('being summarised')", 30)
    assert session.state.compactions == []
    until(page, "document.querySelectorAll('[data-event=ContextCompacted]').length === 1", 30)


def test_slow_replies_leave_time_to_press_stop(page: Page, lab: Web) -> None:
    visit(page, lab)
    choose(page, "slow")
    page.locator('[data-sample="1"]').click()
    until(page, "document.body.dataset.state !== 'idle'")
    page.wait_for_timeout(1000)
    page.get_by_role("button", name="Stop", exact=True).click()
    until(page, "document.body.dataset.state === 'idle'")
    assert "stopped by you" in last_row(page, "TaskEnded")
    assert page.locator('[data-event="ToolEnded"]').count() == 0, "no reply had come"


def test_a_stream_that_stalls_is_ended_by_stop(page: Page, lab: Web) -> None:
    session = visit(page, lab)
    choose(page, "stall")
    page.locator('[data-sample="1"]').click()
    page.get_by_role("button", name="Stop", exact=True).click()
    until(page, "document.body.dataset.state === 'idle'")
    assert "stopped by you" in last_row(page, "TaskEnded")
    choose(page, "")
    play(page, 1)
    assert "Task 2 answered" in last_row(page, "TaskEnded") and not session.state.fault


def test_by_key_it_opens_closes_and_gives_the_focus_back(page: Page, lab: Web) -> None:
    visit(page, lab)
    button = page.locator("#drawer > summary")
    button.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(OPEN) and button.inner_text() == "Close settings"
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('.sheet').contains(document.activeElement)")
    page.keyboard.press("Escape")
    assert not page.evaluate(OPEN) and page.evaluate("document.activeElement.matches('#drawer > summary')")
    page.keyboard.press("Enter")
    page.locator("#ask").fill("a task that is being written")
    assert page.evaluate(OPEN), "what it does not cover can be used beside it"
    page.keyboard.press("Escape")
    assert not page.evaluate(OPEN) and page.evaluate(FOCUS) == "ask", "the focus was elsewhere and stays there"
    page.keyboard.press("Shift+Tab")
    page.locator("#drawer > summary").click()
    page.locator("#panel a").first.focus()
    assert not page.evaluate(OPEN), "nothing lies over what has the focus"


def test_what_is_typed_stays_when_something_changes_elsewhere(page: Page, lab: Web) -> None:
    session = visit(page, lab)
    other = page.context.new_page()
    other.goto(page.url)
    for tab in (page, other):
        open_drawer(tab)
    page.locator("#set-summary_limit").fill("777")
    page.locator('[name="fault"][value="cut"]').check()
    page.locator("#set-step_limit").fill("1")
    until(other, "window.htmx")
    other.locator("#set-budget").fill("2500")
    other.locator("#use-numbers").click()
    until(page, "document.querySelector('#set-budget').value === '2500'")
    assert page.locator("#set-summary_limit").input_value() == "777"
    assert page.locator("#set-step_limit").input_value() == "1" and page.evaluate(FOCUS) == "set-step_limit"
    assert page.locator('[name="fault"][value="cut"]').is_checked() and page.evaluate(OPEN)
    page.keyboard.press("Enter")
    until(other, "document.querySelector('#set-step_limit').value === '1'")
    assert session.state.settings["budget"] == 2500 and session.state.settings["summary_limit"] == 777
    # What a person chose and used is no longer what they are about to choose: another tab's choice is shown.
    for number, (tab, fault) in enumerate([(page, "cut"), (other, "empty"), (page, "stall"), (other, "cut")], 1):
        tab.locator(f'[name="fault"][value="{fault}"]').check()
        tab.locator("#use-fault").click()
        for each in (page, other):
            until(each, f"document.querySelectorAll('[data-event=FaultChosen]').length === {number}")
            until(each, f"document.querySelector('[name=fault][value={fault}]').checked")
    other.close()


def test_a_wrong_number_is_told_at_its_field_and_can_be_mended(page: Page, lab: Web) -> None:
    session = visit(page, lab)
    open_drawer(page)
    page.locator("#set-budget").fill("1,500")
    page.locator("#set-summary_limit").fill("600")
    page.locator("#use-numbers").click()
    until(page, "document.querySelector('#set-budget-wrong')")
    assert "from 0 to 10,000,000" in page.locator("#set-budget-wrong").inner_text()
    assert page.locator("#set-budget").input_value() == "1,500"
    assert page.locator("#set-summary_limit").input_value() == "600"
    assert "Nothing was changed" in page.locator("#drawer-said").inner_text()
    assert page.evaluate(FOCUS) == "set-budget"
    page.locator("#set-summary_limit").focus()
    lab.run(told(session))
    until(page, "!document.querySelector('#fault-chip').hidden")
    assert page.locator("#set-budget").input_value() == "1,500" and page.locator("#set-budget-wrong").count() == 1
    page.locator("#set-budget").focus()
    assert not any(isinstance(each.event, e.SettingChanged) for each in session.records)
    page.locator("#set-budget").fill("1400")
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('[data-event=SettingChanged]').length === 2")
    until(page, "document.querySelector('[data-figure=budget]').innerText === '1,400'")
    assert page.locator(".wrong").count() == 0
    assert "Budget for finished tasks set to 1,400 characters." in page.locator("#feed").inner_text()


def test_extensions_are_switched_between_tasks_and_refused_while_one_runs(page: Page, base: Web) -> None:
    session = visit(page, base)
    open_drawer(page)
    page.get_by_label("07 Context at the task boundary").check()
    page.locator("#use-extensions").click()
    until(page, "document.querySelector('#set-budget')")
    until(page, "document.querySelector('#meter [data-figure=budget]')")
    assert "07 Context at the task boundary" in last_row(page, "ExtensionsChanged")
    page.locator('[data-sample="2"]').click()
    until(page, "document.body.dataset.state === 'waiting'")
    page.get_by_label("07 Context at the task boundary").uncheck()
    page.locator("#use-extensions").click()
    until(page, "document.querySelector('#notice').innerText.includes('still running')")
    assert session.state.extensions == ("07",)
    page.set_viewport_size({"width": 320, "height": 700})
    box = page.locator("#notice").bounding_box()
    assert box and box["y"] >= 0 and box["y"] + box["height"] <= 700, "it is seen wherever one is on a small screen"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator("#set-window").fill("2000")
    page.locator("#use-numbers").click()
    until(page, "document.querySelector('#set-window-wrong')")
    assert session.state.settings["window"] == 0
    page.get_by_role("button", name="Stop", exact=True).click()
    until(page, "document.body.dataset.state === 'idle'")
    page.locator("#use-numbers").click()
    until(page, "document.querySelector('#panel').innerText.includes('2,000 tokens (as set in this session)')")


def test_a_small_window_makes_the_offline_model_refuse(page: Page, lab: Web) -> None:
    visit(page, lab)
    open_drawer(page)
    page.locator("#set-window").fill("600")
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('[data-event=SettingChanged]').length === 1")
    play(page, 1)
    assert "larger than the model's window" in page.locator("#feed").inner_text()


def test_the_settings_can_be_taken_along_as_a_file(page: Page, lab: Web) -> None:
    session = visit(page, lab, "?drawer=1")
    with page.expect_download() as found:
        page.get_by_role("link", name="Download these settings").click()
    read = parse_settings(found.value.path().read_text("utf-8"), "file", session.state.settings)
    assert found.value.suggested_filename == "lab-07-settings.toml"
    assert read.lab == "07" and read.settings == session.state.settings


def test_text_for_a_projector_gets_the_layout_of_a_smaller_screen(page: Page, lab: Web) -> None:
    visit(page, lab)
    assert page.evaluate("getComputedStyle(document.querySelector('.jump')).display") == "none"
    open_drawer(page)
    page.get_by_role("button", name="Largest", exact=True).click()
    until(page, "getComputedStyle(document.documentElement).fontSize === '25.6px'")
    until(page, "getComputedStyle(document.querySelector('.jump')).display === 'flex'")
    assert page.evaluate(OPEN), "one can go on choosing"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.get_by_role("button", name="Dark", exact=True).click()
    until(page, "document.documentElement.dataset.theme === 'dark'")
    page.locator("#drawer").get_by_role("button", name="中文").click()
    until(page, "document.documentElement.lang === 'zh-CN'")
    assert page.evaluate("document.documentElement.dataset.size") == "largest"


def test_without_javascript_it_opens_and_its_forms_work(chromium: Browser, base: Web) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    session = base.session()
    page.goto(f"{base.address}/s/{session.id}")
    page.locator("#drawer > summary").click()
    page.locator("#set-step_limit").fill("zero")
    follow(page, page.locator("#use-numbers"))
    assert "from 1 to" in page.locator("#set-step_limit-wrong").inner_text()
    assert page.locator("#set-step_limit").input_value() == "zero"
    page.locator("#set-step_limit").fill("11")
    follow(page, page.locator("#use-numbers"))
    page.get_by_label("07 Context at the task boundary").check()
    follow(page, page.locator("#use-extensions"))
    page.get_by_label("Stream breaks").check()
    follow(page, page.locator("#use-fault"))
    assert "Stream breaks" in page.locator("#fault-chip").inner_text()
    assert (session.state.settings["step_limit"], session.state.extensions, session.state.fault) == (11, ("07",), "cut")
    follow(page, page.get_by_role("button", name="Large", exact=True))
    assert page.locator("html").get_attribute("data-size") == "large"
    context.close()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["normal", "largest"])
def test_the_open_drawer_is_clean_at_every_size(
    chromium: Browser, axe: Axe, lab: Web, language: str, theme: str, size: str
) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    chosen = {"language": language, "theme": theme, "size": size}
    context.add_cookies([{"name": f"context-lab-{k}", "value": v, "url": lab.address} for k, v in chosen.items()])
    page = context.new_page()
    session = visit(page, lab, "?drawer=1")
    page.locator("#set-budget").fill("x")
    page.locator("#use-numbers").click()
    until(page, "document.querySelector('#set-budget-wrong')")
    choose(page, "rate_limit")
    for width in (1280, 1000, 640, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert axe(page) == [], f"{width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{width} px"
        box = page.locator(".sheet").bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width + 1
        assert width > 320 or box["width"] >= 320 - 2 * 0.8 * (16 if size == "normal" else 25.6) - 1
    small = page.locator(".sheet :is(button, input:not([type=hidden]), a)").evaluate_all(
        "all => all.map(each => (each.closest('label') ?? each).getBoundingClientRect())"
        ".filter(box => box.width < 24 || box.height < 24).length"
    )
    assert small == 0 and session.state.fault == "rate_limit"
    context.close()
