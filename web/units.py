"""A size in the unit that the reader chose. Where a figure does not exist in that unit, it says so."""

from typing import Literal, get_args

from markupsafe import Markup

from harness.records import CallRecord
from harness.sizes import Size
from web.words import Words

Unit = Literal["characters", "estimated", "reported"]
UNITS: tuple[Unit, ...] = get_args(Unit)
# A part of a request, or a message, is never reported: a provider counts the whole request only.
NEVER = -1


def part_value(size: Size, unit: Unit) -> int:
    """Return the figure of a part that is drawn: characters, else the estimate, which stands in for a report."""
    return size.chars if unit == "characters" else size.tokens


def call_value(call: CallRecord, unit: Unit) -> int | None:
    """Return the figure of a whole request; None where the provider did not report it."""
    return value_of(call.size, unit, call.usage.prompt if call.usage else None)


def value_of(size: Size, unit: Unit, reported: int | None = NEVER) -> int | None:
    """Return the figure: characters, estimated tokens, or what the provider reported; None where there is none."""
    match unit:
        case "characters":
            return size.chars
        case "estimated":
            return size.tokens
        case _:
            return None if reported == NEVER else reported


def sized(words: Words, unit: Unit, name: str, size: Size, reported: int | None = NEVER) -> Markup:
    """Return the figure `name` with its unit, such as "5,536 characters".

    reported: what the provider counted for this very thing, None where it did not say; left out where it never does.
    """
    if unit == "reported" and reported == NEVER:
        return words.t("unit.never_reported")
    return words.counted(f"{name}.{_suffix(unit)}", value_of(size, unit, reported), unit)


def bare(words: Words, unit: Unit, name: str, size: Size, reported: int | None = NEVER) -> Markup:
    """Return the figure `name` without its unit, for a table that names the unit; a dash where none exists."""
    if unit == "reported" and reported == NEVER:
        return words.t("unit.none")
    return words.figure(f"{name}.{_suffix(unit)}", value_of(size, unit, reported))


def _suffix(unit: Unit) -> str:
    return "chars" if unit == "characters" else f"tokens.{unit}"
