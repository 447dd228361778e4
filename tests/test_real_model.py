"""The same flows against a real model server, when LAB_TEST_BASE_URL names one. Never what such a model says.

A small one does: start `uv run --group local python -m harness.model.local_model FILE.gguf 4096`, which prints its
address, and set LAB_TEST_BASE_URL to that.
"""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness import events as e
from harness.discovery import find, find_labs
from harness.journal import Journal
from harness.library import Library, Setup
from harness.model.gateway import Gateway
from harness.model.provider import choose, settled
from harness.replay import fold, rebuild
from harness.request import digest
from harness.sandbox.detect import detect
from harness.session import Session
from harness.session_events import ModelChosen
from tests.harness_support import ROOT, events

ADDRESS = os.environ.get("LAB_TEST_BASE_URL", "")
pytestmark = [
    pytest.mark.skipif(not ADDRESS, reason="LAB_TEST_BASE_URL names no model server"),
    pytest.mark.timeout(900),
]
# A small model may write until its window is full; after this long it is stopped, as a person would.
PATIENCE_SECONDS = 120


async def play(session: Session, number: int) -> None:
    """Run a sample; allow what is asked, stop what takes too long."""
    sample = [sample for group in session.lab.groups for sample in group.samples][number - 1]
    session.start_task(sample.task["en"], language="en", sample=sample.id)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while session.status != "idle":
                if session.waiting:
                    session.answer(session.waiting.call_id, True)
                await asyncio.sleep(0.05)
    except TimeoutError:
        await session.stop()


@pytest.mark.parametrize(("lab", "samples"), [("07", (1, 2, 3)), ("01", (3,))])
def test_the_samples_run_and_every_request_is_rebuilt(tmp_path: Path, lab: str, samples: tuple[int, ...]) -> None:
    async def scenario() -> None:
        provider = choose({}, model=None, base_url=ADDRESS, gguf=None)
        asking = Gateway(provider)
        provider = settled(provider, await asking.list_models())
        await asking.close()
        labs = find_labs(ROOT / "labs")
        setup = Setup(
            labs=labs, lab=find(labs, lab), extensions=(), label="demo",
            source=ROOT / "demo_workspace" / labs[lab].demo,
            data=tmp_path, sandbox=detect([tmp_path]), settings={"budget": 200},
            model=ModelChosen(model=provider.model, provider=provider.kind, reason=provider.reason),
        )  # fmt: skip
        gateway = Gateway(replace(provider))
        opened = Library(setup, Journal(f"sqlite:///{tmp_path}/journal.db"), gateway)
        session = await opened.create(language="en")
        for number in samples:
            await play(session, number)
        check(session)
        await opened.close()
        await gateway.close()

    asyncio.run(scenario())


def check(session: Session) -> None:
    """Hold what is true of any model: tasks end, calls have results, requests and figures are the journal's."""
    numbered = [(recorded.seq, recorded.event) for recorded in session.records]
    for started in events(session, e.ModelCallStarted, e.SummaryCallStarted):
        assert digest(rebuild(numbered, started.call)) == started.digest
    assert all(task.ended for task in session.state.tasks)
    assert not session.state.unanswered
    assert fold(numbered).request().body() == session.state.request().body()
    ended = events(session, e.ModelCallEnded)
    assert ended, "at least one reply came"
    assert any(event.usage.prompt for event in ended if event.finish != "stopped") or not ended
    if len(session.state.tasks) > 1:
        assert events(session, e.ContextCompacted, e.CompactionRefused), "past the budget it compacts or says why not"
