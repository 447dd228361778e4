"""The roles that sub-agents can have, each in a Markdown file: what is read, what is offered, what is wrong with one.

    ---
    name: explorer
    description: Looks things up and reports. Changes nothing.
    tools: read, search              # may be left out: then all that only look
    ---
    You look things up …

Bounded, whatever lies in the folder. Blocking, so callers use a thread.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harness.escaping import escape_tags, printable
from harness.front_matter import read_front_matter
from harness.messages import clean
from harness.rules.texts import Read, read
from harness.sources import Source
from harness.workspace import Workspace

FOLDER = ".context-lab/roles"
MOST_ROLES, MOST_ENTRIES = 30, 300
DESCRIPTION_CHARS = 300
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_TOOLS = re.compile(r"[\s,\[\]\"']+")
_DETAIL = 200


@dataclass(frozen=True, slots=True)
class Role:
    """A role. file: where it stands. tools: the names of those that it may use, None: all that only look."""

    name: str
    description: str
    text: str
    file: str
    tools: tuple[str, ...] | None = None

    @property
    def line(self) -> str:
        """Return its line in the list."""
        return f"- {self.name}: {escape_tags(self.description)}"


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles that can be had, in order, and a source without text for each thing that was wrong."""

    roles: tuple[Role, ...] = ()
    problems: tuple[Source, ...] = ()

    def role(self, name: str) -> Role | None:
        """Return the role of this name."""
        return next((role for role in self.roles if role.name == name), None)


def files_in(folder: Path, path: str) -> list[str] | None:
    """Return the names of the role files at a path in a folder, in order; what cannot be read has none.

    None: a link leads out of the folder, so not even names are read.
    """
    try:
        if not (folder / path).resolve().is_relative_to(folder.resolve()):
            return None
        with os.scandir(folder / path) as entries:
            return sorted(each.name for each in islice(entries, MOST_ENTRIES) if each.name.lower().endswith(".md"))
    except (OSError, RuntimeError):
        return []


def read_roles(places: Iterable[tuple[Path, str]], workspace: Workspace | None = None) -> Roles:
    """Return the roles of several places, each a folder and a path in it. Of twins the first one stands.

    No link may lead out of the folder. Of those in the workspace only what a person accepted is offered.
    """
    found: dict[str, Role] = {}
    problems: list[Source] = []
    for folder, path in places:
        names = files_in(folder, path)
        if names is None:
            problems.append(Source("roles", path, "", "outside"))
            continue
        for name in names[:MOST_ROLES]:
            file = printable(f"{path}/{name}")
            made = read(folder / path / name, folder)
            role, *wrong = _role(file, made)
            if role and role.name in found:
                role, wrong = None, ["role_twin", found[role.name].file]
            if role and workspace and folder == workspace.root and not workspace.accepts("roles", file, made.text):
                problems.append(Source("roles", file, "", "untrusted", wanted=made.text))
                continue
            if role:
                found[role.name] = role
            # Which tools there are is known only once every extension has added its own.
            needs = role.tools or () if role else ()
            problems.append(Source("roles", file, "", wrong[0], wrong[1][:_DETAIL], needs))
        if len(names) > MOST_ROLES:
            problems.append(Source("roles", path, "", "roles_many", str(len(names) - MOST_ROLES)))
    return Roles(tuple(found.values()), tuple(problems))


def _role(file: str, made: Read) -> tuple[Role | None, str, str]:
    """Return the role of a file or None, and what is wrong as a code of the catalogue and its detail."""
    if made.problem and not made.text:
        return None, made.problem, made.detail
    head = read_front_matter(clean(made.text))
    if head is None:
        return None, "role_header", ""
    if head.broken:
        return None, "role_broken", str(head.broken)
    name, described = head.values.get("name", ""), " ".join(head.values.get("description", "").split())
    if wrong := _wrong(name, described, head.text):
        return None, *wrong
    tools = tuple(dict.fromkeys(filter(None, _TOOLS.split(head.values["tools"])))) if "tools" in head.values else None
    return Role(name, described[:DESCRIPTION_CHARS], head.text, file, tools), made.problem, made.detail


def _wrong(name: str, description: str, text: str) -> tuple[str, str] | None:
    if not name:
        return "role_no_name", ""
    if not _NAME.fullmatch(name):
        return "role_name", name
    if not description:
        return "role_no_description", ""
    if not description.isprintable():
        return "role_words", ""
    return None if text else ("role_empty", "")
