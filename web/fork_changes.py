"""Forking a session: it makes another one and changes nothing in the one that it comes from."""

from starlette.requests import Request
from starlette.responses import Response

from harness.copies.fork import fork
from harness.session import Busy
from web.changes import done
from web.errors import PageError
from web.routes import number, open_session
from web.site import site_of


async def fork_session(request: Request) -> Response:
    """POST /s/{session}/forks: `task`, from whose end the new session goes on; 0 is before the first one."""
    session, task = await open_session(request), number(request.state.form.get("task"))
    if task is None:
        raise PageError(404, "no_task")
    try:
        made = await fork(site_of(request).library, session, task)
    except KeyError:
        raise PageError(404, "no_task") from None
    except Busy:
        raise PageError(409, "fork_busy", task=task) from None
    return done(request, f"/s/{made.id}", moves=True)
