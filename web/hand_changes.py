"""What a visitor does to the context by hand: compact now, take a compaction back, answer a proposed summary."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from harness import by_hand
from harness.session import Busy
from web.changes import done
from web.errors import PageError
from web.hand_view import kept, render_preview
from web.routes import number, open_session, session_page
from web.visitor import viewer_of


async def preview(request: Request) -> Response:
    """GET /s/{session}/by-hand?keep=N: what compacting now would cut. Changes nothing."""
    session, keep = await open_session(request), kept(number(request.query_params.get("keep")))
    if "hx-request" not in request.headers:
        return await session_page(request)
    return HTMLResponse(render_preview(session, viewer_of(request), keep))


async def compact(request: Request) -> Response:
    """POST /s/{session}/compact: `keep`, `focus`, and `cut`, the cut point that the preview showed."""
    session, fields = await open_session(request), request.state.form
    cut = number(fields.get("cut")) or 0
    # The extensions may read files: not in the event loop.
    await session.looked.look(session.extensions, session.workspace)
    try:
        by_hand.compact_now(
            session, focus=fields.get("focus", ""), keep=kept(number(fields.get("keep"))), cut=cut,
            language=viewer_of(request).language,
        )  # fmt: skip
    except Busy:
        raise PageError(409, "busy") from None
    return done(request, f"/s/{session.id}")


async def undo(request: Request) -> Response:
    """POST /s/{session}/undo: `number` of the newest compaction in force."""
    session = await open_session(request)
    try:
        by_hand.undo(session, number(request.state.form.get("number")) or 0)
    except Busy:
        raise PageError(409, "busy") from None
    return done(request, f"/s/{session.id}")


async def answer_summary(request: Request) -> Response:
    """POST /s/{session}/summary: `call`, `text`, and `answer`, which is use or keep."""
    session, fields = await open_session(request), request.state.form
    if fields.get("answer") not in ("use", "keep"):
        raise PageError(422, "no_answer")
    waits = session.proposed
    if waits is None or str(waits.call) != fields.get("call"):
        raise PageError(409, "not_waiting")
    # A form's lines end as on a typewriter; the model wrote them with one sign.
    text = fields.get("text", "").replace("\r\n", "\n").strip()
    if broken := session.confirmations.answer(text if fields["answer"] == "use" else None):
        reason = viewer_of(request).words.code("proposal_broken", broken)
        raise PageError(422, "proposal", reason=reason)
    return done(request, f"/s/{session.id}")
