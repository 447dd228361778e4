"""Whole pages as HTML: a session, the list of sessions, an error. Knows no requests and no responses."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.discovery import Lab
from harness.library import SessionInfo
from web.feed import past_of, render_earlier, render_feed
from web.figures import boundary
from web.guide import in_language, samples_of
from web.panel import dry_run_of, panel_of
from web.shown import Shown
from web.status import failure_line, state_of, status_line
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


def _own_folder(session: Shown) -> str:
    """Return the name of the folder that the session works in, or "" when it is the lab's own."""
    started = session.state.started
    return started.workspace if started and started.workspace != session.lab.demo else ""


def render_session(
    session: Shown, viewer: Viewer, *, sandbox: str, dry: int | None = None, before: int | None = None
) -> str:
    """Return a session's page.

    dry: a budget in characters to try without applying it. before: show what lies before this journal number;
    such a page stands still, so it has no scripts and its forms lead back to the newest rows.
    """
    panel, lab = panel_of(session, viewer), session.lab
    if before:
        viewer = replace(viewer, scripts=())
    return viewer.page(
        "session.html",
        session_id=session.id,
        state_code=state_of(session),
        header=header_of(session, viewer, sandbox),
        goal=in_language(lab.goal, viewer.language),
        folder=_own_folder(session),
        demo=lab.demo,
        groups=samples_of(lab, session.state, viewer.language),
        text=viewer.pages.texts.of(lab, viewer.language),
        feed=render_earlier(session, viewer, before) if before else render_feed(session, viewer),
        past=past_of(session, viewer, before) if before else "",
        older=bool(before),
        panel=panel,
        dry=dry_run_of(session, panel.boundary if dry is None else boundary(session.state, dry)),
        status=status_line(session, viewer.words),
        failure=failure_line(session, viewer.words),
        back=f"/s/{session.id}{viewer.query()}",
        stream=f"/s/{session.id}/events{viewer.query(after=str(session.committed))}",
    )


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
