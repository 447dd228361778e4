"""`SYSTEM.md`, which takes the place of the prompt's body, and `APPEND_SYSTEM.md`, which adds to it.

A project's own counts before the user's, and only once a person accepted it as it is. Blocking: callers run it in a
thread.
"""

from pathlib import Path

from harness.rules.places import home
from harness.rules.texts import is_there, read
from harness.session_events import SourceKind
from harness.sources import Source
from harness.workspace import Workspace

FOLDER = ".context-lab"
FILES: tuple[tuple[str, SourceKind], ...] = (("SYSTEM.md", "body"), ("APPEND_SYSTEM.md", "prompt"))


def own_prompts(workspace: Workspace) -> list[Source]:
    """Return of each of the two files the one that counts; before it the project's, where that is not trusted."""
    found = []
    for file, kind in FILES:
        own, name = workspace.root / FOLDER / file, f"{FOLDER}/{file}"
        if is_there(own):
            made = _source(kind, name, own, workspace.root)
            if not made.text or workspace.accepts(kind, name, made.text):
                found.append(made)
                continue
            found.append(Source(kind, name, "", "untrusted", wanted=made.text))
        folder = home()
        if folder and is_there(folder / file):
            found.append(_source(kind, str(folder / file), folder / file, None))
    return found


def _source(kind: SourceKind, name: str, path: Path, within: Path | None) -> Source:
    made = read(path, within)
    return Source(kind, name, made.text, made.problem, made.detail)
