"""Takes facts from a text, each word for word. Knows no messages and no sessions.

It judges by shape and not by meaning, so it takes too much rather than too little.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Literal

from harness.facts import asking, lines, patterns

Kind = Literal["constraint", "error", "command", "path", "identifier", "number", "url"]
Judged = tuple[Kind, str, str, int]

# A longer error line is cut: it may be a whole file.
LINE_CHARS = 400
# Words are remembered, for they come again and again; not those that are whole files.
WORD_CHARS, WORDS_KEPT = 100, 20_000
_NAME = re.compile(r"[\w.$@-]*[^\W\d][\w.$@-]*+")
_BLANKS = re.compile(r"\s+")
_FRAME = " \t\n\"'“”‘’「」『』*_"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a text says.

    text: word for word. key: what is compared; facts of a kind are the same if their keys are.
    start: where `text` begins in the text that it was taken from, in characters.
    """

    kind: Kind
    text: str
    key: str
    start: int


def facts_in(text: str, *, of_user: bool = True) -> tuple[Fact, ...]:
    """Return the facts of `text` in order, each once.

    of_user: a user says it, so whatever may be a demand is one.
    facts_in("Read log.md: 4 % failed") -> a path log.md, a number 4 %
    """
    found = list(_words(text))
    if more := [*_spans(text), *_commands(text), *_errors(text), *_demands(text, of_user)]:
        found = sorted(found + more, key=attrgetter("start"))
    once: dict[tuple[Kind, str], Fact] = {}
    for each in found:
        once.setdefault((each.kind, each.key), each)
    return tuple(once.values())


def demands_in(text: str) -> tuple[Fact, ...]:
    """Return only the demands of a text that a user wrote, in order."""
    return tuple(_demands(text, of_user=True))


def fact(kind: Kind, text: str, start: int = 0) -> Fact:
    """Return one fact with its key, from which is taken only what makes no difference."""
    match kind:
        case "number":
            key = text.replace(" ", "")
        case "identifier":
            key = text.removesuffix("()")
        case "path":
            key = text.removeprefix("./") or text
        case "error":
            key = _BLANKS.sub(" ", text)
        case "constraint":
            key = sentence_key(text)
        case _:
            key = text
    return Fact(kind, text, key, start)


def sentence_key(text: str) -> str:
    """Return a sentence with single blanks and plain quotes, a small first letter and nothing at its end."""
    plain = _BLANKS.sub(" ", text.replace("’", "'")).strip(_FRAME + ".。!！?？;；,，、:：")
    return plain[:1].lower() + plain[1:]


def _words(text: str) -> Iterator[Fact]:
    for match in patterns.TOKEN.finditer(text):
        match match.lastgroup:
            case "other":
                start = match.start()
                for kind, word, key, offset in judged(match.group()):
                    yield Fact(kind, word, key, start + offset)
            case "number" if len(number := match.group()) > 1:
                yield Fact("number", number, number.replace(" ", ""), match.start())
            case "url":
                yield fact("url", match.group().rstrip(".,;:!?)]}*"), match.start())
            case _:
                pass


def judged(word: str) -> tuple[Judged, ...]:
    """Return kind, text, key and place of each fact that one word holds: "signer/keys.toml:27." is a path."""
    return judged_again(word) if len(word) <= WORD_CHARS else tuple(_judge(word))


@lru_cache(maxsize=WORDS_KEPT)
def judged_again(word: str) -> tuple[Judged, ...]:
    """Return the same for a word that may come again."""
    return tuple(_judge(word))


def _judge(word: str) -> Iterator[Judged]:
    marks = patterns.MARKS.match(word)
    start = marks.end() if marks else 0
    bare = word[start:].rstrip(".:-*+~@\\")
    if len(bare) < 3 or bare in patterns.BRANDS or not any(map(str.isalnum, bare)):
        return
    if patterns.PATH.fullmatch(bare):
        yield "path", bare, fact("path", bare).key, start
    elif patterns.IDENTIFIER.fullmatch(bare):
        yield "identifier", bare, fact("identifier", bare).key, start
    elif "/" in bare:
        for part in re.finditer(r"[^/]++", bare):
            yield from ((kind, text, key, start + part.start() + at) for kind, text, key, at in _judge(part.group()))


def _spans(text: str) -> Iterator[Fact]:
    for match in lines.SPAN.finditer(text) if "`" in text else ():
        inside, start = match.group(1), match.start(1)
        if lines.PROGRAM.match(inside) or lines.WITH_OPTION.match(inside):
            yield from _stripped("command", text, *match.span(1))
        elif "/" in inside and _NAME.fullmatch(inside.replace("/", "")):
            yield fact("path", inside, start)
        elif _NAME.fullmatch(inside):
            kind = next((kind for kind, word, _, _ in judged(inside) if word == inside), "identifier")
            yield fact(kind, inside, start)


def _commands(text: str) -> Iterator[Fact]:
    for match in lines.PROMPT.finditer(text) if "$ " in text else ():
        yield from _stripped("command", text, *match.span(1))
    fences = list(lines.FENCE.finditer(text)) if "```" in text else []
    for opened, closed in zip(fences[::2], fences[1::2], strict=False):
        language, begin, end = opened.group(1), text.find("\n", opened.end()) + 1, closed.start()
        if language in lines.SHELLS and "<<" in text[begin:end]:
            # What follows << is no command but what one reads.
            yield from _stripped("command", text, begin, end)
        elif language in lines.SHELLS or not language:
            for line in lines.LINE.finditer(text, begin, end):
                if lines.PROGRAM.match(line.group().lstrip()):
                    yield from _stripped("command", text, *line.span())


def _errors(text: str) -> Iterator[Fact]:
    done = 0
    for place in sorted(
        match.start() for _, told in lines.signs_in(text, lines.ERRORS) for match in told.finditer(text)
    ):
        if place < done:
            continue
        begin = text.rfind("\n", done, place) + 1 or done
        done = text.find("\n", place) + 1 or len(text) + 1
        span = (begin, done - 1) if done - begin <= LINE_CHARS else (place, place + LINE_CHARS)
        if not lines.SOURCE.search(text[slice(*span)]):
            yield from _stripped("error", text, *span)


def _stripped(kind: Kind, text: str, begin: int, end: int) -> Iterator[Fact]:
    """Yield text[begin:end] without the blanks around it as one fact, if anything is left."""
    part = text[begin:end]
    if bare := part.strip():
        yield fact(kind, bare, begin + len(part) - len(part.lstrip()))


def _demands(text: str, of_user: bool) -> Iterator[Fact]:
    told = lines.signs_in(text.lower(), lines.DEMANDS_OF_USER if of_user else lines.DEMANDS)
    if not told:
        return
    end, ends = 0, lines.END_OF_USER if of_user else lines.END
    for following in chain((match.end() for match in ends.finditer(text)), [len(text)]):
        begin, end = end, following
        # Most sentences hold no sign, and need no closer look.
        told_here = lines.signs_in(text[begin:end].lower(), told)
        if not told_here:
            continue
        place = lines.BEFORE.match(text, begin, end).end()  # type: ignore[union-attr]
        sentence = text[place:end].rstrip(_FRAME).rstrip()
        small = asking.without_questions(sentence.lower())
        if asking.says_nothing(small):
            continue
        if any(each.search(small) for _, each in told_here) and (of_user or not lines.CODE.search(sentence)):
            yield fact("constraint", sentence, place)
