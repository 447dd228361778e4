"""Finds the labs: one folder `labs/NN-name/` each, with `lab.toml`, texts and perhaps `extension.py`.

A lab can be named by number ("07", "7") or by name ("context-management").
"""

import functools
import importlib.util
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from harness.hooks import Extension, from_module
from harness.problems import Problem
from harness.proofs import Proof
from harness.sizes import Category

Number = Annotated[int, Field(strict=True, ge=0)]
BASE_LAB = "01"


class Text(TypedDict):
    """Words in every language of the page."""

    en: str
    zh: str


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
class Tick:
    """Something to have seen. `proof`: what the journal must hold for it; without one a person ticks it."""

    id: str
    text: Text
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Preset:
    """Numbers that belong together, such as those of an article; those that it does not name stay as they are."""

    id: str
    title: Text
    settings: dict[str, Number]


@dataclass(frozen=True, slots=True)
class Stroke:
    """One part of a drawn bar; `width` is a share, of no unit.

    leaves: what will give way to a summary. cut: the cut point lies in front of it.
    """

    part: Category
    width: Annotated[int, Field(strict=True, ge=1, le=30)]
    leaves: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class DrawnBar:
    """One request in a lab's drawing, and what to see in it. All bars of a drawing have the same scale."""

    caption: Text
    parts: tuple[Stroke, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A lab's drawing: bars below one another. It measures nothing."""

    bars: tuple[DrawnBar, ...] = ()


@dataclass(frozen=True, slots=True)
class Lab:
    """One lab. `demo` names a folder in demo_workspace; `settings` are whole numbers by name."""

    number: str
    name: str
    folder: Path
    title: Text
    goal: Text
    demo: str
    settings: dict[str, Number] = field(default_factory=dict)
    groups: tuple[SampleGroup, ...] = ()
    compacts: bool = False
    presets: tuple[Preset, ...] = ()
    ticks: tuple[Tick, ...] = ()
    picture: Picture = Picture()

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
    except (Exception, SystemExit) as error:  # a lab's code is not ours: whatever it raises becomes one line
        raise LabError("lab_broken", file=f"{path.parent.name}/{path.name}", reason=repr(error)) from error
    return from_module(lab.name, module, compacts=lab.compacts)


def _read(path: Path) -> Lab:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
        place = {"number": path.parent.name[:2], "name": path.parent.name[3:], "folder": path.parent}
        return _shape().validate_python(table | place)
    except (OSError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(error)
        raise LabError("lab_broken", file=f"{path.parent.name}/{path.name}", reason=reason) from error


@functools.cache
def _shape() -> TypeAdapter[Lab]:
    return TypeAdapter(Lab)
