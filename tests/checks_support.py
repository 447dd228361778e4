"""Small projects that name a check, and sessions in them."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from harness import events as e
from harness import trust
from harness.checks import FILE
from harness.discovery import find_labs, load
from harness.hooks import gather
from harness.library import Library
from harness.session import Session
from harness.trusting import answer, digests_of, mark_of, question
from harness.workspace import Workspace
from tests.harness_support import ROOT, events, library

DEMO = ROOT / "demo_workspace" / "museum-tickets"


def project(folder: Path, command: str, seconds: int | None = None, **files: str) -> Path:
    """Make a folder whose check is `command`."""
    return written(
        folder, f"command = {json.dumps(command)}\n" + (f"seconds = {seconds}\n" if seconds else ""), **files
    )


class Anything(frozenset[str]):
    """What a person accepts who accepts whatever a folder holds."""

    def __contains__(self, digest: object) -> bool:
        return True


ANYTHING = Anything()


def accept_all(data: Path, source: Path) -> None:
    """Remember of a folder each of its own files as accepted, as it is now."""
    labs = find_labs(ROOT / "labs")
    extensions = tuple(load(labs[number]) for number in ("03", "04", "05"))
    while asked := [each for each in gather(extensions, Workspace(source, "w", source=source, answers=data,
                    accepted=trust.accepted(data, source))).sources if each.problem == "untrusted"][:6]:  # fmt: skip
        trust.remember(data, source, digests_of(asked))


async def accept(session: Session, data: Path) -> None:
    """Say yes to what the session's folder holds now."""
    await session.looked.look(session.extensions, session.workspace)
    session.prepare()
    await answer(session, data, trusted=True, asked=mark_of(question(session.state)))


def written(folder: Path, text: str | bytes, **files: str) -> Path:
    """Make a folder whose verify.toml holds `text`."""
    path = folder / FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, content in files.items():
        (folder / f"{name}.md").write_text(content)
    return folder


@contextlib.asynccontextmanager
async def checking(data: Path, source: Path = DEMO, *, lab: str = "05", **named: Any) -> AsyncIterator[Library]:
    """Open a library whose sessions work in `source`, which is trusted."""
    data.mkdir(exist_ok=True)
    accept_all(data, source)
    async with library(data, lab=lab, source=source, **named) as opened:
        yield opened


def outcomes(session: Session) -> list[tuple[str, int, bool]]:
    """Return outcome, exit code and whether it went back, of each check."""
    return [(each.outcome, each.exit, each.back) for each in events(session, e.Verified)]


def running_like(mark: str) -> list[int]:
    """Return the processes of this machine that have `mark` in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found
