"""A student at the page of the real command: samples, compaction, reload, approval, Stop, both languages."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page

from harness import events as e
from harness.journal import Journal, Recorded
from harness.replay import fold
from tests.browser_support import follow, until
from tests.harness_support import ROOT, assert_digests

Start = Callable[..., str]
Axe = Callable[[Page], list[str]]


class Command:
    """The real command as a child; `address` is where it says that the page is."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.database = f"sqlite:///{folder / 'journal.db'}"
        keys = ("DEEPSEEK_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "DEEPSEEK_BASE_URL")
        environment = {name: value for name, value in os.environ.items() if name not in keys}
        command = [sys.executable, str(ROOT / "server.py"), "--port", "0", "--database", self.database]
        self.process = subprocess.Popen(
            [*command, "--offline-assets", "--lang", "en", *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=folder,
        )  # fmt: skip
        self.said: list[str] = []
        self.address = self._address()

    def _address(self) -> str:
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S*", line):
                return found.group()
        raise AssertionError("".join(self.said))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the server and wait until it is gone."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(20)
        journal = Journal(self.database)
        for session, _ in journal.read_kind("SessionStarted"):
            assert_digests(journal.read(session))
        journal.close()
        if self.process.stdout:
            self.process.stdout.close()

    def records(self, page: Page) -> list[Recorded]:
        """Return the journal of the session that the page shows, read beside the server."""
        journal = Journal(self.database)
        try:
            return journal.read(page.url.split("/s/")[1].split("?")[0])
        finally:
            journal.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Start the command with options; it is ended with the test."""
    with contextlib.ExitStack() as stack:

        def begin(*options: str) -> Command:
            command = Command(tmp_path, *options)
            stack.callback(command.stop)
            return command

        yield begin


def click_sample(page: Page, number: int) -> None:
    """Click a sample; returns when the task has started."""
    tasks = page.locator('[data-event="TaskStarted"]').count()
    page.locator(f'[data-sample="{number}"]').click()
    until(page, f"document.querySelectorAll('[data-event=\"TaskStarted\"]').length > {tasks}")


def wait_state(page: Page, state: str) -> None:
    until(page, f"document.body.dataset.state === '{state}'", 30)


def play(page: Page, *numbers: int) -> None:
    """Run samples to their end, one after another."""
    for number in numbers:
        ended = page.locator('[data-event="TaskEnded"]').count()
        click_sample(page, number)
        until(page, f"document.querySelectorAll('[data-event=\"TaskEnded\"]').length > {ended}", 30)
        wait_state(page, "idle")


def figure(page: Page, name: str, within: str = "body") -> int:
    text = page.locator(f'{within} [data-figure="{name}"]').first.inner_text()
    return int(text.replace(",", ""))


def one(records: list[Recorded], kind: type) -> e.Event:
    found = [recorded.event for recorded in records if isinstance(recorded.event, kind)]
    assert len(found) == 1
    return found[0]


def assert_figures(page: Page, records: list[Recorded]) -> None:
    """Every figure of the page is the journal's."""
    state = fold((recorded.seq, recorded.event) for recorded in records)
    event, row = one(records, e.ContextCompacted), '[data-event="ContextCompacted"]'
    assert isinstance(event, e.ContextCompacted)
    expected = {
        "cut.measured": event.measured, "cut.measured_after": event.measured_after, "cut.budget": event.budget,
        "cut.before.chars": event.before.chars, "cut.after.chars": event.after.chars,
        "cut.before.tokens.estimated": event.before.tokens, "cut.after.tokens.estimated": event.after.tokens,
        "cut.removed": len(event.removed), "cut.kept": len(event.kept),
        "cut.prompt.reported": event.usage.prompt, "cut.completion.reported": event.usage.completion,
    }  # fmt: skip
    assert {name: figure(page, name, row) for name in expected} == expected
    assert figure(page, "compactions") == 1
    assert figure(page, "context.chars") == state.context.total.chars == figure(page, "context.chars", "#panel")
    assert figure(page, "context.tokens.estimated") == state.context.total.tokens
    for part, size in state.context.totals.items():
        assert figure(page, f"part.{part}.chars") == size.chars
        assert figure(page, f"part.{part}.tokens") == size.tokens


def test_two_samples_compact_and_every_figure_is_the_journals(
    page: Page, start: Callable[..., Command], axe: Axe
) -> None:
    lab = start("--lab", "07")
    page.goto(lab.address)
    assert axe(page) == [], "empty"
    play(page, 1)
    assert page.locator('[data-event="ContextCompacted"]').count() == 0
    play(page, 2)
    row = page.locator('[data-event="ContextCompacted"]')
    assert row.count() == 1
    until(page, "document.querySelectorAll('[data-figure=\"compactions\"]')[0].innerText === '1'")
    records = lab.records(page)
    event = one(records, e.ContextCompacted)
    assert isinstance(event, e.ContextCompacted)
    shown = "document.querySelector('#panel [data-figure=\"context.chars\"]').dataset.value"
    until(page, f"{shown} === '{event.after.chars}'")
    assert_figures(page, records)
    for line in filter(None, event.summary.splitlines()):
        assert line.lstrip("#- ").replace("`", "") in row.inner_text().replace("`", "")
    assert row.locator("[data-original]").count() == len(event.removed)
    assert page.locator("#cut-line").count() == 1
    assert axe(page) == [], "compacted"
    reloaded = page.content().count('data-event="')
    page.reload()
    assert page.content().count('data-event="') == reloaded
    assert_figures(page, records)


def test_the_model_view_is_what_the_next_request_carries(page: Page, start: Callable[..., Command], axe: Axe) -> None:
    lab = start("--lab", "07")
    page.goto(lab.address)
    play(page, 1, 2)
    page.goto(page.url.split("?")[0] + "?view=model&tab=turns")
    assert page.locator("body").get_attribute("data-view") == "model"
    text = page.locator("body").inner_text()
    state = fold((recorded.seq, recorded.event) for recorded in lab.records(page))
    for entry in state.context.entries:
        assert entry.wire["content"].split("\n")[-1].lstrip("#- ").replace("`", "")[:60] in text.replace("`", "")
    assert "tg-5c91" not in page.locator("main").inner_text(), "a detail that was cut is not in the model's view"
    assert axe(page) == []
    assert page.locator("svg").count() >= 2
    rows = page.locator("table tbody tr")
    assert rows.count() >= len([call for call in state.calls])


def test_a_reload_in_the_middle_of_a_stream_loses_nothing(page: Page, start: Callable[..., Command]) -> None:
    lab = start("--lab", "07")
    page.goto(lab.address)
    click_sample(page, 1)
    until(page, "document.body.innerText.includes('07:48')")
    page.reload()
    assert page.locator("body").get_attribute("data-state") == "running", "it was reloaded in the middle"
    wait_state(page, "idle")
    records = lab.records(page)
    shown = page.locator("[data-seq]").evaluate_all("rows => rows.map(row => Number(row.dataset.seq))")
    assert shown == sorted(set(shown)), "nothing twice, nothing out of order"
    answer = [recorded.event for recorded in records if isinstance(recorded.event, e.ModelCallEnded)][-1]
    rendered = page.locator('[data-event="ModelCallEnded"]').last.inner_text()
    for line in filter(None, answer.text.splitlines()):
        assert line.lstrip("#- ").replace("`", "") in rendered.replace("`", "")
    live = page.locator("[data-event]").evaluate_all("rows => rows.map(row => row.dataset.event + row.id)")
    page.reload()
    assert page.locator("[data-event]").evaluate_all("rows => rows.map(row => row.dataset.event + row.id)") == live


def test_a_denied_approval_runs_nothing(page: Page, start: Callable[..., Command], axe: Axe) -> None:
    lab = start("--lab", "01")
    page.goto(lab.address)
    click_sample(page, 2)
    wait_state(page, "waiting")
    assert "python3 -m unittest" in page.locator('[data-event="ApprovalRequested"]').inner_text()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert axe(page) == [], f"waiting, {theme}"
    page.get_by_role("button", name="Deny", exact=True).click()
    wait_state(page, "idle")
    kinds = [type(recorded.event) for recorded in lab.records(page)]
    assert e.ToolStarted not in kinds
    answered = one(lab.records(page), e.ApprovalAnswered)
    assert isinstance(answered, e.ApprovalAnswered) and not answered.allowed


def test_allowed_calls_fix_and_prove(page: Page, start: Callable[..., Command]) -> None:
    lab = start("--lab", "01")
    page.goto(lab.address)
    click_sample(page, 2)
    for _ in range(3):
        wait_state(page, "waiting")
        page.get_by_role("button", name="Allow", exact=True).click()
        until(page, "document.body.dataset.state !== 'waiting'")
    wait_state(page, "idle")
    results = [recorded.event for recorded in lab.records(page) if isinstance(recorded.event, e.ToolEnded)]
    assert results[-1].name == "bash" and "OK" in results[-1].text
    assert "grams <= limit" in page.locator("main").inner_text()


def test_stop_ends_a_running_command_and_no_process_is_left(
    page: Page, start: Callable[..., Command], tmp_path: Path, axe: Axe
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "test_slow.py").write_text("import time, unittest\ntime.sleep(99)\n")
    lab = start("--lab", "01", "--workspace", str(own))
    children = psutil.Process(lab.process.pid).children(recursive=True)
    page.goto(lab.address)
    click_sample(page, 3)
    wait_state(page, "waiting")
    page.get_by_role("button", name="Allow", exact=True).click()
    wait_state(page, "running")
    running = lambda: psutil.Process(lab.process.pid).children(recursive=True)  # noqa: E731
    end = time.monotonic() + 15
    while len(running()) <= len(children) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(running()) > len(children)
    assert axe(page) == [], "running"
    page.get_by_role("button", name="Stop", exact=True).click()
    wait_state(page, "idle")
    assert running() == children
    ended = one(lab.records(page), e.TaskEnded)
    assert isinstance(ended, e.TaskEnded) and ended.reason == "stopped"
    assert list(own.iterdir()) == [own / "test_slow.py"], "the user's folder stays as it is"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_the_session_is_there_after_the_server_ended(
    page: Page, start: Callable[..., Command], how: signal.Signals
) -> None:
    first = start("--lab", "07")
    page.goto(first.address)
    play(page, 1, 2)
    rows = page.locator("[data-event]").evaluate_all("rows => rows.map(row => row.id)")
    before = fold((each.seq, each.event) for each in first.records(page)).request().body()
    path = page.url.split("/s/")[1]
    first.stop(how)
    again = start("--lab", "07")
    page.goto(again.address)
    assert page.url.split("/s/")[1] == path, "the newest session opens"
    assert page.locator("[data-event]").evaluate_all("rows => rows.map(row => row.id)") == rows
    assert fold((each.seq, each.event) for each in again.records(page)).request().body() == before
    play(page, 3)
    assert page.locator('[data-event="TaskEnded"]').count() == 3


def test_two_tabs_and_two_sessions(page: Page, start: Callable[..., Command]) -> None:
    lab = start("--lab", "07")
    page.goto(lab.address)
    other = page.context.new_page()
    other.goto(page.url)
    click_sample(page, 1)
    wait_state(other, "running")
    wait_state(page, "idle")
    wait_state(other, "idle")
    ids = "[...document.querySelectorAll('[data-event]')].map(row => row.id).join()"
    # The state may come before the last rows.
    for each in (page, other):
        until(each, "document.querySelector('[data-event=\"TaskEnded\"]')")
    assert other.evaluate(ids) == page.evaluate(ids)
    other.get_by_role("button", name="New session").click()
    until(other, "document.querySelectorAll('[data-event=\"TaskStarted\"]').length === 0")
    assert other.url != page.url
    play(other, 1)
    assert page.locator('[data-event="TaskStarted"]').count() == 1
    other.close()


def test_the_budget_is_tried_before_it_is_used(page: Page, start: Callable[..., Command]) -> None:
    lab = start("--lab", "07", "--budget", "9000")
    page.goto(lab.address)
    play(page, 1)
    state = fold((each.seq, each.event) for each in lab.records(page))
    measured = sum(entry.size.chars for entry in state.context.entries)
    slider = page.locator('input[type="range"]')
    slider.fill("1000")
    until(page, "document.querySelector('[data-figure=\"dry.messages\"]')")
    assert figure(page, "dry.messages") == len(state.context.entries)
    assert figure(page, "dry.chars") == measured
    assert not any(isinstance(each.event, e.SettingChanged) for each in lab.records(page)), "nothing happened yet"
    page.get_by_role("button", name="Use it").click()
    until(page, "document.querySelector('[data-figure=\"budget\"]').innerText === '1,000'")
    changed = one(lab.records(page), e.SettingChanged)
    assert changed == e.SettingChanged(name="budget", value=1000)
    play(page, 2)
    assert page.locator('[data-event="ContextCompacted"]').count() == 1


SAYS = {"en": "Context compacted", "zh": "上下文已整理"}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_languages_and_themes_are_whole_and_clean(
    chromium: Browser, start: Callable[..., Command], axe: Axe, language: str, theme: str
) -> None:
    lab = start("--lab", "07", "--lang", language)
    context = chromium.new_context(color_scheme=theme, viewport={"width": 1400, "height": 900})  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(lab.address)
    assert axe(page) == [], "empty"
    click_sample(page, 1)
    assert axe(page) == [], "running"
    wait_state(page, "idle")
    play(page, 2)
    assert SAYS[language] in page.locator('[data-event="ContextCompacted"]').inner_text()
    assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]
    assert axe(page) == [], "compacted"
    page.set_viewport_size({"width": 320, "height": 700})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 320, "nothing sticks out at 320 px"
    assert axe(page) == [], "at 320 px"
    context.close()


def test_a_finished_session_can_be_read_without_javascript(
    chromium: Browser, page: Page, start: Callable[..., Command]
) -> None:
    lab = start("--lab", "07")
    page.goto(lab.address)
    play(page, 1, 2)
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(page.url)
    assert plain.locator('[data-event="ContextCompacted"]').count() == 1
    assert figure(plain, "compactions") == 1
    follow(plain, plain.get_by_role("link", name="Over turns"))
    plain.locator("#panel svg").nth(1).wait_for(state="attached")
    follow(plain, plain.locator('[data-sample="3"]'))
    end = time.monotonic() + 20
    while plain.locator('[data-event="TaskEnded"]').count() < 3 and time.monotonic() < end:
        time.sleep(0.3)
        plain.reload()
    assert plain.locator('[data-event="TaskEnded"]').count() == 3
    context.close()


def test_what_a_workspace_says_is_text(page: Page, start: Callable[..., Command], tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    hostile = '<img src=x onerror="window.hacked=1"> confirmed <script>window.hacked=1</script>\n'
    hostile += (
        '<div hx-post="/sessions" hx-trigger="load">confirmed</div> [a](javascript:hacked=1) ![i](http://a.example/x)\n'
    )
    (own / "notes.md").write_text(f"- 07:00 Confirmed: {hostile}- 07:01 Confirmed: {json.dumps(hostile)}\n")
    lab = start("--lab", "07", "--workspace", str(own))
    page.goto(lab.address)
    page.get_by_role("textbox").fill("Read notes.md and sort it: what is confirmed?")
    page.get_by_role("button", name="Send").click()
    until(page, "document.querySelectorAll('[data-event=\"TaskEnded\"]').length === 1", 30)
    page.reload()
    assert page.evaluate("window.hacked") is None
    assert page.locator('main img, main script, [href^="javascript"], [hx-trigger="load"][hx-post]').count() == 0
    assert "onerror" in page.locator("main").inner_text()
