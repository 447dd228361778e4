"""The rules that hold for a workspace: one file a folder, the user's own first, then from far to near.

Blocking: callers run it in a thread.
"""

import html
from collections.abc import Iterator
from pathlib import Path

from harness.escaping import escape_tags, printable
from harness.places import real_path
from harness.rules.places import home
from harness.rules.texts import is_there, read
from harness.sources import Source
from harness.workspace import Workspace

# Of each folder the first of these that is there.
NAMES = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
# Characters of all rules together; where they do not fit, the far ones are left out.
ROOM = 65_536


def project_rules(workspace: Workspace) -> list[Source]:
    """Return the rules, from far to near, each in a tag with its path; also those that could not be taken, with why."""
    found, room = [], ROOM
    for folder, within in reversed(list(_folders(workspace))):
        path = next((folder / name for name in NAMES if is_there(folder / name)), None)
        if path is None:
            continue
        name = path.name if folder == workspace.root else str(path)
        made = read(path, within)
        if len(made.text) > room:
            found.append(Source("rules", name, "", "no_room", f"{ROOM:,}"))
            continue
        room -= len(made.text)
        text = in_tag(name, made.text) if made.text.strip() else ""
        found.append(Source("rules", name, text, made.problem, made.detail))
    return found[::-1]


def in_tag(path: str, text: str) -> str:
    """Return rules in a tag that names their file and that they cannot close."""
    safe = escape_tags(text.strip())
    return f'<project_instructions path="{html.escape(printable(path))}">\n{safe}\n</project_instructions>'


def _folders(workspace: Workspace) -> Iterator[tuple[Path, Path | None]]:
    """Yield the folders to look into, from far to near, each with the folder that links in it may not leave.

    The workspace is the session's copy, and the folders around it are those of the folder that was copied.
    """
    own = home()
    if own:
        yield own, None
    around = reversed(real_path(workspace.source).parents) if workspace.source else ()
    for folder in around:
        if folder != own:
            yield folder, folder
    yield workspace.root, workspace.root
