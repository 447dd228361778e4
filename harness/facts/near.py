"""What stands in a summary instead of a fact: the same label with another number or name. Rather nothing than a guess.

Each fact has marks: its label, the words around it, a sentence without its numbers and names. Two facts belong
together if they share a mark that only one lost fact and only one new fact of the summary have.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping

from harness.facts.extract import judged
from harness.facts.patterns import TOKEN
from harness.facts.told import Key, Told

# How far the words around a fact are looked for, in characters.
AROUND = 60
_HAN = r"\u4e00-\u9fff"
_WORDS = re.compile(rf"[^\W\d_{_HAN}]{{2,}}|[{_HAN}]+")
_DIGITS = re.compile(r"[0-9][0-9.,]*")
_LETTERS = re.compile(r"[^\W\d_]+")
_LINE = re.compile(r":[0-9:-]+$")
# Words that are no label: "the limit is 15 %" and "limit of 15 %" have the same.
_FILLERS = frozenset(
    "a about after an and are as at be been by for from had has have in is it its no not now of on or than that the "
    "then this to was were will with".split()
)
_FILLERS_HAN = "是为在到约共了的有至从和与就也"
_POLITE = frozenset("a an any please the 请".split())
_UNITS = {"seconds": "s", "second": "s", "秒": "s", "minutes": "min", "minute": "min", "分钟": "min", "hours": "h",
          "hour": "h", "小时": "h", "percent": "%", "毫秒": "ms", "characters": "chars", "字符": "chars"}  # fmt: skip


def replacements(lost: Mapping[Key, Told], summary: Iterable[Told]) -> dict[Key, Told]:
    """Return for each lost fact what the summary says instead. `summary`: facts that no removed message told."""
    offered: defaultdict[tuple[str, ...], dict[Key, Told]] = defaultdict(dict)
    for told in summary:
        for mark in marks_of(told):
            offered[mark][told.key] = told
    # Most lost facts are of a shape that the summary has nowhere: no need to look around them.
    shapes = {mark[:2] for mark in offered}
    asked: defaultdict[tuple[str, ...], list[Key]] = defaultdict(list)
    for key, told in lost.items() if offered else ():
        for mark in marks_of(told, shapes):
            if mark in offered:
                asked[mark].append(key)
    found: dict[Key, Told] = {}
    for mark, keys in asked.items():
        if len(keys) == len(offered[mark]) == 1:
            found.setdefault(keys[0], next(iter(offered[mark].values())))
    return found


def marks_of(told: Told, shapes: Container[tuple[str, ...]] | None = None) -> Iterator[tuple[str, ...]]:
    """Yield the marks of a fact, each with its kind first, so that only facts of a kind share one.

    shapes: what the marks that are asked for begin with; None is all.
    """
    kind, key = told.key
    match kind:
        case "constraint" | "command" | "error":
            asked = shapes is None or (kind, "frame") in shapes
            if asked and (frame := _frame(key, 2 if kind == "command" else 3)):
                yield kind, "frame", frame
        case "number":
            yield kind, "value", _value(key)
            yield from _labels(told, _DIGITS.sub("#", key), shapes)
        case "identifier":
            yield kind, "letters", key.lower()
            yield from _labels(told, _LETTERS.sub("x", _DIGITS.sub("#", key)), shapes)
        case "path":
            bare = _LINE.sub("", key)
            yield kind, "file", bare
            yield kind, "name", bare.rsplit("/", 1)[-1]
            yield from _labels(told, "", shapes)
        case "url":
            yield kind, "page", re.split(r"[?#]", key, maxsplit=1)[0]


def _labels(told: Told, shape: str, shapes: Container[tuple[str, ...]] | None) -> Iterator[tuple[str, ...]]:
    """Yield the two words before the fact, one on each side of it, and where its shape tells enough the one before."""
    kind = told.fact.kind
    if shapes is not None and (kind, shape) not in shapes:
        return
    start, text = told.fact.start, told.text
    end = start + len(told.fact.text)
    before = _words(text[max(0, start - AROUND) : start].rpartition("\n")[2])
    after = _words(text[end : end + AROUND].partition("\n")[0])
    if len(before) > 1:
        yield kind, shape, "before", before[-2], before[-1]
    if before and after:
        yield kind, shape, "around", before[-1], after[0]
    if before and shape not in ("", "#"):
        yield kind, shape, "label", before[-1]


def _words(text: str) -> list[str]:
    """Return the words that tell something, in small letters; of Chinese, pairs of characters counted from its end."""
    found: list[str] = []
    for word in _WORDS.findall(text):
        if "\u4e00" <= word[0] <= "\u9fff":
            word = word.strip(_FILLERS_HAN)
            odd = len(word) % 2
            found += [word[place : place + 2] for place in range(odd, len(word), 2)]
        elif word.lower() not in _FILLERS:
            found.append(word.lower())
    return found


def _value(key: str) -> str:
    digits = key.replace(",", "")
    unit = _DIGITS.sub("", digits)
    return digits.removesuffix(unit) + _UNITS.get(unit, unit) if unit else digits


def _frame(text: str, least: int) -> str:
    """Return a sentence without its numbers and names, or "" if fewer than `least` words are left."""
    words: list[str] = []
    for match in TOKEN.finditer(text.replace("n't", " not")):
        found = match.group().lower()
        if match.lastgroup in ("number", "url") or (match.lastgroup == "other" and judged(match.group())):
            words.append("#")
        elif "\u3000" <= found[0] <= "\u9fff":
            words += [char for char in found if char not in "请，。；、："]
        else:
            words += [bare for word in found.split() if (bare := word.strip(".,:-*")) and bare not in _POLITE]
    return " ".join(words) if len(words) - words.count("#") >= least else ""
