"""Finds the labs: one folder `labs/NN-name/` each, with `lab.toml`, texts and perhaps `extension.py`.

A lab can be named by number ("07", "7") or by name ("context-management").
"""

import importlib.util
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.hooks import Extension, from_module
from harness.problems import Problem

Text = dict[str, str]  # language -> words
BASE_LAB = "01"


class LabError(Problem):
    """A lab is unknown, or its files are broken."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One task to click: what is sent, and what to look for."""

    id: str
    task: Text
    watch: Text


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """Samples with one learning goal."""

    title: Text
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Lab:
    """One lab. `demo` names a folder in demo_workspace; `settings` are whole numbers by name."""

    number: str
    name: str
    folder: Path
    title: Text
    goal: Text
    demo: str
    settings: dict[str, int]
    groups: tuple[SampleGroup, ...]
    compacts: bool

    def text(self, language: str) -> str:
        """Return the lab's text in Markdown, or "" when it has none in that language."""
        path = self.folder / ("README.zh.md" if language == "zh" else "README.md")
        return path.read_text("utf-8") if path.is_file() else ""

    def sample(self, sample_id: str) -> Sample | None:
        """Return the sample with this id, or None."""
        return next((s for group in self.groups for s in group.samples if s.id == sample_id), None)


def find_labs(folder: Path) -> dict[str, Lab]:
    """Return every lab in `folder` by number, in order. LabError: a lab.toml is broken, or two have one number."""
    labs: dict[str, Lab] = {}
    for lab in map(_read, sorted(folder.glob("[0-9][0-9]-*/lab.toml"))):
        if lab.number in labs:
            raise LabError("lab_twice", number=lab.number, one=labs[lab.number].name, other=lab.name)
        labs[lab.number] = lab
    return labs


def find(labs: dict[str, Lab], wanted: str) -> Lab:
    """Return the lab that `wanted` names. LabError lists what there is."""
    number = wanted.zfill(2)
    for lab in labs.values():
        if number == lab.number or wanted == lab.name:
            return lab
    known = ", ".join(f"{lab.number} ({lab.name})" for lab in labs.values())
    raise LabError("lab_unknown", name=wanted, known=known)


def load(lab: Lab) -> Extension:
    """Import the lab's extension.py; a lab without one has no hooks. LabError: it cannot be imported."""
    path = lab.folder / "extension.py"
    if not path.is_file():
        return Extension(lab.name)
    module_name = f"lab_{lab.number}_extension"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec and spec.loader, "a path that ends in .py always has a loader"
    module = importlib.util.module_from_spec(spec)
    # A dataclass with postponed annotations looks its module up while it is still being run.
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a lab's code is not ours: whatever it raises becomes one line
        raise LabError("lab_broken", file=f"{path.parent.name}/{path.name}", reason=repr(error)) from error
    return from_module(lab.name, module, compacts=lab.compacts)


def _read(path: Path) -> Lab:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
        return Lab(
            number=path.parent.name[:2],
            name=path.parent.name[3:],
            folder=path.parent,
            title=table["title"],
            goal=table["goal"],
            demo=table["demo"],
            settings=table.get("settings", {}),
            groups=tuple(_group(group) for group in table.get("groups", [])),
            compacts=table.get("compacts", False),
        )
    except (KeyError, OSError, ValueError) as error:
        raise LabError("lab_broken", file=f"{path.parent.name}/{path.name}", reason=repr(error)) from error


def _group(table: dict[str, Any]) -> SampleGroup:
    samples = (Sample(each["id"], each["task"], each["watch"]) for each in table["samples"])
    return SampleGroup(table["title"], tuple(samples))
