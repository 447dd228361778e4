"""A sub-agent's own page: its rows and its context at one moment. Nothing here changes a session."""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from web.child_view import ChildShown, child_number
from web.errors import PageError
from web.feed import render_earlier, render_feed, render_inside
from web.lost import ready
from web.panel import panel_of
from web.routes import number, open_session, settled, shown_at
from web.rows import at as record_at
from web.rows import row_id
from web.viewer import Viewer
from web.visitor import shared_viewer_of, viewer_of


async def child_page(request: Request) -> Response:
    """GET /s/{session}/children/{child}: the page. ?at=N shows it as it was at that journal number of the session.

    ?before=N shows rows before that number of its own.
    """
    session = await open_session(request)
    await settled(session)
    shown, viewer = await shown_at(session, viewer_of(request))
    child = child_number(shown, request.path_params["child"])
    if child is None:
        raise PageError(404, "no_child")
    # The page stands still, whatever goes on.
    viewer = replace(viewer, at=viewer.at or session.committed, child=child.number, scripts=())
    await ready(child, viewer)
    return HTMLResponse(render_child(child, viewer, number(request.query_params.get("before"))))


async def child_rows(request: Request) -> Response:
    """GET /s/{session}/children/{child}/rows: its newest rows for the row of its call; without htmx, its page."""
    if "hx-request" not in request.headers:
        return await child_page(request)
    shown, viewer = await shown_at(await open_session(request), shared_viewer_of(request))
    child = child_number(shown, request.path_params["child"])
    if child is None:
        raise PageError(404, "no_child")
    return HTMLResponse(render_inside(child, replace(viewer, view="full")))


def render_child(child: ChildShown, viewer: Viewer, before: int | None = None) -> str:
    """Return the page of a sub-agent; before: only rows before this number of its own."""
    panel = viewer.block("session.html", "panel", panel=panel_of(child, viewer), session_id=child.id)
    return viewer.page(
        "child.html",
        child=child,
        session_id=child.whole.id,
        call=row_id(record_at(child.whole.records, child.child.seq)),
        feed=render_earlier(child, viewer, before) if before else render_feed(child, viewer),
        older=bool(before),
        panel=panel,
        back=f"/s/{child.id}{viewer.query()}",
    )
