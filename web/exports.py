"""A session handed on as a file: one page that stands alone, or a trajectory for other tools. Both are masked."""

import asyncio
import json
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from harness.exporting.atif import trajectory_of
from harness.messages import clean
from web.errors import PageError
from web.handout import handout
from web.moment import moment_of
from web.routes import open_session, settled
from web.site import site_of
from web.visitor import viewer_of

# How the file of a format ends; JSONL, which is not masked, is `harness.exchange`'s.
ENDINGS = {"jsonl": ".jsonl", "atif": ".atif.json", "html": ".html"}


def file_name(session: str, form: str) -> str:
    """Return what a session's file is called; an id that the journal knows has letters, digits, "-" and "_"."""
    return f"context-lab-{session}{ENDINGS[form]}"


def atif_text(session: str, records: list) -> str:  # type: ignore[type-arg]
    """Return a session's trajectory as text. Blocking. Problem: nothing happened in it yet."""
    return clean(json.dumps(trajectory_of(session, records), ensure_ascii=False, indent=1)) + "\n"


async def as_html(request: Request) -> Response:
    """GET /s/{session}/export.html: the session as one file, in the visitor's language and unit."""
    session = await open_session(request)
    await settled(session)
    moment = await moment_of(session, session.committed)
    viewer = viewer_of(request)
    return await _file(session.id, "html", "text/html", lambda: handout(moment, viewer))


async def as_atif(request: Request) -> Response:
    """GET /s/{session}/export.atif.json: the session as a trajectory, all that is committed."""
    journal, session_id = site_of(request).library.journal, request.path_params["session"]
    records = await asyncio.to_thread(journal.read, session_id)
    if not records:
        raise PageError(404, "no_session")
    return await _file(session_id, "atif", "application/json", lambda: atif_text(session_id, records))


async def _file(session: str, form: str, kind: str, make: Callable[[], str]) -> Response:
    text = await asyncio.to_thread(make)
    name = {"content-disposition": f'attachment; filename="{file_name(session, form)}"'}
    return Response(text, headers=name, media_type=f"{kind}; charset=utf-8")
