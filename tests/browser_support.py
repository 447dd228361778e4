"""A real Chromium for tests: fixtures `chromium`, `page` and `axe`, and tabs that are really hidden.

Without Chromium a test that needs it is skipped with the reason, and fails where CI=true.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, sync_playwright

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def find_chromium() -> str:
    """Return the path of Chromium; without one the test is skipped, or fails where CI wants it to run."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if named:
        return named
    reason = "No Chromium was found; install it, or name its path in CHROMIUM."
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a file; while it is open no other test of this thread may run an event loop."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page in a context of its own. A test fails when the page raised an error or broke its own policy.

    Nothing but this machine is reached: what the page asks of another host fails, as without a network.
    """
    context = chromium.new_context(locale="en-GB", viewport={"width": 1280, "height": 800})
    context.set_default_timeout(30_000)
    context.route(lambda address: not address.startswith("http://127.0.0.1:"), lambda route: route.abort())
    context.add_init_script(
        "window.broken=[];document.addEventListener('securitypolicyviolation',"
        "e=>broken.push(e.violatedDirective+' '+e.blockedURI))"
    )
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    yield opened
    with contextlib.suppress(Error):
        faults += opened.evaluate("window.broken ?? []")
    context.close()
    assert faults == []


@pytest.fixture
def axe() -> Callable[[Page], list[str]]:
    """Return a function that checks a page and returns what axe found, one line for each kind of fault."""

    def check(opened: Page) -> list[str]:
        # The page's policy allows no foreign script; what the debugger evaluates is not bound by it.
        opened.evaluate(AXE.read_text("utf-8"))
        found = opened.evaluate("tags => axe.run({runOnly: tags})", TAGS)
        return [f"{fault['id']}: {[node['html'][:200] for node in fault['nodes']]}" for fault in found["violations"]]

    return check


def until(opened: Page, expression: str, seconds: float = 30) -> None:
    """Wait until JavaScript is true in the page; playwright's own way of waiting needs eval, which we forbid."""
    end = time.monotonic() + seconds
    fault: Error | str = ""
    while True:
        # While one page gives way to the next, there is no document to ask.
        try:
            if opened.evaluate(expression):
                return
        except Error as error:
            fault = error
        assert time.monotonic() < end, f"not true after {seconds} s: {expression} {fault}"
        opened.wait_for_timeout(20)


def follow(opened: Page, link: Locator) -> None:
    """Click what leads to another page, and wait until that page is all there.

    A click alone returns as soon as the answer begins: what is counted then may not have come yet. Where no script
    runs, each button and each link is of this kind.
    """
    with opened.expect_navigation():
        link.click()


class Tabs:
    """Chromium without playwright, which pretends that every page is in front: here a tab can be hidden."""

    def __init__(self, process: "subprocess.Popen[bytes]", write: int, read: int) -> None:
        self._process = process
        self._write, self._read = os.fdopen(write, "wb", 0), os.fdopen(read, "rb")
        self._number, self._pending = 0, b""

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call one method of the DevTools protocol."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        self._write.write(json.dumps(asked | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            while b"\0" not in self._pending:
                chunk = self._read.read1(65536)
                assert chunk, "Chromium has ended"
                self._pending += chunk
            one, self._pending = self._pending.split(b"\0", 1)
            answer = json.loads(one)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, address: str) -> tuple[str, str]:
        """Open a tab in front of the others; return its id and the session to evaluate in."""
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        self.call("Page.enable", session)
        self.call("Page.navigate", session, url=address)
        end = time.monotonic() + 20
        # While it navigates there is no page to ask.
        while True:
            with contextlib.suppress(AssertionError):
                if self.value(session, "document.readyState === 'complete' && location.href") == address:
                    return tab, session
            assert time.monotonic() < end, f"{address} did not load"
            time.sleep(0.05)

    def show(self, tab: str) -> None:
        """Bring a tab to the front; the one that was there is hidden."""
        self.call("Target.activateTarget", targetId=tab)

    def value(self, session: str, expression: str) -> Any:
        """Evaluate JavaScript in a tab."""
        answer = self.call("Runtime.evaluate", session, expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close")
        self._process.wait(15)
        self._write.close()
        self._read.close()


@pytest.fixture
def tabs() -> Iterator[Tabs]:
    """A browser whose tabs can be hidden."""
    path = find_chromium()
    if os.name != "posix":
        pytest.skip("The pipe to Chromium is made for POSIX.")
    read_there, write_here = os.pipe()
    read_here, write_there = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Chromium reads commands from descriptor 3 and answers on 4: the shell puts them there.
        command = f'exec "$0" "$@" 3<&{read_there} 4>&{write_there}'
        process = subprocess.Popen(
            ["bash", "-c", command, path, "--headless", "--remote-debugging-pipe", f"--user-data-dir={profile}",
             *ARGUMENTS, "about:blank"],
            pass_fds=(read_there, write_there), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_there)
        os.close(write_there)
        opened = Tabs(process, write_here, read_here)
        yield opened
        opened.close()
