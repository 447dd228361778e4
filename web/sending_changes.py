"""The sending of a session's spans: how it stands, and sending them all once more. Changes no session."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from web.fragments import partials
from web.routes import number, open_session, session_page
from web.sending import send_by_hand, sending_view
from web.shown import Shown
from web.updates import Update
from web.viewer import Viewer
from web.visitor import viewer_of


async def show_sending(request: Request) -> Response:
    """GET /s/{session}/sending: how it stands now; a browser without htmx gets the whole page."""
    if "hx-request" not in request.headers:
        return await session_page(request)
    seen = number(request.query_params.get("seen"))
    return HTMLResponse(render_sending(await open_session(request), viewer_of(request), seen))


async def send_again(request: Request) -> Response:
    """POST /s/{session}/sending: send every span of the session that has ended, out of its journal."""
    session = await open_session(request)
    await send_by_hand(session)
    viewer = viewer_of(request)
    if "hx-request" not in request.headers:
        return RedirectResponse(f"/s/{session.id}{viewer.query(tab='trace')}#trace-sending", 303)
    return HTMLResponse(render_sending(session, viewer))


def render_sending(session: Shown, viewer: Viewer, seen: int | None = None) -> str:
    """Return what says how the sending stands: in the page's head, and in the tab. seen: spans, when it last looked."""
    shown = {"sending": sending_view(session, viewer), "session_id": session.id, "seen": seen}
    head = viewer.block("session.html", "sending", **shown)
    part = viewer.page("panel/sending.html", **shown)
    return partials([Update("sending", head, "replace"), Update("trace-sending", part, "morph")])
