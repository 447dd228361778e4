"""What a visitor may change. Each works from htmx (204, the stream brings the change) and from a plain form."""

import re
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from harness import by_hand
from harness.by_hand import SETTING_MAX
from harness.messages import clean
from harness.session import Busy
from web.errors import PageError
from web.routes import number, open_session
from web.viewer import TEXT_SIZES, THEMES
from web.visitor import LANGUAGE_COOKIE, SIZE_COOKIE, THEME_COOKIE, viewer_of
from web.words import LANGUAGES

TEXT_TOP = 20_000  # characters
ONS = {"yes": True, "no": False}
YEAR = 365 * 24 * 3600
# Where a form may lead back to: our own pages, with a plain query.
_OWN = re.compile(
    r"/(?:sessions|s/[\w-]{1,64}(?:/delete|/children/\d{1,6})?)?(?:\?[\w=&%+.~-]{0,3000})?(?:#[\w-]{0,64})?", re.ASCII
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


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
    # The extensions may read files: not in the event loop.
    await session.looked.look(session.extensions, session.workspace)
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
    """POST /s/{session}/approvals, or a sub-agent's: `call_id`, and `answer`, which is allow or deny."""
    session, fields = await open_session(request), request.state.form
    if fields.get("answer") not in ("allow", "deny"):
        raise PageError(422, "no_answer")
    child = request.path_params.get("child", 0)
    if not session.answer(fields.get("call_id", ""), fields["answer"] == "allow", child):
        raise PageError(409, "not_waiting")
    return done(request, f"/s/{session.id}")


async def change_budget(request: Request) -> Response:
    """POST /s/{session}/budget: `budget` in characters, in force from the next task border."""
    session = await open_session(request)
    budget = number(request.state.form.get("budget"))
    if budget is None:
        raise PageError(422, "budget", top=SETTING_MAX)
    try:
        by_hand.change_setting(session, "budget", budget)
    except ValueError:
        raise PageError(422, "no_budget") from None
    return done(request, f"/s/{session.id}")


async def tick(request: Request) -> Response:
    """POST /s/{session}/ticks: `tick` by its id, and `on`, which is yes or no; not for what the journal proves."""
    session, fields = await open_session(request), request.state.form
    wanted = fields.get("tick", "")
    if not any(each.id == wanted and each.proof is None for each in session.lab.ticks) or fields.get("on") not in ONS:
        raise PageError(404, "no_tick")
    by_hand.tick(session, wanted, on=ONS[fields["on"]])
    return done(request, f"/s/{session.id}#guide-ticks")


async def prefer(request: Request) -> Response:
    """POST /preferences: `language`, `theme` or `size`, and `back`, the page to return to."""
    fields = request.state.form
    response = done(request, own_page(fields.get("back", "/")) or "/", moves=True)
    choices = {
        "language": (LANGUAGE_COOKIE, LANGUAGES),
        "theme": (THEME_COOKIE, THEMES),
        "size": (SIZE_COOKIE, TEXT_SIZES),
    }
    for name, (cookie, values) in choices.items():
        if fields.get(name) in values:
            response.set_cookie(cookie, fields[name], max_age=YEAR, httponly=True, samesite="strict", path="/")
    return response


def own_page(address: str) -> str:
    """Return where a form leads back to, as a header may hold it, or "" where that is no page of ours.

    own_page("/sessions?q=é") -> "/sessions?q=%C3%A9"
    """
    # Only what is no ASCII is encoded: a line break in an address is no search of ours.
    address = _NOT_ASCII.sub(lambda found: quote(found[0]), clean(address))
    return address if _OWN.fullmatch(address) else ""


def done(request: Request, path: str, *, moves: bool = False) -> Response:
    """Answer a change that was made: htmx stays on its page unless the page itself `moves`."""
    if "hx-request" not in request.headers:
        return RedirectResponse(path, 303)
    return Response(status_code=204, headers={"hx-redirect": path} if moves else None)
