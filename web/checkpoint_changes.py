"""What a visitor does in a long task: goes on from a checkpoint, marks the end of a stage."""

from starlette.requests import Request
from starlette.responses import Response

from harness import stages
from harness.reopening import resume
from harness.session import Busy
from web.changes import done
from web.errors import PageError
from web.routes import number, open_session


async def resume_task(request: Request) -> Response:
    """POST /s/{session}/resume: `number` of a checkpoint of the newest task, which goes on from there."""
    session = await open_session(request)
    try:
        await resume(session, number(request.state.form.get("number")) or 0, "person")
    except Busy:
        raise PageError(409, "busy") from None
    return done(request, f"/s/{session.id}")


async def end_stage(request: Request) -> Response:
    """POST /s/{session}/stage: the stage is over; `name` may say which one. Also while a task runs."""
    session = await open_session(request)
    # The extensions may read files: not in the event loop.
    await session.looked.look(session.extensions, session.workspace)
    stages.end_stage(session, request.state.form.get("name", ""))
    return done(request, f"/s/{session.id}")
