"""A student at lab 05: trusts the folder, sees an early "done" caught, an honest end, and nothing weakened."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from harness import events as e
from harness.session import Session
from tests.browser_support import until
from tests.checks_support import project
from tests.harness_support import events, offline
from tests.test_browser_lab08 import ALIVE, check_looks, kinds, play, proved, rows, visit
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
SAYS = {
    "en": {"trust": "Trust this folder", "check": "Check 1", "failed": "failed with exit code 1", "passed": "passed",
           "who": "extension verify", "verified": "Verified: its check passed.",
           "not": "Not verified: sent back 3 times, and check 4 failed too.", "changed": "says something else by now",
           "back": "goes back to the agent"},
    "zh": {"trust": "信任这个文件夹", "check": "第 1 次检查", "failed": "没通过，退出码 1", "passed": "通过",
           "who": "扩展 verify", "verified": "已验证：检查通过。",
           "not": "未验证：退回了 3 次，第 4 次检查也没通过。", "changed": "现在已经不同了", "back": "退回给 Agent"},
}  # fmt: skip


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with offline() as model, serving(tmp_path_factory.mktemp("lab"), lab="05", model=model, offline_assets=True) as lab:
        yield lab


def trust(page: Page, language: str) -> None:
    """Say yes to the question, which shows the command."""
    card = page.locator("#trust")
    assert "python3 -m unittest -q -f" in card.inner_text()
    card.get_by_role("button", name=SAYS[language]["trust"]).click()
    until(page, f"{ALIVE} && document.querySelector('#trust').hidden")


def verdicts(page: Page) -> list[str]:
    return page.locator("[data-verdict]").evaluate_all("all => all.map(one => one.dataset.verdict)")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_samples_show_what_they_promise(page: Page, web: Web, axe: Axe, language: str) -> None:
    says = SAYS[language]
    visit(page, web, language)
    trust(page, language)
    play(page, 1)
    order = kinds(page)
    assert order.count("Verified") == 2 and order.count("TaskStarted") == 1 and "CheckStarted" not in order
    assert order.index("Verified") + 1 == order.index("FollowUpAdded")
    first, second = rows(page, "Verified").all()
    assert all(word in first.inner_text() for word in (says["check"], says["failed"], says["back"]))
    assert says["passed"] in second.inner_text() and says["back"] not in second.inner_text()
    first.locator("summary").click()
    assert "test_group_of_ten" in first.locator("pre").inner_text()
    first.locator("summary").click()
    sent = rows(page, "FollowUpAdded")
    assert says["who"] in sent.inner_text() and "check_output" in sent.inner_text()
    end = rows(page, "TaskEnded").last
    assert says["verified"] in end.inner_text() and says["verified"] in page.locator("#status").inner_text()
    proved(page, "back", "passed")
    play(page, 2)
    assert kinds(page).count("FollowUpAdded") == 1 and verdicts(page) == ["passed", "passed"]
    play(page, 3)
    assert kinds(page).count("FollowUpAdded") == 4 and verdicts(page) == ["passed", "passed", "failed"]
    assert says["not"] in rows(page, "TaskEnded").last.inner_text()
    assert says["not"] in page.locator("#status").inner_text()
    proved(page, "given_up")
    check_looks(page, axe, ("?view=model",) if language == "zh" else ("", "?tab=turns"))
    page.goto(page.url.split("?")[0] + "?view=model")
    assert "Verified" not in kinds(page) and kinds(page).count("FollowUpAdded") == 4


def test_a_check_that_is_weakened_in_a_task_counts_only_once_it_is_accepted_in_its_turn(page: Page, web: Web) -> None:
    session = visit(page, web)
    trust(page, "en")
    play(page, 4)
    for row in rows(page, "Verified").all():
        assert SAYS["en"]["changed"] in row.inner_text() and "unittest" in row.inner_text()
    before = rows(page, "Verified").count()
    play(page, 2)
    card = page.locator("#trust")
    assert card.is_visible() and "30 s: true" in card.inner_text(), "the weakened check is asked about"
    assert rows(page, "Verified").count() == before, "and it does not count until then"
    assert verdicts(page) == ["passed", "untrusted"]
    assert "It has changed since you accepted it, in this session's copy." in card.inner_text()
    page.locator("#panel").get_by_role("link", name="Answer the question about it").click()
    until(page, "location.hash === '#trust'")
    assert card.evaluate("card => card.getBoundingClientRect().bottom <= innerHeight && card.checkVisibility()")
    card.get_by_role("button", name="Accept them as they are now").click()
    until(page, f"{ALIVE} && document.querySelector('#trust').hidden")
    play(page, 2)
    last = rows(page, "Verified").last
    assert SAYS["en"]["changed"] not in last.inner_text() and last.locator("code").inner_text() == "true"
    assert rows(page, "InstructionsSet").last.locator("li").last.inner_text()
    assert events(session, e.Verified)[-1].command == "true"


def test_a_task_that_is_stopped_while_it_asks_is_not_checked(page: Page, web: Web) -> None:
    session = visit(page, web)
    trust(page, "en")
    page.locator('[data-sample="1"]').click()
    until(page, "!!document.querySelector('form[data-approval]')")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.locator('[data-event="TaskEnded"]').wait_for()
    end = rows(page, "TaskEnded").last.inner_text()
    assert "stopped by you" in end and "erified" not in end and not events(session, e.CheckStarted)
    proved(page, "stopped")


def test_without_trust_nothing_is_checked_and_the_page_says_why(page: Page, web: Web) -> None:
    session = visit(page, web)
    page.locator("#trust").get_by_role("button", name="Not now").click()
    until(page, f"{ALIVE} && document.querySelector('#trust').hidden")
    play(page, 2)
    assert not events(session, e.CheckStarted) and verdicts(page) == ["untrusted"]
    assert "not accepted when the task began" in page.locator("#status").inner_text()
    assert page.locator('[data-problem="untrusted"]').count()


def test_a_check_that_runs_is_seen_and_stop_ends_it(
    page: Page, tmp_path_factory: pytest.TempPathFactory, axe: Axe
) -> None:
    source = project(tmp_path_factory.mktemp("slow") / "project", "echo '<b>begun</b>'; sleep 250", 300)
    data = tmp_path_factory.mktemp("lab")
    with offline() as model, serving(data, lab="05", model=model, offline_assets=True, source=source) as web:
        session: Session = visit(page, web)
        page.locator("#trust").get_by_role("button", name="Trust this folder").click()
        until(page, f"{ALIVE} && document.querySelector('#trust').hidden")
        page.locator("textarea[name=text]").fill("Hello.")
        page.keyboard.press("Enter")
        row = page.locator('[data-event="CheckStarted"]')
        row.wait_for()
        assert "for at most 300 seconds" in row.inner_text()
        assert page.locator("#status").inner_text().startswith("The check of the task runs.")
        assert axe(page) == []
        page.get_by_role("button", name="Stop", exact=True).click()
        page.locator('[data-event="TaskEnded"]').wait_for()
        assert rows(page, "CheckStarted").count() == 0, "it has become the row of its end"
        assert "stopped by you" in rows(page, "Verified").inner_text() and verdicts(page) == ["stopped"]
        assert [each.outcome for each in events(session, e.Verified)] == ["stopped"]
        page.reload()
        assert "stopped by you" in rows(page, "Verified").inner_text()
        assert "its check was stopped" in page.locator("#status").inner_text()
