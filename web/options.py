"""What the command line and a settings file ask for together; the command line counts first. Starts nothing."""

import argparse
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.by_hand import SETTING_MAX
from harness.combining import DEFAULTS
from harness.discovery import BASE_LAB, Lab, find
from harness.model.provider import Provider
from harness.problems import Problem
from web.settings import TextSize, Theme
from web.settings_file import FileSettings, read_settings
from web.words import Language

LAB = "07"
# Switches and no numbers, although they are kept as such: 1 is on.
SWITCHES = ("confirm_summary", "keep_demands", "count_simply", "decide_anew", "resume_by_itself")
# No turn at all, or no time to answer, would end every task before it began; a summary of no characters is none; no
# share is larger than the whole.
LEAST = {"step_limit": 1, "approval_seconds": 1, "compress_at": 1, "summary_limit": 1}
MOST = dict.fromkeys(SWITCHES, 1) | {"compress_at": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What new sessions and the page are made from. `extensions` are labs' numbers, `source` the folder to copy."""

    lab: Lab
    extensions: tuple[str, ...]
    source: Path
    settings: Mapping[str, int]
    fault: str
    language: Language | None
    theme: Theme
    text_size: TextSize


def decide(options: argparse.Namespace, labs: Mapping[str, Lab], *, faults: Collection[str], demos: Path) -> Chosen:
    """Return what is asked for. `faults` are the names of those that can be acted out, `demos` the labs' folders.

    Problem: a file, a lab, a folder, a setting or a fault is not there or does not fit.
    """
    known = DEFAULTS.keys() | {name for lab in labs.values() for name in lab.settings}
    file = read_settings(options.settings, known) if options.settings else FileSettings()
    lab = find(labs, options.lab or file.lab or LAB)
    extensions = tuple(dict.fromkeys(find(labs, name).number for name in options.ext or file.extensions or ()))
    source = options.workspace or demos / lab.demo
    if not source.is_dir():
        raise Problem("no_folder", folder=source)
    own = DEFAULTS.keys() | {name for number in (BASE_LAB, *extensions, lab.number) for name in labs[number].settings}
    given = [*_numbers(options, file, lab), *options.given]
    for place, name, number in given:
        _check(place, name, number, own, lab)
    return Chosen(
        lab=lab, extensions=extensions, source=source.resolve(),
        settings={name: number for _, name, number in given}, fault=_fault(options, file, faults),
        language=options.lang or file.language, theme=options.theme or file.theme or "auto",
        text_size=options.text_size or file.text_size or "normal",
    )  # fmt: skip


def check_fault(fault: str, provider: Provider) -> None:
    """Do nothing if this model can act the fault out. Problem: only the offline model can."""
    if fault and provider.kind != "offline":
        raise Problem("fault_needs_offline", fault=fault, model=provider.model or provider.base_url)


def _check(place: str, name: str, number: int | None, known: Collection[str], lab: Lab) -> None:
    """Do nothing if the lab has this setting and `number` fits. `place`: the option or the file that asks for it."""
    if name not in known:
        raise Problem("setting_unknown", place=place, name=name, lab=lab.number, known=", ".join(sorted(known)))
    low, top = LEAST.get(name, 0), MOST.get(name, SETTING_MAX)
    if number is None or not low <= number <= top:
        raise Problem("setting_range", place=place, name=name, low=low, top=top)


def _numbers(options: argparse.Namespace, file: FileSettings, lab: Lab) -> list[tuple[str, str, int]]:
    """Return what a preset and a file set, as (place, name, number); of two for one name the later counts."""
    place, asked = str(options.settings), "--preset"
    layers = (
        (place, _preset(place, file.preset, lab)),
        (place, file.settings),
        (asked, _preset(asked, options.preset, lab)),
    )
    return [(where, name, number) for where, numbers in layers for name, number in numbers.items()]


def _preset(place: str, name: str | None, lab: Lab) -> Mapping[str, int]:
    """Return the numbers of the lab's preset of this name, none for no name. Problem: there is no such preset."""
    if not name:
        return {}
    found = next((each for each in lab.presets if each.id == name), None)
    if found is None:
        if not lab.presets:
            raise Problem("preset_none", place=place, lab=lab.number)
        known = ", ".join(each.id for each in lab.presets)
        raise Problem("preset_unknown", place=place, name=name, lab=lab.number, known=known)
    return found.settings


def _fault(options: argparse.Namespace, file: FileSettings, known: Collection[str]) -> str:
    asked = options.fault if options.fault is not None else file.fault or ""
    if asked and asked not in known:
        place = options.settings if options.fault is None else "--fault"
        raise Problem("fault_unknown", place=place, name=asked, known=", ".join(known))
    return asked
