"""The web application: routes, the guard in front of them, and how its streams come to an end."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from harness.library import Library
from harness.problems import Problem
from web import (
    assets,
    changes,
    child_pages,
    errors,
    exports,
    fork_changes,
    hand_changes,
    routes,
    sessions,
    setting_changes,
)
from web.channel import Channels
from web.checkpoint_changes import end_stage, resume_task
from web.guard import Guard
from web.note_changes import forget_note, show_notes
from web.pages import Pages
from web.sending_changes import send_again, show_sending
from web.settings import WebSettings
from web.site import Site
from web.trust_changes import answer_trust

# Said here, since some machines keep other types in their own tables and the browser then refuses a module.
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}


class Static(StaticFiles):
    """Our files. What has a version in its name never changes; the rest is asked for again each time."""

    def file_response(self, full_path: str, *args: object, **kwargs: object) -> Response:
        """Return the file with its type and how long it may be kept."""
        response = super().file_response(full_path, *args, **kwargs)  # type: ignore[arg-type]
        path = Path(full_path)
        if path.suffix in TYPES and isinstance(response, FileResponse):
            response.headers["content-type"] = f"{TYPES[path.suffix]}; charset=utf-8"
        forever = path.parent.name == "vendor"
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if forever else "no-cache"
        return response


def create_app(library: Library, settings: WebSettings) -> Starlette:
    """Return the app. Call it in the event loop that will serve it; `end_streams` before it shuts down."""
    site = Site(
        library=library,
        settings=settings,
        pages=Pages.load(labs=library.setup.labs),
        assets=assets.load(),
        channels=Channels(),
    )
    scripts, uploads = site.script_addresses, (sessions.IMPORT,)
    guard = Middleware(Guard, settings=settings, refuse=errors.refuse, scripts=scripts, uploads=uploads)
    app = Starlette(
        routes=all_routes(),
        middleware=[guard],
        exception_handlers={
            errors.PageError: errors.on_page_error,
            Problem: errors.on_problem,
            HTTPException: errors.on_http_error,
            Exception: errors.on_failure,
        },
    )
    app.state.site = site
    return app


def all_routes() -> list[BaseRoute]:
    """Return every route of the app."""
    return [*_pages(), *_changes(), Mount("/static", Static(directory=assets.STATIC))]


def _pages() -> list[BaseRoute]:
    return [
        Route("/", routes.start),
        Route("/sessions", sessions.show),
        Route("/s/{session}/delete", sessions.ask_to_delete),
        Route("/s/{session}/export.jsonl", sessions.export),
        Route("/s/{session}/export.html", exports.as_html),
        Route("/s/{session}/export.atif.json", exports.as_atif),
        Route("/s/{session}", routes.session_page),
        Route("/s/{session}/panel", routes.panel),
        Route("/s/{session}/dry-run", routes.dry_run),
        Route("/s/{session}/earlier", routes.earlier),
        Route("/s/{session}/events", routes.events),
        Route("/s/{session}/state", routes.state),
        Route("/s/{session}/calls/{call:int}", routes.model_call),
        Route("/s/{session}/children/{child:int}", child_pages.child_page),
        Route("/s/{session}/children/{child:int}/rows", child_pages.child_rows),
        Route("/s/{session}/children/{child:int}/calls/{call:int}", routes.model_call),
        Route("/s/{session}/by-hand", hand_changes.preview),
        Route("/s/{session}/numbers", routes.session_page),
        Route("/s/{session}/notes", show_notes),
        Route("/s/{session}/sending", show_sending),
        Route("/s/{session}/settings.toml", setting_changes.settings_file),
        Route("/healthz", routes.health),
        Route("/favicon.ico", routes.no_icon),
    ]


def _changes() -> list[BaseRoute]:
    return [
        Route("/sessions", sessions.create, methods=["POST"]),
        Route(sessions.IMPORT, sessions.bring_in, methods=["POST"]),
        Route("/s/{session}/name", sessions.rename, methods=["POST"]),
        Route("/s/{session}/delete", sessions.delete, methods=["POST"]),
        Route("/s/{session}/tasks", changes.start_task, methods=["POST"]),
        Route("/s/{session}/stop", changes.stop, methods=["POST"]),
        Route("/s/{session}/resume", resume_task, methods=["POST"]),
        Route("/s/{session}/stage", end_stage, methods=["POST"]),
        Route("/s/{session}/forks", fork_changes.fork_session, methods=["POST"]),
        Route("/s/{session}/approvals", changes.answer, methods=["POST"]),
        Route("/s/{session}/children/{child:int}/approvals", changes.answer, methods=["POST"]),
        Route("/s/{session}/compact", hand_changes.compact, methods=["POST"]),
        Route("/s/{session}/undo", hand_changes.undo, methods=["POST"]),
        Route("/s/{session}/summary", hand_changes.answer_summary, methods=["POST"]),
        Route("/s/{session}/budget", changes.change_budget, methods=["POST"]),
        Route("/s/{session}/ticks", changes.tick, methods=["POST"]),
        Route("/s/{session}/numbers", setting_changes.change_numbers, methods=["POST"]),
        Route("/s/{session}/preset", setting_changes.choose_preset, methods=["POST"]),
        Route("/s/{session}/extensions", setting_changes.change_extensions, methods=["POST"]),
        Route("/s/{session}/fault", setting_changes.choose_fault, methods=["POST"]),
        Route("/s/{session}/sending", send_again, methods=["POST"]),
        Route("/s/{session}/trust", answer_trust, methods=["POST"]),
        Route("/s/{session}/notes", forget_note, methods=["POST"]),
        Route("/preferences", changes.prefer, methods=["POST"]),
    ]


def end_streams(app: Starlette) -> None:
    """End every open stream. The server calls it when it is asked to end, before it waits for connections."""
    app.state.site.channels.close()
