"""Reads the two catalogues, `catalogue/en.toml` and `catalogue/zh.toml`. A test holds them to the same keys."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from web.words import LANGUAGES, Entry, Language, Words

FOLDER = Path(__file__).with_name("catalogue")


def load(language: Language) -> Words:
    """Return the words of one language."""
    with (FOLDER / f"{language}.toml").open("rb") as file:
        return Words(language, flatten(tomllib.load(file)))


def load_all() -> dict[Language, Words]:
    """Return the words of every language."""
    return {language: load(language) for language in LANGUAGES}


def flatten(tree: Mapping[str, object], above: str = "") -> dict[str, Entry]:
    """Return a tree of tables as one table: {"a": {"b": "x"}} -> {"a.b": "x"}.

    A table of exactly `one` and `other` is an entry, not a level.
    """
    flat: dict[str, Entry] = {}
    for name, value in tree.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and set(value) != {"one", "other"}:
            flat |= flatten(value, f"{key}.")
        else:
            flat[key] = value if isinstance(value, Mapping) else str(value)
    return flat
