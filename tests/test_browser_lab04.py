"""A student at lab 04: sub-agents at work in their calls' rows, their own pages, and a question asked from inside."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from harness.session import Session
from tests.browser_support import until
from tests.harness_support import ROOT, Recorder, offline
from tests.test_browser_lab07 import figure
from tests.test_browser_lab08 import ALIVE, check_looks, play, proved, rows, settled, visit
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
SAYS = {
    "en": {
        "inside": "What Sub-agent 1 did",
        "own": "Its own context",
        "stays": "None of this",
        "waits": "waits for you",
    },
    "zh": {"inside": "子 Agent 1 做了什么", "own": "看它自己的上下文", "stays": "都不在", "waits": "在等你"},
}
WORKING = "[...document.querySelectorAll('.child-head[data-looks=running]')]"
IDS = "(all => all.length === new Set(all).size)([...document.querySelectorAll('[id]')].map(each => each.id))"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with offline(delay=0.01) as model:
        with serving(tmp_path_factory.mktemp("lab"), lab="04", model=model, offline_assets=True) as lab:
            yield lab


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_samples_show_what_they_promise(page: Page, web: Web, axe: Axe, language: str) -> None:
    session = visit(page, web, language)
    play(page, 1)
    cards = rows(page, "ToolEnded")
    assert cards.count() == 5 and page.evaluate(IDS)
    first = cards.first
    assert first.locator("details.inside").get_attribute("open") is None, "folded, once it has answered"
    assert first.locator("ol > li").count() == 1, "its rows come when somebody asks"
    assert SAYS[language]["inside"] in first.inner_text()
    assert "alder" in first.locator(".given").inner_text()
    settled(page, session)
    panel = page.locator("#panel")
    spent = {name: [figure(page, f"spent.{name}.{what}", "#children") for what in ("calls", "chars")]
             for name in ("own", "inside", "all")}  # fmt: skip
    assert spent["own"][0] == 2 and spent["inside"][0] == 10
    assert spent["all"] == [spent["own"][n] + spent["inside"][n] for n in range(2)]
    small = figure(page, "context.chars", "#panel")
    play(page, 2)
    assert "11:05" in rows(page, "ModelCallEnded").last.inner_text()
    assert "26" not in rows(page, "ModelCallEnded").last.inner_text()
    play(page, 3)
    settled(page, session)
    assert figure(page, "context.chars", "#panel") > 2 * small
    play(page, 4)
    proved(page, "handed", "side", "allowed")
    settled(page, session)
    assert page.evaluate(IDS)
    check_looks(page, axe, ("?view=model", ""))
    assert panel.count()
    unfold(page, 1)
    assert SAYS[language]["stays"] in first.inner_text()
    kinds = first.locator("ol > li").evaluate_all("rows => rows.map(row => row.dataset.event)")
    assert kinds == ["InstructionsSet", "TaskStarted", "ModelCallEnded", "ToolEnded", "ModelCallEnded", "TaskEnded"]
    assert page.evaluate(IDS) and axe(page) == []


def unfold(page: Page, child: int) -> None:
    """By key, open what a sub-agent did that has ended; its rows come, and the focus stays where it was."""
    summary = page.locator("details.inside", has=page.locator(f"#child-{child}-feed")).locator("> summary")
    until(page, ALIVE)
    summary.focus()
    page.keyboard.press("Enter")
    until(page, f"document.querySelectorAll('#child-{child}-feed > li').length > 1")
    assert summary.evaluate("summary => summary === document.activeElement")


def test_what_a_sub_agent_does_comes_live_and_its_question_is_answered_from_its_row(page: Page, web: Web) -> None:
    session = visit(page, web)
    page.locator('[data-sample="4"]').click()
    until(page, f"{ALIVE} && document.querySelector('#child-1-feed form[data-approval]')", 30)
    card = page.locator("#feed > li", has=page.locator("#child-1-feed"))
    assert card.locator("details.inside").get_attribute("open") is not None, "a question is in sight"
    assert SAYS["en"]["waits"] in page.locator("#child-1-head").inner_text()
    assert page.evaluate("document.body.dataset.state") == "waiting"
    form = page.locator("#child-1-feed form[data-approval]")
    assert form.get_attribute("action") == f"/s/{session.id}/children/1/approvals"
    waits = page.locator("#status").inner_text()
    form.locator('[value="deny"]').click()
    until(page, "document.body.dataset.state === 'idle'", 30)
    assert not page.locator("form[data-approval]").count()
    assert "Sub-agent 1" in waits and "bash" in waits
    assert card.evaluate("card => card === document.activeElement"), "where the answer was is folded: its call has it"
    assert page.locator("#child-1-feed").get_attribute("tabindex") is None
    unfold(page, 1)
    assert "You did not allow it" in card.text_content() or "denied" in card.text_content().lower()
    assert session.state.children[1].state.tasks[0].ended == "answered"


def test_with_slow_replies_stop_finds_the_sub_agents_at_work(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data, scripts = tmp_path_factory.mktemp("stop"), sorted((ROOT / "labs").glob("*/offline.toml"))
    with Recorder(scripts, delay=0, slow=3.0) as model:
        with serving(data, lab="04", model=model, language="en", offline_assets=True) as web:
            session = visit(page, web)
            page.locator("#drawer > summary").click()
            page.get_by_label("Replies are slow").check()
            page.get_by_role("button", name="Use this", exact=True).click()
            page.locator('[data-event="FaultChosen"]').wait_for()
            page.locator("#drawer > summary").click()
            page.locator('[data-sample="1"]').click()
            until(page, f"({WORKING}).length === 4", 30)
            page.get_by_role("button", name="Stop", exact=True).click()
            until(page, "document.body.dataset.state === 'idle'", 30)
            # Each call has its result.
            until(page, "document.querySelectorAll('#feed > [data-event=ToolEnded]').length === 5", 30)
            assert {child.state.tasks[0].ended for child in session.state.children.values()} == {"stopped"}
            proved(page, "stopped")


def test_several_are_watched_at_once_and_what_a_person_opens_stays_open(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = tmp_path_factory.mktemp("slow")
    with offline(delay=0.15) as model, serving(data, lab="04", model=model, offline_assets=True) as web:
        page.set_viewport_size({"width": 1360, "height": 850})
        visit(page, web)
        page.locator('[data-sample="1"]').click()
        until(page, f"({WORKING}).length === 4", 30)
        tall = page.evaluate(f"({WORKING}).map(one => one.closest('.child').offsetHeight)")
        # The head of the page and the box for a task take about 350 pixels of the 850.
        assert sum(tall) < 500, tall
        assert not page.locator("details.inside[open]").count()
        until(page, f"({WORKING}).some(one => /Call [0-9]+: the model is answering|runs/.test(one.innerText))")
        number = page.evaluate(f"Number(({WORKING}).at(-1).dataset.child)")
        fold = page.locator("details.inside", has=page.locator(f"#child-{number}-feed"))
        fold.locator("> summary").focus()
        page.keyboard.press("Enter")
        before = page.locator(f"#child-{number}-feed > li").count()
        until(page, f"document.querySelector('#child-{number}-head').dataset.looks === 'answered'", 60)
        until(page, f"document.querySelectorAll('#child-{number}-feed > li').length > {before}")
        assert page.locator("details.inside[open]").count() == 1, "also once its row is that of its answer"
        fold.locator("> summary").click()
        until(page, "document.body.dataset.state === 'idle'", 60)
        assert not page.locator("details.inside[open]").count(), "and what is folded again stays folded"


def test_from_a_sample_it_is_few_keys_to_the_question_of_a_sub_agent(page: Page, web: Web) -> None:
    session = visit(page, web)
    page.locator('[data-sample="4"]').focus()
    page.keyboard.press("Enter")
    until(page, f"{ALIVE} && document.querySelector('.to-question')", 30)
    assert page.evaluate("document.activeElement.dataset.sample") == "4"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.checkVisibility() && document.activeElement.offsetHeight > 15")
    page.keyboard.press("Enter")
    until(page, "location.hash.startsWith('#child-1-tool-call')")
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "allow":
            break
    assert page.evaluate("document.activeElement.closest('form').dataset.approval !== undefined")
    page.keyboard.press("d")
    until(page, "document.body.dataset.state === 'idle'", 30)
    assert not page.locator(".to-question").count() and session.state.children[1].state.tasks[0].ended == "answered"


def test_its_own_page_shows_its_own_context(page: Page, web: Web, axe: Axe) -> None:
    session = visit(page, web)
    play(page, 1)
    page.get_by_role("link", name=SAYS["en"]["own"]).first.click()
    until(page, "document.body.dataset.child === '1'")
    assert page.url.rstrip("?").endswith(f"/s/{session.id}/children/1")
    assert "held at the end" in page.locator("#panel").inner_text() and "Show it as it is now" not in page.content()
    own = session.state.children[1].state.context.total.chars
    assert figure(page, "context.chars", "#panel") == own
    assert "08:25" in page.locator("#feed").inner_text()
    for tab in ("turns", "diff", "lost", "now"):
        page.goto(re.sub(r"\?.*", "", page.url) + f"?tab={tab}&view=model")
        assert page.locator("#panel").is_visible() and axe(page) == []
        for width in (1280, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="Back to the call that it works for").click()
    until(page, f"{ALIVE} && location.hash.startsWith('#tool-call-')")
    assert "hx-get" not in web.ask(f"/s/{session.id}/children/1/rows").text, "without htmx, its page"
    missing = web.ask(f"/s/{session.id}/children/9")
    assert missing.status == 404 and "no sub-agent" in missing.text
    call = web.ask(f"/s/{session.id}/children/2/calls/1")
    assert call.status == 200 and b"birch.md" in call.body and b"alder.md" not in call.body
    assert web.ask(f"/s/{session.id}/children/2/calls/9").status == 404


def test_stop_ends_every_sub_agent(page: Page, web: Web) -> None:
    session = visit(page, web)
    page.locator('[data-sample="1"]').click()
    until(page, "document.querySelectorAll('.child-head').length > 1", 30)
    page.get_by_role("button", name="Stop").click()
    until(page, "document.body.dataset.state === 'idle'", 30)
    until(page, "!document.querySelector('#feed .live')")
    looks = page.locator(".child-head").evaluate_all("all => all.map(one => one.dataset.looks)")
    assert looks and set(looks) <= {"stopped", "answered"}
    assert not session.state.unanswered
    proved(page, "stopped")
    check_alike(page, session)


def check_alike(page: Page, session: Session) -> None:
    """What came live is what a reload shows."""
    live = page.evaluate("document.querySelector('#feed').innerText")
    page.reload()
    until(page, ALIVE)
    assert page.evaluate("document.querySelector('#feed').innerText") == live and session.status == "idle"


def test_at_a_moment_of_the_past_its_sub_agents_are_as_they_were(page: Page, web: Web) -> None:
    session = visit(page, web)
    play(page, 1)
    at = session.state.children[2].seqs[3]
    page.goto(f"{web.address}/s/{session.id}?at={at}")
    assert page.locator("#child-2-head").get_attribute("data-looks") == "running"
    assert not page.locator("#child-5-head").count()
    page.locator("#child-2-head a").click()
    until(page, "document.body.dataset.child === '2'")
    assert page.evaluate("document.body.dataset.moment") == str(at)
    assert page.locator("#feed > li").count() == 4 - 1, "the call and its end share a row"
