"""Numbers of a lab that belong together, and which of them are in force. Knows no requests."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.discovery import Lab, Preset
from web.guide import in_language
from web.words import Language


@dataclass(frozen=True, slots=True)
class PresetView:
    """One preset to choose. on: all of its numbers are in force."""

    id: str
    title: str
    on: bool


def preset_on(lab: Lab, settings: Mapping[str, int]) -> Preset | None:
    """Return the lab's preset whose numbers are all in force, or None where they are a person's own."""
    return next((each for each in lab.presets if each.settings.items() <= settings.items()), None)


def presets_of(lab: Lab, settings: Mapping[str, int], language: Language) -> tuple[PresetView, ...]:
    """Return the lab's presets in order; at most one of them is on."""
    on = preset_on(lab, settings)
    return tuple(PresetView(each.id, in_language(each.title, language), each is on) for each in lab.presets)
