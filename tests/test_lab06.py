"""Lab 06 alone: its samples in both languages, and that it watches and changes nothing."""

import asyncio
from pathlib import Path

import pytest

from harness import events as e
from harness.discovery import find_labs, load
from harness.hooks import HOOKS
from tests.harness_support import ROOT, events, library, run_sample, running


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_three_samples(tmp_path: Path, language: str) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="06") as opened:
            session = await opened.create(language=language)
            for number in (1, 2, 3):
                await run_sample(session, number, language=language)
            assert [task.ended for task in session.state.tasks] == ["answered"] * 3
            tools = [(each.task, each.name, each.ok) for each in events(session, e.ToolEnded)]
            first = [(1, "read", True), (1, "search", True)]
            assert tools == [
                *first,
                *((2, name, True) for name in ("bash", "read", "edit", "bash")),
                (3, "read", False),
            ]
            assert len(events(session, e.ApprovalRequested)) == 3
            answers = [each.text for each in events(session, e.ModelCallEnded) if not each.calls]
            assert "def price" in answers[0] and "Ran 6 tests" in answers[1] and "`tariff.ini`" in answers[2]

    asyncio.run(scenario())


def test_it_watches_and_adds_nothing_to_any_request(tmp_path: Path) -> None:
    lab = find_labs(ROOT / "labs")["06"]
    extension = load(lab)
    assert {hook for hook in HOOKS if getattr(extension, hook)} == {"on_event", "sending"}
    assert len((lab.folder / "extension.py").read_text("utf-8").splitlines()) < 120

    async def bodies(folder: Path, extensions: tuple[str, ...]) -> list[bytes]:
        with running() as server:
            async with library(folder, lab="07", extensions=extensions, server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                await run_sample(session, 2)
            return server.requests

    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    alone = asyncio.run(bodies(tmp_path / "without", ()))
    assert asyncio.run(bodies(tmp_path / "with", ("06",))) == alone
