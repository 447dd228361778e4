"""What a visitor may change. Each works from htmx (204, the stream brings the change) and from a plain form."""

import re

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness.session import SETTING_MAX, Busy
from web.errors import PageError
from web.routes import number, open_session
from web.site import site_of
from web.viewer import THEMES
from web.visitor import LANGUAGE_COOKIE, THEME_COOKIE, viewer_of
from web.words import LANGUAGES

TEXT_TOP = 20_000  # characters
YEAR = 365 * 24 * 3600
# Where a form may lead back to: our own pages, with a plain query.
_OWN = re.compile(r"/(?:sessions|s/[A-Za-z0-9_-]{1,64})?(?:\?[A-Za-z0-9_=&-]{0,200})?(?:#[A-Za-z0-9_-]{0,64})?")


async def new_session(request: Request) -> Response:
    """POST /sessions: start a session of the server's lab."""
    session = await site_of(request).library.create(language=viewer_of(request).language)
    return done(request, f"/s/{session.id}", moves=True)


async def start_task(request: Request) -> Response:
    """POST /s/{session}/tasks: `sample` by its id, or `text`."""
    session, fields = await open_session(request), request.state.form
    language, sample_id = viewer_of(request).language, fields.get("sample", "")
    text = fields.get("text", "").strip()
    if sample_id:
        sample = session.lab.sample(sample_id)
        if sample is None:
            raise PageError(404, "no_sample")
        text = sample.task[language]
    if not text:
        raise PageError(422, "no_text")
    if len(text) > TEXT_TOP:
        raise PageError(422, "long_text", n=len(text), top=TEXT_TOP)
    try:
        session.start_task(text, language=language, sample=sample_id)
    except Busy:
        raise PageError(409, "busy") from None
    return done(request, f"/s/{session.id}")


async def stop(request: Request) -> Response:
    """POST /s/{session}/stop: end what runs. Nothing running is fine too."""
    session = await open_session(request)
    await session.stop()
    return done(request, f"/s/{session.id}")


async def answer(request: Request) -> Response:
    """POST /s/{session}/approvals: `call_id`, and `answer`, which is allow or deny."""
    session, fields = await open_session(request), request.state.form
    if fields.get("answer") not in ("allow", "deny"):
        raise PageError(422, "no_answer")
    if not session.answer(fields.get("call_id", ""), fields["answer"] == "allow"):
        raise PageError(409, "not_waiting")
    return done(request, f"/s/{session.id}")


async def change_budget(request: Request) -> Response:
    """POST /s/{session}/budget: `budget` in characters, in force from the next task border."""
    session = await open_session(request)
    budget = number(request.state.form.get("budget"))
    if budget is None:
        raise PageError(422, "budget", top=SETTING_MAX)
    try:
        session.change_setting("budget", budget)
    except ValueError:
        raise PageError(422, "no_budget") from None
    return done(request, f"/s/{session.id}")


async def prefer(request: Request) -> Response:
    """POST /preferences: `language` or `theme`, and `back`, the page to return to."""
    fields = request.state.form
    back = fields.get("back", "/")
    response = done(request, back if _OWN.fullmatch(back) else "/", moves=True)
    choices = (("language", LANGUAGE_COOKIE, LANGUAGES), ("theme", THEME_COOKIE, THEMES))
    for name, cookie, values in choices:
        if fields.get(name) in values:
            response.set_cookie(cookie, fields[name], max_age=YEAR, httponly=True, samesite="strict", path="/")
    return response


def done(request: Request, path: str, *, moves: bool = False) -> Response:
    """Answer a change that was made: htmx stays on its page unless the page itself `moves`."""
    if "hx-request" not in request.headers:
        return RedirectResponse(path, 303)
    return Response(status_code=204, headers={"hx-redirect": path} if moves else None)
