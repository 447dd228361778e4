"""The list of sessions: reading it, a session's name, its end, and how one travels as a file."""

import asyncio
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from harness import by_hand
from harness.deletion import delete as delete_session
from harness.exchange.transfer import bring_in as bring_in_session
from harness.exchange.transfer import export as export_session
from harness.problems import Problem
from harness.session_list import read_session, read_sessions
from web.changes import done, own_page
from web.errors import PageError
from web.exports import file_name
from web.routes import number, open_session
from web.session_lines import render_deletion, render_sessions
from web.site import site_of
from web.visitor import viewer_of

# The one address that takes a file.
IMPORT = "/sessions/import"


async def show(request: Request) -> Response:
    """GET /sessions: the sessions, the last active first; ?q= searches, ?page= turns the pages."""
    return await _list(request, request.query_params)


async def create(request: Request) -> Response:
    """POST /sessions: start a session of the server's lab."""
    session = await site_of(request).library.create(language=viewer_of(request).language)
    return done(request, f"/s/{session.id}", moves=True)


async def bring_in(request: Request) -> Response:
    """POST /sessions/import: `file`, a session that was exported. Where it cannot be, the list says why."""
    upload = request.state.upload
    if upload is None or not upload.filename:
        raise PageError(422, "no_file")
    try:
        session_id = await bring_in_session(site_of(request).library, upload.file, upload.filename)
    except Problem as problem:
        return await _list(request, {}, problem)
    return done(request, f"/s/{session_id}", moves=True)


async def rename(request: Request) -> Response:
    """POST /s/{session}/name: `name`, or nothing to call it after its first task again; `back` to the list's page."""
    session, fields = await open_session(request), request.state.form
    by_hand.rename(session, fields.get("name", ""))
    return done(request, f"{_back(fields.get('back', ''))}#session-{session.id}", moves=True)


async def ask_to_delete(request: Request) -> Response:
    """GET /s/{session}/delete: what would be gone, and the question a second time."""
    library, session_id = site_of(request).library, request.path_params["session"]
    info = await asyncio.to_thread(read_session, library.journal, session_id)
    if info is None:
        raise PageError(404, "no_session")
    events = await asyncio.to_thread(library.journal.length, session_id)
    return HTMLResponse(render_deletion(info, events, library.setup.labs, viewer_of(request)))


async def delete(request: Request) -> Response:
    """POST /s/{session}/delete: delete the session for good."""
    try:
        await delete_session(site_of(request).library, request.path_params["session"])
    except KeyError:
        raise PageError(404, "no_session") from None
    return done(request, "/sessions", moves=True)


async def export(request: Request) -> Response:
    """GET /s/{session}/export.jsonl: the session as a file, all that is committed."""
    session_id = request.path_params["session"]
    try:
        pieces = await asyncio.to_thread(export_session, site_of(request).library.journal, session_id)
    except KeyError:
        raise PageError(404, "no_session") from None
    name = {"content-disposition": f'attachment; filename="{file_name(session_id, "jsonl")}"'}
    return StreamingResponse(pieces, headers=name, media_type="application/jsonl; charset=utf-8")


async def _list(request: Request, query: Mapping[str, str], problem: Problem | None = None) -> Response:
    library, viewer = site_of(request).library, viewer_of(request)
    asked = {"search": query.get("q", ""), "number": number(query.get("page")) or 1}
    page = await asyncio.to_thread(lambda: read_sessions(library.journal, library.setup.labs, **asked))
    line = viewer.words.t(f"problem.{problem.code}", **problem.values) if problem else ""
    return HTMLResponse(render_sessions(page, library.setup.labs, viewer, line), 422 if problem else 200)


def _back(address: str) -> str:
    """Return the page of the list that a form came from, without its mark."""
    back = own_page(address).partition("#")[0]
    return back if back.startswith("/sessions?") else "/sessions"
