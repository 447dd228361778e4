"""A real harness for tests: sessions in a temporary journal, the offline model over HTTP, every request checked."""

import asyncio
import contextlib
import functools
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.discovery import find, find_labs
from harness.events import Event, ModelCallEnded, ModelCallStarted, SummaryCallStarted
from harness.journal import Journal, Recorded
from harness.library import Library, Setup
from harness.model.gateway import Gateway
from harness.model.provider import choose
from harness.replay import State, rebuild, sent_by
from harness.request import digest
from harness.sandbox.detect import Sandbox, detect
from harness.sandbox.system_paths import readable
from harness.session import Session
from harness.session_events import ModelChosen
from offline_model.server import OfflineServer

ROOT = Path(__file__).parent.parent


@contextlib.asynccontextmanager
async def library(
    data: Path,
    *,
    lab: str = "07",
    extensions: tuple[str, ...] = (),
    settings: dict[str, int] | None = None,
    server: OfflineServer | None = None,
    sandbox: Sandbox | None = None,
    labs: Path = ROOT / "labs",
    source: Path | None = None,
) -> AsyncIterator[Library]:
    """Open a library over `data`, a folder that may hold an earlier one's journal."""
    found = find_labs(labs)
    own = server or offline()
    address = own.start() if server is None else server.address
    provider = replace(choose({}, model=None, base_url=None, gguf=None), base_url=address)
    setup = Setup(
        labs=found, lab=find(found, lab), extensions=extensions, settings=settings or {}, data=data,
        source=source or ROOT / "demo_workspace" / find(found, lab).demo, label="demo",
        sandbox=sandbox or detected(data),
        model=ModelChosen(model=provider.model, provider=provider.kind, reason=provider.reason),
    )  # fmt: skip
    gateway = Gateway(provider)
    opened = Library(setup, Journal(f"sqlite:///{data / 'journal.db'}"), gateway)
    try:
        yield opened
        for session in opened._open.values():
            assert_digests(session.records)
    finally:
        await opened.close()
        await gateway.close()
        if server is None:
            own.stop()


@functools.cache
def _detected() -> Sandbox:
    return detect()


def detected(data: Path) -> Sandbox:
    """Return what `detect([data])` returns; the small commands that it tries are run once for all tests."""
    found = _detected()
    if found.kind == "none":
        return found
    hidden = tuple(dict.fromkeys([*found.hidden, data.resolve()]))
    return replace(found, hidden=hidden, readable=readable(hidden) if os.name == "posix" else ())


class Recorder(OfflineServer):
    """The offline model that keeps every body it was sent, and its address."""

    address = ""

    def start(self) -> str:
        self.address = super().start()
        return self.address


def offline(fault: str = "", delay: float = 0) -> Recorder:
    """Return the offline model with every lab's script, not started."""
    scripts = sorted((ROOT / "labs").glob("*/offline.toml"))
    return Recorder(scripts, delay=delay, record=True, fault=fault)


@contextlib.contextmanager
def running(fault: str = "", delay: float = 0):  # noqa: ANN201
    """Run the offline model for the time of a `with`."""
    server = offline(fault, delay)
    server.start()
    try:
        yield server
    finally:
        server.stop()


async def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait until `condition` holds, or fail."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def run(session: Session, text: str, *, allow: bool = True, language: str = "en", sample: str = "") -> None:
    """Run one task to its end, answering every approval the same way."""
    session.start_task(text, language=language, sample=sample)
    async with asyncio.timeout(60):
        while session.status != "idle":
            if session.waiting:
                session.answer(session.waiting.call_id, allow, session.asking)
            await asyncio.sleep(0.01)


async def run_sample(session: Session, number: int, *, allow: bool = True, language: str = "en") -> None:
    """Run the lab's sample of this number, from 1."""
    samples = [sample for group in session.lab.groups for sample in group.samples]
    sample = samples[number - 1]
    await run(session, sample.task[language], allow=allow, language=language, sample=sample.id)


def events(session: Session, *kinds: type[Event]) -> list[Event]:
    """Return the session's events of these kinds, in order."""
    return [recorded.event for recorded in session.records if isinstance(recorded.event, kinds)]


def names(session: Session) -> list[str]:
    """Return the names of the session's events, in order."""
    return [type(recorded.event).__name__ for recorded in session.records]


def assert_digests(records: Sequence[Recorded]) -> None:
    """Every request rebuilt from the journal has the digest that was recorded when it was sent.

    An event that a test tells by hand has none.
    """
    state, calls = State(), 0
    for recorded in records:
        own, event = state.whose(recorded.event)
        if isinstance(event, ModelCallStarted | SummaryCallStarted) and event.digest:
            calls += 1
            # Of a very long session not every one: each is hashed from its first message.
            if calls <= 100 or calls % 500 == 0:
                assert digest(sent_by(own, event)) == event.digest, f"call {event.call} of {own.number}"
        state.apply(recorded.seq, recorded.event)


def assert_rebuilt(session: Session, sent: list[bytes]) -> None:
    """Every request rebuilt from the journal is, byte for byte, one that the server got, in the same order.

    A call that was stopped may not have reached the server.
    """
    numbered = [(recorded.seq, recorded.event) for recorded in session.records]
    stopped = {ended.call for ended in events(session, ModelCallEnded) if ended.finish == "stopped"}
    calls = [record.call for record in session.state.calls if record.call not in stopped]
    rebuilt = [rebuild(numbered, call).body() for call in calls]
    assert rebuilt
    own = iter(sent)
    for number, body in enumerate(rebuilt, 1):
        assert body in own, f"call {number} was not sent as it is rebuilt"
