"""A real Phoenix for tests: the server, and what it says of the spans that it was sent."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

# The command that starts Phoenix, in an environment of its own; or the address of one that runs already.
VARIABLE = "LAB_TEST_PHOENIX"
# Seconds: its start takes one to three minutes on a small machine.
START, WRITTEN = 420, 60
Attributes = dict[str, Any]


@dataclass(frozen=True)
class Phoenix:
    """A running Phoenix."""

    address: str

    def get(self, path: str, **query: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.address}{path}?{urlencode(query)}", timeout=60) as answer:
            return json.load(answer)

    def all(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return all pages of a list."""
        found, cursor = [], {}
        while True:
            page = self.get(path, limit="100", **query, **cursor)
            found += page["data"]
            if not page.get("next_cursor"):
                return found
            cursor = {"cursor": page["next_cursor"]}

    def spans(self, project: str, count: int, session: str = "") -> list[dict[str, Any]]:
        """Return the spans of a project, or of a session in it, once there are `count` of them."""

        def own() -> list[dict[str, Any]]:
            with contextlib.suppress(urllib.error.HTTPError):
                every = self.all(f"/v1/projects/{project}/spans")
                return [span for span in every if not session or span["attributes"].get("session.id") == session]
            return []

        return eventually(own, lambda found: len(found) >= count)


def eventually(read: Callable[[], Any], good: Callable[[Any], bool]) -> Any:
    """Return what `read` returns once it is good; the last of it where it never is."""
    end = time.monotonic() + WRITTEN
    while not good(found := read()) and time.monotonic() < end:
        time.sleep(0.5)
    return found


def given() -> str:
    """Return what the variable names; skip without it, but not in CI."""
    named = os.environ.get(VARIABLE, "")
    if not named and os.environ.get("CI") == "true":
        pytest.fail(f"{VARIABLE} is not set, and nothing else tests the sending to a real Phoenix")
    if not named:
        pytest.skip(f"no Phoenix: {VARIABLE} names its command, such as /path/to/venv/bin/phoenix")
    return named


@contextlib.contextmanager
def phoenix() -> Iterator[Phoenix]:
    """Run a Phoenix without telemetry and without anything of other hosts."""
    if (named := given()).startswith("http"):
        yield Phoenix(named.rstrip("/"))
        return
    port, grpc = _free(), _free()
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PHOENIX_")} | {
            "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(grpc),
            "PHOENIX_WORKING_DIR": folder, "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        }  # fmt: skip
        log = Path(folder) / "log"
        with log.open("wb") as file:
            command = [named, "serve"]
            process = subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(process, address, log)
            yield Phoenix(address)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end:
        assert process.poll() is None, f"Phoenix ended: {log.read_text('utf-8', 'replace')[-2000:]}"
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/healthz", timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(1)
    pytest.fail(f"Phoenix did not start in {START} s: {log.read_text('utf-8', 'replace')[-2000:]}")


def _free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
