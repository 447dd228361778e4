"""What a session was offered when it began, taken from its own journal: so the system prompt stays the same.

No file is believed for it: the agent could write in one, and a project could bring one along. Only the list is kept,
not the notes: what is forgotten is gone, and a note is read as it is now.
"""

import html
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from harness.notes.index import name_in
from harness.notes.note import Note
from harness.replay import State
from harness.sources import Source
from harness.workspace import Workspace

# Earlier versions kept the list in the workspace, so a project or an agent may think that it counts there.
FOLDER = ".memory"
LIST_CHARS = 8_000
_OPEN, _CLOSE = "\n<notes>\n", "\n</notes>"


def remembering(workspace: Workspace, state: State) -> Workspace:
    """Return the workspace with the list in force, which this session itself made and no imported file."""
    own = takewhile(lambda made: made.seq > state.imported, reversed(state.instructed))
    lists = (
        Source("memory", told.name, made.event.system[told.start : told.end], told.problem, told.detail)
        for made in own
        for told in reversed(made.event.sources)
        if told.kind == "memory" and told.end > told.start
    )
    return replace(workspace, offered=next(lists, None))


def names_offered(source: Source) -> set[str]:
    """Return the names of the notes that a list in the system prompt shows."""
    lines = source.text.partition(_OPEN)[2].rpartition(_CLOSE)[0].splitlines()
    return {name_in(html.unescape(line)) for line in lines} - {""}


def listed(notes: Sequence[Note]) -> tuple[str, int]:
    """Return the lines as the system prompt has them, and how many did not fit. No line can close a tag."""
    shown: list[str] = []
    room = LIST_CHARS
    for note in notes:
        safe = html.escape(note.line, quote=False)
        if len(safe) + 1 > room:
            break
        shown.append(safe)
        room -= len(safe) + 1
    return "\n".join(shown), len(notes) - len(shown)
