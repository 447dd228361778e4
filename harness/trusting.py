"""What a person is asked about the folder's own files, the answer, and what follows from it."""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from harness import trust
from harness.coding_tools.text_file import why
from harness.events import WorkspaceTrusted
from harness.problems import Problem
from harness.replay import State
from harness.session import Busy, Session
from harness.session_events import Told
from harness.sources import MOST_ASKED

# No file that is read is longer; what says more comes from elsewhere and cannot be accepted as it is shown.
TEXT_CHARS = 40_000


def question(state: State) -> tuple[Told, ...]:
    """Return the files that a person is asked about now."""
    sources = state.instructions.sources if state.instructions else ()
    return tuple(told for told in sources if told.problem == "untrusted")[:MOST_ASKED]


def digests_of(asked: Iterable[Told]) -> tuple[str, ...]:
    """Return what a yes to these files accepts, a digest each: of what is shown, not of what lies in the folder."""
    return tuple(trust.digest_of(each.kind, each.name, each.wanted[:TEXT_CHARS]) for each in asked)


def mark_of(asked: Iterable[Told]) -> str:
    """Return what stands for the whole question; the answer must name it."""
    return hashlib.sha256(" ".join(digests_of(asked)).encode()).hexdigest()


async def answer(session: Session, data: Path, *, trusted: bool, asked: str = "") -> None:
    """Let the answer hold for the session, and for later ones of the same folder. data: the folder of the sessions.

    asked: `mark_of` the question that a yes answers. Raises Busy while something runs: then nothing has changed.
    Problem: the question is another one by now, so nothing was accepted; or the answer holds for this session only.
    """
    accepted = await _accepted_now(session, asked) if trusted else ()
    if accepted is None:
        return
    kept = session.workspace.accepted | set(accepted) if trusted else frozenset()
    await _put_in_force(session, frozenset(kept), trusted=trusted, accepted=accepted)
    if source := session.workspace.source:
        try:
            if trusted:
                await asyncio.to_thread(trust.remember, data, source, accepted)
            else:
                await asyncio.to_thread(trust.forget, data, source)
        except OSError as error:
            raise Problem("trust_not_kept", reason=why(error)) from error
        session.workspace = replace(session.workspace, answers=data)


async def _accepted_now(session: Session, asked: str) -> tuple[str, ...] | None:
    """Look anew; return what a yes accepts, None where nothing is left to accept. Problem: something else was asked."""
    await session.looked.look(session.extensions, session.workspace)
    if session.status != "idle":
        raise Busy
    session.prepare()
    now = question(session.state)
    if not now and session.state.trusted:
        return None
    if mark_of(now) != asked:
        raise Problem("trust_changed")
    return digests_of(now)


async def _put_in_force(session: Session, kept: frozenset[str], *, trusted: bool, accepted: tuple[str, ...]) -> None:
    # As long as the answer is not written down, it holds by itself.
    workspace = replace(session.workspace, accepted=kept, answers=None)
    await session.looked.look(session.extensions, workspace)
    if session.status != "idle":
        raise Busy
    # Of two pages that answer at once the second one says nothing new.
    news = session.state.trusted != trusted or kept != session.workspace.accepted
    session.workspace = workspace
    if news:
        session.emit(WorkspaceTrusted(trusted=trusted, accepted=accepted))
    session.prepare()
