"""Whole pages as HTML: a session, the list of sessions, an error. Knows no requests and no responses."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.discovery import Lab
from harness.library import SessionInfo
from web.feed import render_feed
from web.guide import guide_of, in_language
from web.panel import dry_run, panel_of
from web.shown import Shown
from web.status import status_line
from web.viewer import Viewer


@dataclass(frozen=True, slots=True)
class Header:
    """What stands above a session. `sandbox` and `model_reason` are codes of the catalogue."""

    lab_number: str
    lab_title: str
    model: str
    provider: str
    model_reason: str
    sandbox: str


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One line of the list of sessions; `when` is the server's local time."""

    id: str
    when: str
    lab: str
    tasks: int
    first: str


def header_of(session: Shown, viewer: Viewer, sandbox: str) -> Header:
    """Build the header of a session."""
    lab, model = session.lab, session.state.model
    names = (model.model, model.provider, model.reason) if model else ("", "", "")
    return Header(lab.number, in_language(lab.title, viewer.language), *names, sandbox)


def session_context(session: Shown, viewer: Viewer, *, dry: int | None = None) -> dict[str, object]:
    """Return what the blocks of the session's page need, but for the feed and the header."""
    return {
        "session_id": session.id,
        "state_code": session.status,
        "guide": guide_of(session.lab, session.state, viewer.language),
        "panel": panel_of(session, viewer),
        "dry": dry_run(session, dry),
        "status": status_line(session, viewer.words),
    }


def render_session(session: Shown, viewer: Viewer, *, sandbox: str, dry: int | None = None) -> str:
    """Return a session's page. `dry`: a budget in characters to try without applying it."""
    context = session_context(session, viewer, dry=dry)
    header = header_of(session, viewer, sandbox)
    address = f"/s/{session.id}{viewer.query()}"
    stream = f"/s/{session.id}/events{viewer.query(after=str(session.committed))}"
    feed = render_feed(session, viewer)
    return viewer.page("session.html", **context, header=header, feed=feed, back=address, stream=stream)


def render_sessions(infos: Sequence[SessionInfo], labs: Mapping[str, Lab], viewer: Viewer) -> str:
    """Return the page that lists the sessions, the newest first."""
    titles = {number: in_language(lab.title, viewer.language) for number, lab in labs.items()}
    lines = [
        SessionLine(info.id, _when(info.time), titles.get(info.lab, info.lab), info.tasks, info.first) for info in infos
    ]
    return viewer.page("sessions.html", lines=lines, back="/sessions")


def render_error(code: str, viewer: Viewer, **values: object) -> str:
    """Return a page that says what went wrong, in the words of the catalogue's `[error]`."""
    return replace(viewer, scripts=()).page("error.html", message=viewer.words.t(f"error.{code}", **values), back="/")


def _when(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
