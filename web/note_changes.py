"""The notes of a session's folder: shown, and forgotten by a person. Files are read and removed in threads."""

import asyncio

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from harness.notes.keeping import Changed, Unlisted, forget, why
from harness.problems import Problem
from harness.session import Session
from web.changes import done
from web.errors import PageError
from web.fragments import partials
from web.notes import NotesView, read_notes, render_list, render_page
from web.routes import open_session
from web.updates import Update
from web.visitor import viewer_of


async def show_notes(request: Request) -> Response:
    """GET /s/{session}/notes: the list, for htmx alone, else as a page."""
    session = await open_session(request)
    notes, render = await _notes(session), render_list if "hx-request" in request.headers else render_page
    return HTMLResponse(render(session, viewer_of(request), notes))


async def forget_note(request: Request) -> Response:
    """POST /s/{session}/notes: `name` of a note, and `digest` of what was shown of it. It is removed for good."""
    session, fields = await open_session(request), request.state.form
    await _notes(session)
    name, digest = fields.get("name", ""), fields.get("digest", "") or "none"
    unlisted = ""
    try:
        await asyncio.to_thread(forget, session.workspace.notes, name, digest)
    except (KeyError, Changed):
        raise PageError(409, "note_changed") from None
    except Unlisted as error:
        unlisted = error.reason
    except OSError as error:
        raise Problem("note_not_forgotten", reason=why(error)) from error
    if "hx-request" not in request.headers:
        if unlisted:
            raise Problem("note_list_not_written", reason=unlisted)
        return done(request, f"/s/{session.id}/notes")
    html = render_list(session, viewer_of(request), await _notes(session))
    updates = [Update("notes", html, "replace")]
    if unlisted:
        words = viewer_of(request).words
        reason = words.t("problem.note_list_not_written", reason=unlisted)
        updates.append(Update("notice", words.t("error.problem", reason=reason), "inner"))
    return HTMLResponse(partials(updates))


async def _notes(session: Session) -> NotesView:
    notes = await asyncio.to_thread(read_notes, session.workspace)
    if notes is None:
        raise PageError(404, "no_notes")
    return notes
