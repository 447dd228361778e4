"""Whole pages as HTML: a session, an error. Knows no requests and no responses."""

from dataclasses import dataclass, replace
from pathlib import PurePath, PurePosixPath

from web.drawer import Opened, drawer_of
from web.feed import past_of, render_earlier, render_feed
from web.figures import boundary
from web.guide import in_language, samples_of, ticks_of
from web.hand_view import hand_view, kept
from web.lab_picture import picture_of
from web.moment import steps_of
from web.notes import remembers
from web.panel import dry_run_of, panel_of
from web.shown import Shown
from web.status import asking_row, failure_line, may_end_stage, state_of, status_line
from web.trust import trust_of
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
class Asked:
    """What a visitor asks of a session's page beside how to look at it.

    dry: a budget in characters to try. keep: how many tasks a compaction by hand would keep. before: show the
    rows before this journal number; such a page stands still, so its forms lead back to the newest rows. drawer:
    how the settings drawer is open, or None where it is not.
    """

    dry: int | None = None
    keep: int | None = None
    before: int | None = None
    drawer: Opened | None = None


NOTHING = Asked()


def header_of(session: Shown, viewer: Viewer, sandbox: str) -> Header:
    """Build the header of a session."""
    lab, model = session.lab, session.state.model
    names = (model.model, model.provider, model.reason) if model else ("", "", "")
    return Header(lab.number, in_language(lab.title, viewer.language), *names, sandbox)


def _own_folder(session: Shown) -> str:
    """Return the name of the folder that the session works in, or "" when it is the lab's own."""
    started, demo = session.state.started, PurePosixPath(session.lab.demo).parts
    if not started:
        return ""
    # A session of an older version knows only the folder's name.
    place = PurePath(started.source or started.workspace).parts
    return "" if place == demo[-len(place) :] or place[-len(demo) :] == demo else started.workspace


def render_session(
    session: Shown, viewer: Viewer, asked: Asked = NOTHING, *, sandbox: str, live: Shown | None = None
) -> str:
    """Return the page of a session, or of one moment of it: then `live` is the session itself."""
    panel, lab, before = panel_of(session, viewer), session.lab, asked.before
    if before:
        viewer = replace(viewer, scripts=())
    return viewer.page(
        "session.html",
        session_id=session.id,
        state_code=state_of(session),
        stages=may_end_stage(session),
        header=header_of(session, viewer, sandbox),
        drawer=drawer_of(session, viewer, asked.drawer),
        goal=in_language(lab.goal, viewer.language),
        folder=_own_folder(session),
        demo=lab.demo,
        groups=samples_of(lab, session.state, viewer.language),
        remembers=remembers(session, viewer),
        ticks=ticks_of(live or session, viewer.language),
        picture=picture_of(lab, viewer.language),
        text=viewer.pages.texts.of(lab, viewer.words),
        feed=render_earlier(session, viewer, before) if before else render_feed(session, viewer),
        past=past_of(session, viewer, before) if before else "",
        older=bool(before),
        panel=panel,
        steps=steps_of(session, live or session),
        dry=dry_run_of(session, panel.boundary if asked.dry is None else boundary(session, asked.dry)),
        hand=hand_view(session, viewer, kept(asked.keep)),
        hand_open=asked.keep is not None,
        status=status_line(session, viewer),
        asking=asking_row(session),
        failure=failure_line(session, viewer.words),
        trust=trust_of(session),
        back=f"/s/{session.id}{viewer.query()}",
        stream=f"/s/{session.id}/events{viewer.query(after=str(session.committed))}",
    )


def render_error(code: str, viewer: Viewer, **values: object) -> str:
    """Return a page that says what went wrong, in the words of the catalogue's `[error]`."""
    return replace(viewer, scripts=()).page("error.html", message=viewer.words.t(f"error.{code}", **values), back="/")
