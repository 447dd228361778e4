"""The notes that outlive a session, as its page shows them: offered to it, and kept since. Reading them blocks."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from harness.events import Event, InstructionsSet, ToolEnded
from harness.messages import clean
from harness.notes.folder import look
from harness.notes.note import TEXT_CHARS, Note
from harness.notes.offered import names_offered
from harness.workspace import Workspace
from web.shown import Shown
from web.viewer import Viewer

# So many notes are shown with their text; all of them lie in the folder.
MOST = 60


@dataclass(frozen=True, slots=True)
class NotesView:
    """What the page shows. folder: where the notes lie. offered: those in the session's list, as they are now.

    since: those that the next session will be offered too. gone: names in the list whose notes are gone. more: how
    many are not shown. cut: whether the list left notes out, which then stand in `since`. top: characters of a note
    that the agent reads.
    """

    folder: str
    offered: tuple[Note, ...]
    since: tuple[Note, ...]
    gone: tuple[str, ...]
    more: int
    cut: bool
    top: int = TEXT_CHARS


def read_notes(workspace: Workspace) -> NotesView | None:
    """Return the notes of a session's folder, or None where it has no place for any."""
    if workspace.notes is None:
        return None
    notes = look(workspace.notes).notes
    # Without a list of its own the session is offered what is there.
    listed = names_offered(workspace.offered) if workspace.offered else {note.name for note in notes}
    gone = sorted(listed - {note.name for note in notes})
    shown = notes[:MOST]
    old, new = _those(shown, listed, True), _those(shown, listed, False)
    cut = bool(workspace.offered) and workspace.offered.problem == "notes_cut"
    return NotesView(clean(str(workspace.notes)), old, new, tuple(gone[:MOST]), len(notes) - len(shown), cut)


def remembers(session: Shown, viewer: Viewer) -> bool:
    """Whether the page has a place for notes: while the session is offered a list of them; a past moment has none."""
    made = session.state.instructions
    listed = made and any(told.kind == "memory" and told.end > told.start for told in made.sources)
    return bool(listed) and not viewer.at


def changes_notes(event: Event) -> bool:
    """Whether the notes on an open page may be others after this."""
    return isinstance(event, InstructionsSet) or (isinstance(event, ToolEnded) and event.name in ("remember", "forget"))


def render_card(session: Shown, viewer: Viewer) -> Markup:
    """Return the place for the notes, which the browser then asks for."""
    shown = {"session_id": session.id, "remembers": remembers(session, viewer)}
    return viewer.block("session.html", "notes_card", **shown)


def render_list(session: Shown, viewer: Viewer, notes: NotesView) -> Markup:
    """Return the list alone."""
    return viewer.block("notes.html", "notes", notes=notes, session_id=session.id)


def render_page(session: Shown, viewer: Viewer, notes: NotesView) -> str:
    """Return the list as a page of its own, for a browser without scripts."""
    return viewer.page("notes.html", notes=notes, session_id=session.id, back=f"/s/{session.id}/notes")


def _those(notes: Iterable[Note], names: set[str], inside: bool) -> tuple[Note, ...]:
    return tuple(note for note in notes if (note.name in names) is inside)
