"""The list of sessions, read from the journal: a page of it, a search in it, and the ones to open first.

Every figure is counted from the events. A page costs what its own sessions hold, however many others there are.
Blocking: everything here is to be called in a thread.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from harness import events as e
from harness.discovery import Lab
from harness.in_force import count_in_force
from harness.journal import Journal
from harness.recorded import JournalError, decode
from harness.sizes import Size

PAGE = 50  # sessions
SEARCH_CHARS = 200
# What a line is made of: all are small, but for the texts of tasks, of which one a session is read.
_ABOUT = (
    "SessionStarted", "ExtensionsChanged", "ModelChosen", "SessionNamed", "SessionForked", "SessionImported",
    "TaskStarted", "ModelCallStarted",
)  # fmt: skip
_SEARCHED = ("SessionStarted", "ModelChosen", "SessionNamed", "TaskStarted")


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session in the list. What its events do not say, or cannot be read, is empty or None.

    time: of its newest event (Unix seconds); a new name is none. first: the first task's text. compactions: all that
    took effect; in_force: those of them that stand. largest: of the requests of its turns, summary calls apart.
    fork: which session it was forked from, and where, if that is still there. file: what it was imported from.
    """

    id: str
    time: float
    lab: str = ""
    extensions: tuple[str, ...] = ()
    model: e.ModelChosen | None = None
    name: str = ""
    first: str = ""
    tasks: int = 0
    compactions: int = 0
    in_force: int = 0
    largest: Size | None = None
    fork: e.SessionForked | None = None
    parent_there: bool = False
    file: str | None = None


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of the list, the newest activity first. number, pages: from 1. found: what the search found of `all`."""

    sessions: tuple[SessionInfo, ...]
    search: str
    found: int
    all: int
    number: int
    pages: int


def read_sessions(journal: Journal, labs: Mapping[str, Lab], *, search: str = "", number: int = 1) -> SessionPage:
    """Return one page of the sessions that hold every word of `search`; a number past the last page is that one."""
    search = " ".join(search.split())[:SEARCH_CHARS]
    newest = journal.newest(but="SessionNamed")
    found = newest
    if search:
        matching = _matching(journal, labs, search)
        found = [each for each in newest if each[0] in matching]
    pages = max(1, -(-len(found) // PAGE))
    number = min(max(1, number), pages)
    shown = dict(found[(number - 1) * PAGE : number * PAGE])
    return SessionPage(tuple(_read(journal, shown)), search, len(found), len(newest), number, pages)


def read_session(journal: Journal, session: str) -> SessionInfo | None:
    """Return one session as the list has it, or None where there is none."""
    newest = dict(journal.newest(but="SessionNamed"))
    return next(_read(journal, {session: newest[session]})) if session in newest else None


def own_sessions(journal: Journal, lab: str, extensions: tuple[str, ...], source: str) -> Iterator[str]:
    """Yield the sessions that were started here with these, the newest activity first.

    A fork counts as what it was forked from did, for it works in a copy of the same folder; only its activity is its
    own. An imported session is left out: it was started elsewhere, and no work of this folder is in it.
    """
    newest = [session for session, _ in journal.newest(but="SessionNamed")]
    for place in range(0, len(newest), PAGE):
        some = newest[place : place + PAGE]
        fits: set[str] = set()
        for session, _, _, kind, body in journal.rows(some, ("SessionStarted", "SessionImported")):
            with contextlib.suppress(JournalError):
                match decode(kind, body):
                    case e.SessionStarted() as event:
                        started = (event.lab, event.extensions, event.source)
                        fits |= {session} if started == (lab, extensions, source) else set()
                    case e.SessionImported():
                        fits.discard(session)
        yield from (session for session in some if session in fits)


def _read(journal: Journal, shown: Mapping[str, float]) -> Iterator[SessionInfo]:
    infos = {session: SessionInfo(session, time) for session, time in shown.items()}
    for session, _, _, kind, body in journal.rows(shown, _ABOUT):
        if kind == "TaskStarted":
            infos[session] = replace(infos[session], tasks=infos[session].tasks + 1)
            if infos[session].tasks > 1:
                continue
        # What this version cannot read must not hide the rest, nor keep the session from being deleted.
        with contextlib.suppress(JournalError):
            infos[session] = _with(infos[session], decode(kind, body))
    made = journal.count(shown, ("ContextCompacted", "CompactionUndone", "TaskResumed"))
    resumed = count_in_force(journal, {session for session, kind in made if kind == "TaskResumed"})
    parents = {info.fork.session for info in infos.values() if info.fork}
    there = {session for session, *_ in journal.rows(parents, ("SessionStarted",))}
    for session, info in infos.items():
        compactions, undone = (made.get((session, kind), 0) for kind in ("ContextCompacted", "CompactionUndone"))
        known = info.fork is not None and info.fork.session in there
        in_force = resumed.get(session, compactions - undone)
        yield replace(info, compactions=compactions, in_force=in_force, parent_there=known)


def _with(info: SessionInfo, event: e.Event) -> SessionInfo:
    """Return what is known of a session once one more of its events is read."""
    match event:
        case e.SessionStarted():
            return replace(info, lab=event.lab, extensions=event.extensions)
        case e.ExtensionsChanged(extensions=extensions):
            return replace(info, extensions=extensions)
        case e.ModelChosen():
            return replace(info, model=event)
        case e.SessionNamed(name=name):
            return replace(info, name=name)
        case e.SessionForked():
            return replace(info, fork=event)
        case e.SessionImported(file=file):
            return replace(info, file=file)
        case e.TaskStarted(text=text):
            return replace(info, first=text)
        case e.ModelCallStarted(parts=parts):
            size = sum(parts.values(), Size())
            return replace(info, largest=max(info.largest or Size(), size, key=lambda each: each.chars))
        case _:
            return info


def _matching(journal: Journal, labs: Mapping[str, Lab], search: str) -> set[str]:
    """Return the sessions in which every word of `search` stands: in name, lab, model or a task, whatever its case."""
    words = set(search.casefold().split())
    found: dict[str, set[str]] = defaultdict(set)
    newest: dict[tuple[str, str], str] = {}
    for session, _, _, kind, body in journal.rows(None, _SEARCHED):
        with contextlib.suppress(JournalError):
            text = " ".join(_said(decode(kind, body), labs)).casefold()
            # Only the name and the model that are in force, which are the last of their session.
            if kind in ("ModelChosen", "SessionNamed"):
                newest[session, kind] = text
            else:
                found[session] |= {word for word in words if word in text}
    for (session, _), text in newest.items():
        found[session] |= {word for word in words if word in text}
    return {session for session, has in found.items() if has == words}


def _said(event: e.Event, labs: Mapping[str, Lab]) -> Iterable[str]:
    match event:
        case e.SessionStarted(lab=number):
            lab = labs.get(number)
            return (number, lab.name, *lab.title.values()) if lab else (number,)
        case e.ModelChosen(model=model):
            return (model,)
        case e.SessionNamed(name=name):
            return (name,)
        case e.TaskStarted(text=text):
            return (text,)
        case _:
            return ()
