"""What the tools for notes do, each said in one text: a ToolError says what was wrong and what to do instead.

Blocking, so callers use a thread.
"""

import difflib
from pathlib import Path

from harness.coding_tools.text_file import why
from harness.notes import told
from harness.notes.folder import look, place
from harness.notes.keeping import Changed, Full, Unlisted, check_place, forget, keep, new_name, twin
from harness.notes.note import LIST, TEXT_CHARS, TITLE_CHARS, Note, one_line, tidy
from harness.tools import Arguments, ToolError

_BROKEN = "The notes cannot be changed: {reason}. Nothing was changed; tell the user."
_UNLISTED = "\nThe list of the notes could not be written: {reason}. The next change makes it anew; tell the user."


def drafted(folder: Path, arguments: Arguments) -> Note:
    """Return the note that `title` and `text` would become. ToolError: they are too long, or it is there already."""
    title, text = one_line(arguments["title"]), tidy(arguments["text"]).strip()
    for what, given, most in (("title", title, TITLE_CHARS), ("text", text, TEXT_CHARS)):
        if not 0 < len(given) <= most:
            raise ToolError(f"The {what} must have 1 to {most:,} characters, not {len(given):,}. Nothing was kept.")
    if same := twin(look(folder), title, text):
        raise ToolError(f"A note that says this is there already: `{same.name}`. Nothing was changed.")
    try:
        check_place(folder)
        return Note(new_name(folder, title), title, text)
    except OSError as error:
        raise ToolError(_BROKEN.format(reason=why(error))) from None


def remember(folder: Path, arguments: Arguments) -> str:
    """Keep a note and say under which name."""
    draft = drafted(folder, arguments)
    try:
        return told.kept(keep(folder, draft.title, draft.text))
    except Unlisted as error:
        return told.kept(error.note) + _UNLISTED.format(reason=error.reason)
    except Full:
        raise ToolError("There are as many notes as there may be. Forget one first; ask the user which.") from None
    except OSError as error:
        raise ToolError(_BROKEN.format(reason=why(error))) from None


def find(folder: Path, name: str) -> Note:
    """Return a note. ToolError: there is none of this name, and which come near."""
    found = look(folder)
    note = found.note(name)
    if note:
        return note
    names = [each.name for each in found.notes]
    near = difflib.get_close_matches(name, names, 5, 0.3) or names[:5]
    hint = f"There are: {', '.join(f'`{each}`' for each in near)}." if near else "There are none at all."
    raise ToolError(f"There is no note `{name[:100]}` now. {hint} `recall` with the name `{LIST}` lists all.")


def recall(folder: Path, name: str) -> str:
    """Return a note as it is now, or, of the name `index`, the list of all. ToolError: there is no such note."""
    if name.removesuffix(".md") == LIST:
        return "\n".join(note.line for note in look(folder).notes) or "[There are no notes now.]"
    note = find(folder, name)
    if len(note.text) <= TEXT_CHARS:
        return note.content
    mark = f"[The first {TEXT_CHARS:,} of {len(note.text):,} characters are shown.]"
    return f"# {note.title}\n\n{note.text[:TEXT_CHARS]}\n{mark}"


def forget_note(folder: Path, name: str, digest: str) -> str:
    """Remove a note and say so. digest: of the note that a person saw."""
    note = find(folder, name)
    try:
        return told.forgotten(forget(folder, note.name, digest))
    except Unlisted as error:
        return told.forgotten(error.note) + _UNLISTED.format(reason=error.reason)
    except (KeyError, Changed):
        raise ToolError(f"The note `{note.name}` changed meanwhile, so it was left. Recall it and ask again.") from None
    except OSError as error:
        raise ToolError(_BROKEN.format(reason=why(error))) from None


def shown(folder: Path, note: Note, sign: str) -> str:
    """Return a note as a person sees it before it is kept, "+", or removed, "-"."""
    return f"{sign} {place(folder, note.name)}.md\n\n{note.content}"
