"""The command line: its options, and the language that the terminal speaks. Starts nothing."""

import argparse
import locale
import os
import sys
from pathlib import Path

from web.words import LANGUAGES, Language, Words


def read_arguments(words: Words) -> argparse.Namespace:
    """Return the command line; argparse ends the program with one line when it does not fit."""

    def told(key: str) -> str:
        return str(words.t(f"option.{key}").unescape())

    parser = argparse.ArgumentParser(prog="server.py", description=told("description"))
    parser.add_argument("--lab", default="07", metavar="NN", help=told("lab"))
    parser.add_argument("--ext", action="append", default=[], metavar="NAME", help=told("ext"))
    parser.add_argument("--host", default="127.0.0.1", help=told("host"))
    parser.add_argument("--port", type=int, default=8765, help=told("port"))
    parser.add_argument("--workspace", type=Path, metavar="DIR", help=told("workspace"))
    parser.add_argument("--model", metavar="NAME", help=told("model"))
    parser.add_argument("--base-url", metavar="URL", help=told("base_url"))
    parser.add_argument("--gguf", type=Path, metavar="FILE", help=told("gguf"))
    parser.add_argument("--lang", choices=LANGUAGES, help=told("lang"))
    parser.add_argument("--budget", type=int, metavar="N", help=told("budget"))
    parser.add_argument("--database", metavar="URL", help=told("database"))
    parser.add_argument("--offline-assets", action="store_true", help=told("offline_assets"))
    parser.add_argument("--list", action="store_true", help=told("list"))
    return parser.parse_args()


def terminal_language() -> Language:
    """Return the language for the terminal: the one asked for, else the environment's, else English."""
    words = " ".join(sys.argv).replace("--lang=", "--lang ").split()
    asked = [value for name, value in zip(words, words[1:], strict=False) if name == "--lang"]
    # The variables count even where the system has no such locale installed.
    environment = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    found = (asked or [environment or locale.getlocale()[0] or ""])[-1]
    return "zh" if found.startswith(("zh", "Chinese")) else "en"
