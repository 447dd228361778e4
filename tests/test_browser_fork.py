"""A person forks a session: after a task, from its start, from a past moment, by key, and without JavaScript."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import events as e
from harness.session import Session
from tests.browser_support import until
from tests.harness_support import events, offline, run, run_sample
from tests.web_support import MINE, Web, serving

Axe = Callable[[Page], list[str]]
HERE = {"en": "Fork from here, the end of task {task}", "zh": "从这里分叉：任务 {task} 结束时"}
START = {"en": "Fork from the start, before task 1", "zh": "从头分叉：任务 1 开始前"}
ROW = '[data-event="SessionForked"]'
CONNECTED = "!!document.querySelector('#stream')?._htmx?.sse"


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Web]:
    with offline() as model, serving(tmp_path, lab="01", model=model, offline_assets=True) as web:
        yield web


@pytest.fixture
def finished(base: Web) -> Session:
    """A session of two tasks, whose first one edits a file."""
    session = base.session()
    base.run(run_sample(session, 2), 60)
    base.run(run(session, "Explain this project."))
    return session


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def forked(page: Page, web: Web, parent: Session) -> Session:
    """Wait until the page shows a fork of `parent`, and return it."""
    page.wait_for_url(lambda address: "/s/" in address and parent.id not in address)
    page.locator(ROW).wait_for()
    return web.run(web.library.open(page.url.split("/s/")[1].split("?")[0]))


def test_after_a_task_and_from_the_start(page: Page, base: Web, finished: Session, axe: Axe) -> None:
    before = list(finished.records)
    page.goto(f"{base.address}/s/{finished.id}")
    until(page, CONNECTED)
    button(page, HERE["en"].format(task=1))
    after = forked(page, base, finished)
    assert page.locator('[data-event="TaskEnded"]').count() == 1
    assert "Forked from another session, at the end of its task 1." in page.locator(ROW).inner_text()
    assert "grams <= limit" in (after.workspace.root / "postage.py").read_text()
    assert axe(page) == []
    page.locator(f"{ROW} a").click()
    page.wait_for_url(f"**/s/{finished.id}?at=*")
    ended = page.locator('[data-event="TaskEnded"]')
    assert ended.count() == 1 and page.url.endswith(f"#{ended.get_attribute('id')}"), "that session, at that task"
    page.goto(f"{base.address}/s/{after.id}")
    until(page, CONNECTED)
    page.locator("#ask").fill("Explain this project.")
    page.get_by_role("button", name="Send", exact=True).click()
    until(page, "document.querySelectorAll('[data-event=TaskEnded]').length === 2", 30)
    button(page, START["en"])
    page.wait_for_url(lambda address: after.id not in address)
    first = forked(page, base, after)
    assert "before its first task" in page.locator(ROW).last.inner_text()
    assert "grams <= limit" not in (first.workspace.root / "postage.py").read_text()
    assert page.locator('[data-event="TaskStarted"]').count() == 0
    assert finished.records == before, "what was forked is as it was"


def test_a_task_that_ends_while_one_looks_can_be_forked_by_key(page: Page, base: Web) -> None:
    session = base.session()
    page.goto(f"{base.address}/s/{session.id}")
    until(page, CONNECTED)
    page.locator("#ask").fill("Explain this project.")
    page.get_by_role("button", name="Send", exact=True).click()
    until(page, "document.querySelectorAll('[data-event=TaskEnded]').length === 1", 30)
    one = page.get_by_role("button", name=HERE["en"].format(task=1), exact=True)
    one.focus()
    page.keyboard.press("Enter")
    made = forked(page, base, session)
    assert [task.text for task in made.state.tasks] == ["Explain this project."]


def test_a_past_moment_is_a_place_to_fork_from(page: Page, base: Web, finished: Session, axe: Axe) -> None:
    ended = next(each.seq for each in finished.records if isinstance(each.event, e.TaskEnded))
    page.goto(f"{base.address}/s/{finished.id}?at={ended}")
    assert axe(page) == []
    button(page, HERE["en"].format(task=1))
    assert len(forked(page, base, finished).state.tasks) == 1


def test_without_javascript(chromium: Browser, base: Web, finished: Session) -> None:
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(f"{base.address}/s/{finished.id}")
    button(plain, HERE["en"].format(task=2))
    assert len(forked(plain, base, finished).state.tasks) == 2
    shutil.rmtree(finished.keeper.store)
    plain.goto(f"{base.address}/s/{finished.id}")
    button(plain, START["en"])
    plain.get_by_role("alert").wait_for()
    assert "There is no copy of the workspace as it was then" in plain.get_by_role("alert").inner_text()
    context.close()


def test_what_cannot_be_forked_is_said_where_one_is(page: Page, base: Web, finished: Session) -> None:
    (finished.keeper.store / "1.json").unlink()
    page.goto(f"{base.address}/s/{finished.id}")
    until(page, CONNECTED)
    button(page, HERE["en"].format(task=1))
    until(page, "document.querySelector('#notice').innerText.includes('There is no copy of the workspace')")
    assert finished.id in page.url
    button(page, HERE["en"].format(task=2))
    forked(page, base, finished)


def test_the_server_refuses_what_is_no_end_of_a_task(base: Web, finished: Session) -> None:
    path, sessions = f"/s/{finished.id}/forks", len(list((base.library.setup.data / "sessions").iterdir()))
    for task in ("3", "-1", "x", ""):
        assert base.post(path, {"task": task}).status == 404
    assert base.post("/s/nobody/forks", {"task": "1"}).status == 404
    assert base.post(path, {"task": "1"}, {}).status == 403, "a page of ours must have sent it"

    async def start() -> None:
        finished.start_task("Run the tests.", language="en")

    base.run(start())
    answer = base.post(path, {"task": "3"}, MINE | {"Accept-Language": "en"})
    assert answer.status == 409 and "Task 3 is still running" in answer.text
    base.run(finished.stop())
    assert len(list((base.library.setup.data / "sessions").iterdir())) == sessions
    moved = base.post(path, {"task": "3"}, MINE | {"HX-Request": "true"})
    assert moved.status == 204 and moved.headers["hx-redirect"].startswith("/s/")


def test_a_parent_that_is_gone_is_a_page_that_says_so(page: Page, base: Web, finished: Session) -> None:
    page.goto(f"{base.address}/s/{finished.id}")
    button(page, HERE["en"].format(task=2))
    forked(page, base, finished)
    assert base.post(f"/s/{finished.id}/delete", {}).status == 303
    page.reload()
    page.locator(f"{ROW} a").click()
    page.get_by_role("alert").wait_for()
    assert "it may have been deleted" in page.get_by_role("alert").inner_text()


def test_the_model_view_has_no_button(page: Page, base: Web, finished: Session) -> None:
    page.goto(f"{base.address}/s/{finished.id}?view=model")
    assert page.locator(".fork").count() == 0
    page.goto(f"{base.address}/s/{finished.id}")
    assert page.locator(".fork").count() == len(events(finished, e.TaskEnded)) + 1


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_languages_and_themes_are_whole_and_clean(
    page: Page, base: Web, finished: Session, axe: Axe, language: str, theme: str
) -> None:
    page.context.add_cookies([{"name": "context-lab-language", "value": language, "url": base.address}])
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.goto(f"{base.address}/s/{finished.id}")
    button(page, HERE[language].format(task=2))
    forked(page, base, finished)
    assert axe(page) == []
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320, "nothing sticks out"
    sizes = page.locator(".fork button").evaluate_all("all => all.map(each => each.getBoundingClientRect().height)")
    assert len(sizes) == 3 and min(sizes) >= 24
    assert page.get_by_role("button", name=START[language], exact=True).is_visible()
    assert axe(page) == []
