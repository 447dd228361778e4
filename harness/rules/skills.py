"""Skills: folders with a `SKILL.md` that tells how something is done. Only the list of them is in the context.

Blocking, but for the tool, which looks in a thread.
"""

import asyncio
import os
import posixpath
import re
from dataclasses import dataclass
from itertools import islice

from harness.escaping import escape_tags, printable
from harness.front_matter import read_front_matter
from harness.messages import clean
from harness.places import real_path
from harness.restoring import SKILL, SKILL_TOOL
from harness.rules.texts import Read, is_there, read
from harness.sources import Source
from harness.tools import Arguments, Tool, ToolError
from harness.workspace import Workspace

FOLDERS = ("skills", ".agents/skills")
# Of each folder so many entries are looked at.
MOST_ENTRIES = 200
# So many lines say what is wrong; one more counts the rest. Characters of a detail.
MOST_PROBLEMS, _DETAIL = 30, 200
# The convention's own bounds, in characters.
_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
DESCRIPTION = 1_024
# Characters of the list, and of a skill's text that the tool returns: about 5,000 tokens of English.
LIST_ROOM = 8_000
TEXT_ROOM = 20_000
LEAD = "Skills tell how things are done here. Before you do what one is for, read it with `skill`, and follow it:"


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. path: of its file, as the tools name it. text: what stands behind its head."""

    name: str
    description: str
    path: str
    text: str

    @property
    def line(self) -> str:
        """Return the skill as it stands in the list."""
        return f"- {self.name}: {escape_tags(self.description)} ({escape_tags(self.path)})"


def find_skills(workspace: Workspace) -> tuple[list[Skill], list[Source]]:
    """Return the skills of a workspace that can be offered, and what is wrong with these and with others."""
    skills: dict[str, Skill] = {}
    wrong = []
    paths, crowded = _paths(workspace)
    for path in paths:
        if not path.isprintable():
            # It would stand in the list, and with a line's end be a line of its own.
            wrong.append(Source("skills", printable(path), "", "skill_path"))
            continue
        made = read(workspace.root / path, workspace.root)
        skill, problem, detail = _skill(path, made)
        if skill and skill.name in skills:
            skill, problem, detail = None, "skill_twin", skills[skill.name].path
        if skill:
            skills[skill.name] = skill
        if problem:
            wrong.append(Source("skills", path, "", problem, detail[:_DETAIL]))
    if len(wrong) > MOST_PROBLEMS:
        wrong[MOST_PROBLEMS:] = [Source("skills", FOLDERS[0], "", "skills_more", str(len(wrong) - MOST_PROBLEMS))]
    return list(skills.values()), wrong + crowded


def skills_list(workspace: Workspace) -> list[Source]:
    """Return the list of the skills, and what is wrong with some."""
    skills, wrong = find_skills(workspace)
    lines, room = [], LIST_ROOM
    for skill in skills:
        room -= len(skill.line)
        lines += [skill.line] if room >= 0 else []
    if len(lines) < len(skills):
        wrong.append(Source("skills", FOLDERS[0], "", "skills_many", str(len(skills) - len(lines))))
    return [Source("skills", ", ".join(FOLDERS), "\n".join([LEAD, *lines])), *wrong] if lines else wrong


def skill_tool(workspace: Workspace) -> list[Tool]:
    """Return the tool that reads a skill; none where there is no skill."""

    async def run(arguments: Arguments) -> str:
        return await asyncio.to_thread(_text_of, workspace, arguments["name"])

    if not find_skills(workspace)[0]:
        return []
    parameters = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return [Tool(SKILL_TOOL, "Read a skill of the list by its name. It tells how something is done.", parameters, run)]


def _text_of(workspace: Workspace, name: str) -> str:
    skills, _ = find_skills(workspace)
    skill = next((each for each in skills if each.name == name), None)
    if skill is None:
        known = ", ".join(f"`{each.name}`" for each in skills[:MOST_ENTRIES]) or "none"
        raise ToolError(f"There is no skill `{clean(name)}`. There is: {known}.")
    lead = f"[Skill `{skill.name}` from `{skill.path}`; its paths begin at `{posixpath.dirname(skill.path)}`.]"
    text = skill.text.strip()
    if len(text) > TEXT_ROOM:
        text = text[:TEXT_ROOM] + f"\n[Cut after {TEXT_ROOM:,} characters. The rest is in `{skill.path}`.]"
    return f"{lead}\n\n{text}"


def _paths(workspace: Workspace) -> tuple[list[str], list[Source]]:
    """Return the paths of every SKILL.md, in the order in which they count, and what is wrong with their folders."""
    paths, crowded = [], []
    for folder in FOLDERS:
        if not real_path(workspace.root / folder).is_relative_to(real_path(workspace.root)):
            # Not even the names in it are read.
            crowded.append(Source("skills", folder, "", "outside"))
            continue
        try:
            with os.scandir(workspace.root / folder) as entries:
                names = sorted(entry.name for entry in islice(entries, MOST_ENTRIES))
                if next(entries, None):
                    crowded.append(Source("skills", folder, "", "skills_entries", str(MOST_ENTRIES)))
        except OSError:
            continue
        found = (f"{folder}/{name}/{SKILL}" for name in names)
        paths += [path for path in found if is_there(workspace.root / path)]
    return paths, crowded


def _skill(path: str, made: Read) -> tuple[Skill | None, str, str]:
    """Return the skill of a file, or None, and what is wrong with it: a code and its detail."""
    head = read_front_matter(made.text)
    if head is None:
        return (None, made.problem, made.detail) if made.problem else (None, "skill_header", "")
    if head.broken:
        return None, "skill_broken", str(head.broken)
    name, description = (" ".join(head.values.get(key, "").split()) for key in ("name", "description"))
    if not name or not description:
        return None, "skill_no_description" if name else "skill_no_name", ""
    if not description.isprintable():
        return None, "skill_words", ""
    if not _NAME.fullmatch(name):
        return None, "skill_name", name
    skill = Skill(name, description[:DESCRIPTION], path, head.text)
    other = posixpath.basename(posixpath.dirname(path)) != name
    return (skill, "skill_folder", name) if other else (skill, made.problem, made.detail)
