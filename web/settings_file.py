"""A settings file that can be handed out: TOML text to values and back. Knows no lab and no command line."""

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from harness.problems import Problem
from web.settings import TextSize, Theme
from web.words import LANGUAGES, Language, Words

NAMES = ("lab", "extensions", "preset", "fault", "language", "theme", "text_size")
ONE_OF: dict[str, tuple[str, ...]] = {
    "language": LANGUAGES, "theme": get_args(Theme), "text_size": get_args(TextSize),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """What a settings file says; None where it says nothing.

    preset: the lab's numbers to begin with, by its id, or "". `settings` are a session's whole numbers by name.
    """

    lab: str | None = None
    extensions: tuple[str, ...] | None = None
    preset: str | None = None
    fault: str | None = None
    language: Language | None = None
    theme: Theme | None = None
    text_size: TextSize | None = None
    settings: Mapping[str, int] = field(default_factory=dict)


def read_settings(path: Path, known: Collection[str]) -> FileSettings:
    """Return what the file at `path` says; `known`: names of settings. Problem: the file or a key is wrong."""
    try:
        # What an editor put in front of the text is no part of it.
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Problem("settings_file", file=path, reason=getattr(error, "strerror", None) or str(error)) from error
    return parse_settings(text, str(path), known)


def parse_settings(text: str, file: str, known: Collection[str]) -> FileSettings:
    """Return what the TOML `text` says; `file` is its name in a Problem, `known` the names of settings."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Problem("settings_file", file=file, reason=str(error)) from error
    for key, value in table.items():
        _check(key, value, file, known)
    if "extensions" in table:
        table["extensions"] = tuple(table["extensions"])
    settings = {key: table.pop(key) for key in known if key in table}
    return FileSettings(**table, settings=settings)


def _check(key: str, value: Any, file: str, known: Collection[str]) -> None:
    if key in ONE_OF:
        if value not in ONE_OF[key]:
            raise Problem("settings_choice", file=file, entry=key, known=", ".join(ONE_OF[key]))
    elif key == "extensions":
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise Problem("settings_list", file=file, entry=key)
    elif key in NAMES:
        if not isinstance(value, str):
            raise Problem("settings_text", file=file, entry=key)
    elif key not in known:
        raise Problem("settings_key", file=file, entry=key, known=", ".join([*NAMES, *sorted(known)]))
    elif type(value) is not int:
        raise Problem("settings_number", file=file, entry=key)


def render_settings(values: FileSettings, words: Words) -> str:
    """Return a settings file as TOML text, a comment in the language of `words` on top.

    `parse_settings` gives the same values back.
    """
    table = {name: value for name in NAMES if (value := getattr(values, name)) is not None}
    lines = [f"{_key(name)} = {_toml(value)}" for name, value in (table | dict(values.settings)).items()]
    return "\n".join([f"# {words.t('settings_file.comment').unescape()}", *lines, ""])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: str | int | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    # JSON's strings are TOML's, but for one control character that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
