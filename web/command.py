"""The command line: its options, the terminal's language, and how a problem is said there. Starts nothing."""

import argparse
import locale
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from markupsafe import Markup

from harness.problems import Problem
from web.settings import TextSize, Theme
from web.words import LANGUAGES, Language, Words

# A session setting: the option that asks for it, its name, and its number or None where it is no whole number.
# How a session can be exported.
FORMS = ("jsonl", "html", "atif", "otlp")
Given = tuple[str, str, int | None]


def read_arguments(words: Words) -> argparse.Namespace:
    """Return the command line; argparse ends the program with one line when it does not fit.

    `given` are the session settings in their order, so that the last one of a name counts.
    """

    def told(key: str) -> str:
        return str(words.t(f"option.{key}").unescape())

    parser = argparse.ArgumentParser(prog="server.py", description=told("description"))
    named = {"choices": ["doctor", "export"], "metavar": "doctor|export"}
    parser.add_argument("command", nargs="?", **named, help=told("doctor"))
    parser.add_argument("--lab", metavar="NN", help=told("lab"))
    parser.add_argument("--ext", action="append", default=[], metavar="NAME", help=told("ext"))
    parser.add_argument("--host", default="127.0.0.1", help=told("host"))
    parser.add_argument("--port", type=int, default=8765, help=told("port"))
    parser.add_argument("--workspace", type=Path, metavar="DIR", help=told("workspace"))
    parser.add_argument("--model", metavar="NAME", help=told("model"))
    parser.add_argument("--base-url", metavar="URL", help=told("base_url"))
    parser.add_argument("--gguf", type=Path, metavar="FILE", help=told("gguf"))
    parser.add_argument("--lang", choices=LANGUAGES, help=told("lang"))
    parser.add_argument("--settings", type=Path, metavar="FILE", help=told("settings"))
    given = {"dest": "given", "default": []}
    add = {**given, "action": "append"}
    parser.add_argument("--budget", **add, type=_setting("--budget", "budget"), metavar="N", help=told("budget"))
    parser.add_argument("--window", **add, type=_setting("--window", "window"), metavar="N", help=told("window"))
    parser.add_argument("--preset", metavar="NAME", help=told("preset"))
    parser.add_argument("--set", **add, type=_setting("--set"), metavar="NAME=VALUE", help=told("set"))
    confirm: Given = ("--confirm", "confirm_summary", 1)
    parser.add_argument("--confirm", **given, action="append_const", const=confirm, help=told("confirm"))
    parser.add_argument("--fault", metavar="NAME", help=told("fault"))
    parser.add_argument("--theme", choices=get_args(Theme), help=told("theme"))
    parser.add_argument("--text-size", choices=get_args(TextSize), help=told("text_size"))
    parser.add_argument("--database", metavar="URL", help=told("database"))
    parser.add_argument("--offline-assets", action="store_true", help=told("offline_assets"))
    parser.add_argument("--list", action="store_true", help=told("list"))
    _add_export(parser, told)
    return parser.parse_args()


def _add_export(parser: argparse.ArgumentParser, told: Callable[[str], str]) -> None:
    """Add what only `export` takes."""
    parser.add_argument("session", nargs="?", metavar="SESSION", help=told("session"))
    parser.add_argument("--as", dest="form", choices=FORMS, default=FORMS[0], help=told("as"))
    parser.add_argument("--out", metavar="FILE", help=told("out"))
    parser.add_argument("--force", action="store_true", help=told("force"))
    parser.add_argument("--endpoint", metavar="URL", default="", help=told("endpoint"))


def _setting(option: str, name: str = "") -> Callable[[str], Given]:
    """Return what reads the value of `option`: a number, or NAME=VALUE where the option has no name of its own."""

    def read(text: str) -> Given:
        own, value = (name, text) if name else (text.partition("=")[0].strip(), text.partition("=")[2])
        number = int(value) if re.fullmatch(r"\s*[+-]?[0-9]{1,12}\s*", value) else None
        return option, own, number

    return read


def problem_line(words: Words, problem: Problem) -> str:
    """Return a problem as one line for the terminal."""
    return plain(words.t(f"problem.{problem.code}", **problem.values))


def plain(text: Markup) -> str:
    """Return words of the catalogue for the terminal, which nothing that was filled in can steer."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text.unescape())


def terminal_language() -> Language:
    """Return the language for the terminal: the one asked for, else the environment's, else English."""
    words = " ".join(sys.argv).replace("--lang=", "--lang ").split()
    asked = [value for name, value in zip(words, words[1:], strict=False) if name == "--lang"]
    # The variables count even where the system has no such locale installed.
    environment = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    found = (asked or [environment or locale.getlocale()[0] or ""])[-1]
    return "zh" if found.startswith(("zh", "Chinese")) else "en"
