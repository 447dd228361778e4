"""What a visitor answers to the question whether the folder is trusted."""

from starlette.requests import Request
from starlette.responses import Response

from harness.session import Busy
from harness.trusting import answer
from web.changes import ONS, done
from web.errors import PageError
from web.routes import open_session
from web.site import site_of


async def answer_trust(request: Request) -> Response:
    """POST /s/{session}/trust: `trusted`, yes or no, and `asked`, what a yes is about. While nothing runs."""
    session = await open_session(request)
    trusted = ONS.get(request.state.form.get("trusted", ""))
    if trusted is None:
        raise PageError(422, "no_trust")
    data, asked = site_of(request).library.setup.data, request.state.form.get("asked", "")
    try:
        await answer(session, data, trusted=trusted, asked=asked)
    except Busy:
        raise PageError(409, "trust_busy") from None
    return done(request, f"/s/{session.id}")
