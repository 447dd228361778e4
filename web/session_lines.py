"""The list of sessions as a page, and the question before one is deleted. Knows no requests and no responses."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from harness.by_hand import NAME_CHARS
from harness.discovery import Lab
from harness.session_list import SessionInfo, SessionPage
from harness.sizes import Size
from web.guide import in_language
from web.viewer import Viewer

NAME_SHOWN = 90  # characters of a first task that stand for a name


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One line of the list. `when` is the server's local time; what is unknown is empty or None.

    name: that a person gave, else the first task's text, clipped. lab: its number and title, extensions: theirs.
    in_force: compactions that stand, of all. parent: the id of the session it was forked from, if that is there.
    """

    id: str
    given: str
    name: str
    when: str
    lab: str
    extensions: tuple[str, ...]
    model: str
    offline: bool
    tasks: int
    in_force: int
    compactions: int
    largest: Size | None
    forked_after: int | None
    parent: str
    file: str | None


def render_sessions(page: SessionPage, labs: Mapping[str, Lab], viewer: Viewer, problem: str = "") -> str:
    """Return one page of the list. problem: why something was not done, in words."""
    return viewer.page(
        "sessions.html",
        lines=[_line(info, labs, viewer) for info in page.sessions],
        page=page,
        problem=problem,
        longest=NAME_CHARS,
        newer=_address(page, page.number - 1) if page.number > 1 else "",
        older=_address(page, page.number + 1) if page.number < page.pages else "",
        back=_address(page, page.number),
    )


def render_deletion(info: SessionInfo, events: int, labs: Mapping[str, Lab], viewer: Viewer) -> str:
    """Return the page that asks before a session with so many events is deleted."""
    line = _line(info, labs, viewer)
    return viewer.page("sessions/delete.html", line=line, events=events, back=f"/s/{info.id}/delete")


def _line(info: SessionInfo, labs: Mapping[str, Lab], viewer: Viewer) -> SessionLine:
    first = " ".join(info.first.split())
    clipped = first if len(first) <= NAME_SHOWN else f"{first[:NAME_SHOWN]}…"

    def named(number: str) -> str:
        return f"{number} · {in_language(labs[number].title, viewer.language)}" if number in labs else number

    # What a file brought along was forked elsewhere, unless that session is here.
    fork = info.fork if info.parent_there or info.file is None else None
    return SessionLine(
        id=info.id,
        given=info.name,
        name=info.name or clipped,
        when=time.strftime("%Y-%m-%d %H:%M", time.localtime(info.time)),
        lab=named(info.lab),
        extensions=tuple(map(named, info.extensions)),
        model=info.model.model if info.model else "",
        offline=info.model is not None and info.model.offline,
        tasks=info.tasks,
        in_force=info.in_force,
        compactions=info.compactions,
        largest=info.largest,
        forked_after=fork.task if fork else None,
        parent=fork.session if fork and info.parent_there else "",
        file=info.file,
    )


def _address(page: SessionPage, number: int) -> str:
    asked = ({"q": page.search} if page.search else {}) | ({"page": str(number)} if number > 1 else {})
    return "/sessions" + (f"?{urlencode(asked)}" if asked else "")
