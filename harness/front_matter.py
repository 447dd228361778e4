"""The head of a Markdown file: lines of `name: value` between two lines of `---`. Reads no file.

As much of YAML as such heads use: values may be plain, quoted, or a block behind `>` or `|`, and may go on in indented
lines; a list becomes its items with commas between. A plain value may hold a colon, which strict YAML refuses and heads
in the wild often have; so no YAML library would do here.
"""

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_LINE = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"([>|])[-+\d]{0,2}(?:\s+#.*)?")
_SINGLE = re.compile(r"'((?:[^']|'')*)'(?:\s+#.*)?")
_DOUBLE = re.compile(r'("(?:[^"\\]|\\.)*")(?:\s+#.*)?')


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The values of a head by name, in small letters, and the text below it. broken: the first line, from 1, that is
    no `name: value`, or 0.
    """

    values: dict[str, str]
    text: str
    broken: int = 0


def read_front_matter(content: str) -> FrontMatter | None:
    """Return what a file's content holds, or None where it does not begin with a head that ends.

    read_front_matter("---\\nname: a\\n---\\nText") -> FrontMatter({"name": "a"}, "Text")
    """
    lines = content.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    if lines[0].rstrip() != "---" or not end:
        return None
    values: dict[str, str] = {}
    broken, place = 0, 1
    while place < end:
        first, place = place, place + 1
        if not lines[first].strip() or lines[first].startswith("#"):
            continue
        while place < end and (not lines[place].strip() or lines[place].startswith((" ", "\t", "- "))):
            place += 1
        try:
            name, value = _entry(lines[first].rstrip(), lines[first + 1 : place])
            values[name] = value
        except ValueError:
            broken = broken or first + 1
    return FrontMatter(values, "\n".join(lines[end + 1 :]).strip(), broken)


def _entry(line: str, more: Sequence[str]) -> tuple[str, str]:
    """Return name and value of an entry that begins with `line`. ValueError: it is none."""
    if not (match := _LINE.fullmatch(line)):
        raise ValueError(line)
    return match[1].lower(), _value((match[2] or "").strip(), more)


def _value(first: str, more: Sequence[str]) -> str:
    """Return the text of a value that begins with `first` and goes on in the lines `more`."""
    if block := _BLOCK.fullmatch(first):
        text = textwrap.dedent("\n".join(more)).strip("\n")
        return text if block[1] == "|" else re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    if not first:
        rest = [line.strip() for line in more if line.strip()]
        listed = all(line.startswith("- ") for line in rest)
        return ", ".join(line[2:].strip() for line in rest) if listed else " ".join(rest)
    whole = " ".join([first, *(line.strip() for line in more)]).strip()
    if whole.startswith("'"):
        if not (single := _SINGLE.fullmatch(whole)):
            raise ValueError(whole)
        return single[1].replace("''", "'")
    if whole.startswith('"'):
        if not (double := _DOUBLE.fullmatch(whole)):
            raise ValueError(whole)
        return str(json.loads(double[1]))
    return re.split(r"\s#", whole)[0].strip()
