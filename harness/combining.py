"""A lab together with the extensions that are added to it: their code, and the settings that come with them."""

from collections.abc import Mapping

from harness.discovery import BASE_LAB, Lab, find, load
from harness.hooks import Extension

# For every session: turns a task may take, seconds that an approval waits, whether a person confirms a summary
# before it takes effect, and the window in tokens, where 0 is the model's own.
DEFAULTS = {"step_limit": 30, "approval_seconds": 300, "confirm_summary": 0, "window": 0}


def combined(labs: Mapping[str, Lab], lab: Lab, names: tuple[str, ...]) -> list[Lab]:
    """Return lab 01, the labs that `names` name by number or name, and `lab` itself; each once, in this order.

    LabError: one is unknown.
    """
    found = [find(dict(labs), name) for name in (BASE_LAB, *names, lab.number)]
    return list({each.number: each for each in found}.values())


def load_all(labs: list[Lab]) -> tuple[Extension, ...]:
    """Return the extension of each lab. LabError: one cannot be imported."""
    return tuple(map(load, labs))


def usual_settings(labs: list[Lab]) -> dict[str, int]:
    """Return the settings that a session with these labs begins with; of two with one name the later lab's."""
    return DEFAULTS | {name: value for each in labs for name, value in each.settings.items()}
