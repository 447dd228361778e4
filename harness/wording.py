"""What a strategy says to the summariser and beside its summary, in one language: read from a lab's `wording.toml`."""

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a strategy.

    instruction: the system text, with {limit} in characters. update: the same where there is a summary already.
    shorter: asks again, with {length} and {limit}. preface: one line that marks the summary as background.
    required: headings that must come back. focus: how a person's own wish is put, with {focus}.
    changed: the preface of a summary that a person changed. demands: one line above the user's own limits.
    files, file, file_path, file_changed, tools: one line each above what is restored beside the summary, or in its
    place for a file that is too large or was changed since, with {path}; "" where nothing is.
    """

    instruction: str
    shorter: str
    preface: str
    required: tuple[str, ...]
    focus: str
    changed: str
    update: str = ""
    demands: str = ""
    files: str = ""
    file: str = ""
    file_path: str = ""
    file_changed: str = ""
    tools: str = ""


def read_wording(path: Path, language: str) -> Wording:
    """Return the wording in `path`, a TOML file with one table a language; English where it has no other."""
    tables = _parsed(path.read_text("utf-8"))
    table = tables.get(language, tables["en"])
    return Wording(**(table | {"required": tuple(table["required"])}))


@lru_cache(maxsize=16)
def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text)
