"""The pages and what they read: nothing here changes a session."""

import asyncio
import json
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from harness.by_hand import SETTING_MAX
from harness.replay import rebuild
from harness.session import Session
from web.drawer import opened
from web.errors import PageError
from web.feed import render_earlier
from web.fragments import partials
from web.lost import ready
from web.moment import moment_of
from web.panel import render_dry_run
from web.screens import Asked, render_session
from web.shown import Shown
from web.site import site_of
from web.sse import EventStream, read_on
from web.status import state_of
from web.updates import render_panel_updates
from web.viewer import Viewer
from web.visitor import shared_viewer_of, viewer_of


async def open_session(request: Request) -> Session:
    """Return the session that the address names. PageError: there is none. Problem: it cannot be read."""
    try:
        return await site_of(request).library.open(request.path_params["session"])
    except KeyError:
        raise PageError(404, "no_session") from None


async def start(request: Request) -> Response:
    """GET /: lead to the newest session of this lab, or to a new one."""
    site = site_of(request)
    async with site.creating:
        session_id = await site.library.latest()
        if session_id is None:
            session_id = (await site.library.create(language=viewer_of(request).language)).id
    return RedirectResponse(f"/s/{session_id}", 303)


async def session_page(request: Request) -> Response:
    """GET /s/{session}: the page, with all that is safely journalled and nothing else.

    ?before=N shows older rows, ?at=N the session as it was at that journal number.
    """
    session = await open_session(request)
    await settled(session)
    budget, keep, before = (number(request.query_params.get(name)) for name in ("budget", "keep", "before"))
    sandbox, asked = site_of(request).settings.sandbox, Asked(budget, keep, before, opened(request.query_params))
    shown, viewer = await shown_at(session, viewer_of(request))
    await ready(shown, viewer)
    return HTMLResponse(render_session(shown, viewer, asked, sandbox=sandbox, live=session))


async def shown_at(session: Session, viewer: Viewer) -> tuple[Shown, Viewer]:
    """Return the session at the moment that the viewer asks for, and the viewer of that moment."""
    if not viewer.at:
        return session, viewer
    moment = await moment_of(session, min(viewer.at, session.committed))
    return moment, replace(viewer, at=moment.committed)


async def earlier(request: Request) -> Response:
    """GET /s/{session}/earlier?before=N: the rows before that number; without htmx, the page of them."""
    before = number(request.query_params.get("before"))
    if "hx-request" not in request.headers or before is None:
        return await session_page(request)
    shown, viewer = await shown_at(await open_session(request), shared_viewer_of(request))
    return HTMLResponse(render_earlier(shown, viewer, before))


async def panel(request: Request) -> Response:
    """GET /s/{session}/panel: meter and panel as they are now; a browser without htmx gets the whole page."""
    if "hx-request" not in request.headers:
        return await session_page(request)
    session = await open_session(request)
    return HTMLResponse(partials(render_panel_updates(session, replace(shared_viewer_of(request), at=0))))


async def dry_run(request: Request) -> Response:
    """GET /s/{session}/dry-run?budget=N: what that budget would cut. Changes nothing."""
    session = await open_session(request)
    budget = number(request.query_params.get("budget"))
    if budget is None:
        raise PageError(422, "budget", top=SETTING_MAX)
    return HTMLResponse(render_dry_run(session, viewer_of(request), budget))


async def events(request: Request) -> ASGIApp | Response:
    """GET /s/{session}/events?after=N: what happens, as server-sent events."""
    site, session = site_of(request), await open_session(request)
    if site.channels.closed:
        raise PageError(503, "closing")
    # What happens is no moment of the past, whatever the address says.
    return EventStream(site.channels, session, replace(shared_viewer_of(request), at=0), read_on(request))


async def state(request: Request) -> Response:
    """GET /s/{session}/state: what a hidden tab asks for, since it lets go of its stream."""
    session = await open_session(request)
    return JSONResponse({"state": state_of(session), "seq": session.committed})


async def model_call(request: Request) -> Response:
    """GET /s/{session}/calls/{call}, or a sub-agent's: that call's request, byte for byte; with ?pretty, to read."""
    session = await open_session(request)
    pairs = [(recorded.seq, recorded.event) for recorded in session.records]
    call, child = request.path_params["call"], request.path_params.get("child", 0)
    try:
        body = (await asyncio.to_thread(rebuild, pairs, call, child)).body()
    except KeyError:
        raise PageError(404, "no_call", call=call) from None
    if "pretty" in request.query_params:
        return PlainTextResponse(json.dumps(json.loads(body), ensure_ascii=False, indent=2))
    return Response(body, media_type="application/json")


async def health(request: Request) -> Response:
    """GET /healthz: the server is up."""
    return PlainTextResponse("ok\n")


async def no_icon(request: Request) -> Response:
    """GET /favicon.ico: the page names its own icon; this is for browsers that ask all the same."""
    return Response(status_code=204)


def number(text: str | None) -> int | None:
    """Return a budget in characters or a journal number, or None where the text is none."""
    if text is None or not (text.isascii() and text.isdecimal() and len(text) < 12):
        return None
    return int(text) if int(text) <= SETTING_MAX else None


async def settled(session: Session) -> None:
    """Wait until all that happened is journalled, so that a page shows neither more nor less than that."""
    for _ in range(400):
        if session.committed >= len(session.records) or session.failure:
            return
        await asyncio.sleep(0.005)
