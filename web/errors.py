"""Errors as the visitor sees them: one line, in their language, as a page, a notice or plain text."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import Scope

from harness.problems import Problem
from web.access import Refusal
from web.fragments import partial
from web.headers import secured
from web.screens import render_error
from web.site import site_of
from web.updates import Update
from web.visitor import viewer_of


class PageError(Exception):
    """A request that cannot be done. `code` names the words, `values` fill them; nothing secret goes in."""

    def __init__(self, status: int, code: str, **values: object) -> None:
        super().__init__(code)
        self.status, self.code, self.values = status, code, values


def respond(request: Request, status: int, code: str, **values: object) -> Response:
    """Return the error for who asks: htmx gets the page's notice, a browser a page, others a line of text."""
    viewer = viewer_of(request)
    if "hx-request" in request.headers:
        line = viewer.words.t(f"error.{code}", **values)
        return HTMLResponse(partial(Update("notice", line, "inner")), status)
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(render_error(code, viewer, **values), status)
    return PlainTextResponse(f"{viewer.words.t(f'error.{code}', **values).unescape()}\n", status)


def refuse(scope: Scope, refusal: Refusal) -> Response:
    """Return the guard's refusal. The guard adds the headers."""
    return respond(Request(scope), refusal.status, refusal.code)


async def on_page_error(request: Request, error: Exception) -> Response:
    """Answer a PageError that a route raised."""
    assert isinstance(error, PageError), "registered for this class"
    return respond(request, error.status, error.code, **error.values)


async def on_problem(request: Request, error: Exception) -> Response:
    """Answer what a person must mend: a folder, a lab's code, the journal."""
    assert isinstance(error, Problem), "registered for this class"
    reason = viewer_of(request).words.t(f"problem.{error.code}", **error.values)
    return respond(request, 409, "problem", reason=reason)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: no such address, or not with this method."""
    assert isinstance(error, HTTPException), "registered for this class"
    return respond(request, error.status_code, "method" if error.status_code == 405 else "no_page")


async def on_failure(request: Request, error: Exception) -> Response:
    """Answer a fault of ours; the traceback goes to the log only. Outside of the guard, so it adds the headers."""
    if not hasattr(request.state, "nonce"):
        request.state.nonce = ""
    response = respond(request, 500, "failure")
    nonce, scripts = request.state.nonce, site_of(request).script_addresses
    response.raw_headers = secured(response.raw_headers, nonce, scripts)
    return response
