"""`server.py doctor`: runs every check that a server with these options would depend on, and says how each went."""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from unicodedata import east_asian_width

from markupsafe import Markup

from harness.discovery import BASE_LAB, find_labs, load
from harness.doctor import machine
from harness.doctor.database import database
from harness.doctor.model import LOADING_SECONDS, SECONDS, Choose, Opened, key, model
from harness.doctor.result import Check, Grade, Result, examine
from harness.model.provider import read_environment
from harness.problems import Problem
from web import catalogue
from web.access import is_loopback
from web.command import plain
from web.listening import listen
from web.options import Chosen, check_fault, decide
from web.words import Words

T = TypeVar("T")
# Beyond what the model may take: above all for a database that does not answer.
MORE_SECONDS = 7.0
# A sign for each, so that no meaning is in a colour; every terminal can show them.
SIGNS: dict[Grade, str] = {"good": "[+]", "look": "[?]", "mend": "[!]"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server finds its things: folders, and the names of the faults that can be acted out."""

    root: Path
    labs: Path
    demos: Path
    data: Path
    faults: tuple[str, ...]


def look(options: argparse.Namespace, words: Words, place: Place, choose: Choose, opened: Opened) -> int:
    """Print a line for each check; return 0, or 1 where something must be mended."""

    def decided() -> Chosen:
        return decide(options, find_labs(place.labs), faults=place.faults, demos=place.demos)

    if chosen := _without_problem(decided):
        words = catalogue.load(chosen.language or words.language)
    seconds = LOADING_SECONDS if options.gguf else SECONDS
    checks: dict[str, Check] = {
        "python": machine.python,
        "port": lambda: port(options.host, options.port),
        "lab": lambda: lab(decided(), place, choose),
        "key": lambda: key(choose),
        "model": lambda: model(choose, opened, seconds),
        "sandbox": lambda: machine.sandbox(place.data),
        "database": lambda: database(options.database, place.data),
        "ranks": machine.ranks,
        "phoenix": lambda: machine.phoenix(_without_problem(lambda: read_environment(place.root)) or os.environ),
    }
    return report(words, checks, seconds + MORE_SECONDS)


def port(host: str, number: int) -> Result:
    """Take the port and let it go again. Problem: it cannot be had."""
    listen(host, number).close()
    if not is_loopback(host):
        return Result("port_open", "look", {"host": host})
    return Result("port_good" if number else "port_any", "good", {"host": host, "port": str(number)})


def lab(chosen: Chosen, place: Place, choose: Choose) -> Result:
    """Import the extensions of what is asked for. Problem: one is broken, or the fault needs another model."""
    labs = find_labs(place.labs)
    for number in dict.fromkeys((BASE_LAB, *chosen.extensions, chosen.lab.number)):
        load(labs[number])
    if provider := _without_problem(choose):
        check_fault(chosen.fault, provider)
    return Result("lab_good", "good", {"number": chosen.lab.number, "name": chosen.lab.name})


def report(words: Words, checks: Mapping[str, Check], seconds: float) -> int:
    """Run the checks and print their lines and a last one; return the exit code."""
    grades = {grade: plain(words.t(f"doctor_grade.{grade}")) for grade in SIGNS}
    names = {name: plain(words.t(f"doctor_name.{name}")) for name in checks}
    columns = max(map(_columns, grades.values())), max(map(_columns, names.values()))
    to_mend = 0
    for name, result in examine(checks, seconds):
        to_mend += result.grade == "mend"
        start = f"{SIGNS[result.grade]} {_padded(grades[result.grade], columns[0])}"
        print(f"{start}  {_padded(names[name], columns[1])}  {plain(_said(words, result))}", flush=True)
    print(plain(words.t("doctor.to_mend", n=to_mend) if to_mend else words.t("doctor.ready")), flush=True)
    return 1 if to_mend else 0


def _said(words: Words, result: Result) -> Markup:
    values = dict(result.values)
    if "why" in values:
        values["why"] = words.code("model_reason", values["why"])
    if "seconds" in values:
        values["seconds"] = words.seconds(values["seconds"])
    if result.section == "problem":
        return words.t(f"problem.{result.code}", **values)
    return words.t(f"doctor.{result.code}", **values)


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - _columns(text))


def _columns(text: str) -> int:
    """Return how many columns a terminal gives the text: two to a Chinese character."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _without_problem(ask: Callable[[], T]) -> T | None:
    """Return the answer, or None where there is a problem that another line tells of."""
    try:
        return ask()
    except Problem:
        return None
