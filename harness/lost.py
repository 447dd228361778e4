"""What a compaction dropped: the fate of every fact that stood in the removed messages, word for word.

It compares texts, as the model read them before and reads them now: what another text had taken the place of earlier
was not dropped by this compaction. A summary that says the same in other words does not count as kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from harness.context import Entry
from harness.facts.extract import Fact
from harness.facts.finder import Finder, pieces_of
from harness.facts.near import replacements
from harness.facts.ranges import between
from harness.facts.told import Key, Told, facts_of, first_told, texts_of, told_in
from harness.messages import SummaryMessage, ToolResult
from harness.sizes import Category

# Where a fact still stands, the first that holds: in a message that stayed at the cut, in the summary, in what was put
# beside the summary, or in a message that came since.
Stands = Literal["tail", "summary", "beside", "again"]
Fate = Literal[Stands, "changed", "lost"]
_STANDS: tuple[Stands, ...] = get_args(Stands)
# What a longer name or path goes on with: k-19 does not stand in k-19-old, keys.toml not in ./old/keys.toml.
_JOINS = frozenset("./\\-@~")
_JOINS_OF_URL = frozenset("./\\-@~:?#&=%+")


@dataclass(frozen=True, slots=True)
class Traced:
    """A fact of the removed messages and what became of it.

    seq, category: the removed message that told it first; for a demand that a user made, the user's message.
    of_user: that message is a person's. place: the journal number of a kept message in which it stands, or `instead`
    of it something near; None if it is lost.
    """

    fact: Fact
    seq: int
    category: Category
    of_user: bool
    fate: Fate
    place: int | None = None
    instead: str = ""


def trace(removed: Sequence[Entry], kept: Sequence[Entry], at: int | None = None) -> tuple[Traced, ...]:
    """Return every fact of `removed`, in order, with its fate in `kept`. The work grows with the length of the texts.

    at: the journal number of the compaction, where `kept` holds messages that came since.
    """
    return Trace(removed, at).read(kept)


def as_read(entry: Entry) -> Entry:
    """Return a message with the text that the model reads: of a result, what was decided to stand in its place."""
    message = entry.message
    if not isinstance(message, ToolResult) or entry.wire["content"] == message.text:
        return entry
    return replace(entry, message=replace(message, text=str(entry.wire["content"])))


@dataclass(frozen=True, slots=True)
class _Place:
    seq: int
    fate: Stands


class Trace:
    """Follows the facts of `removed`. The kept messages may come bit by bit; each is read once."""

    def __init__(self, removed: Sequence[Entry], at: int | None = None) -> None:
        self._at = at
        self._told = first_told(map(as_read, removed))
        # Where a fact stands, and what is looked for as long as it stands in no message that stayed.
        self._places: dict[Key, _Place] = {}
        self._open = {key: _spellings(key) for key in self._told}
        self._new: list[Told] = []
        self._facts: tuple[Traced, ...] | None = None

    def read(self, kept: Sequence[Entry]) -> tuple[Traced, ...]:
        """Look for the facts in `kept`, the next of the kept messages; return all, in order, as they stand now."""
        parts = [part for entry in kept for part in self._parts(as_read(entry))]
        for place, entry in parts:
            for each, text in facts_of(entry):
                if (key := (each.kind, each.key)) in self._told:
                    self._note(key, place)
                elif entry.category == "summary":
                    self._new.append(told_in(entry, each, text))
                    self._facts = None
            for key in _in_ranges(entry):
                self._note(key, place)
        for key, place in _standing(self._open, parts):
            self._note(key, place)
        if self._facts is None:
            lost = {key: told for key, told in self._told.items() if key not in self._places}
            instead = replacements(lost, self._new)
            places = self._places
            self._facts = tuple(_traced(told, places.get(key), instead.get(key)) for key, told in self._told.items())
        return self._facts

    def _parts(self, entry: Entry) -> Iterator[tuple[_Place, Entry]]:
        """Yield what stands in a message, each with what it is; a summary by itself, and what was put beside it."""
        message = entry.message
        if isinstance(message, SummaryMessage):
            yield _Place(entry.seq, "summary"), replace(entry, message=replace(message, beside=""))
            yield _Place(entry.seq, "beside"), replace(entry, message=replace(message, text=""))
        else:
            since = self._at is not None and entry.seq > self._at
            yield _Place(entry.seq, "again" if since else "tail"), entry

    def _note(self, key: Key, place: _Place) -> None:
        if key not in self._told:
            return
        known = self._places.get(key)
        if known is None or _STANDS.index(place.fate) < _STANDS.index(known.fate):
            self._places[key], self._facts = place, None
        if place.fate == "tail":
            self._open.pop(key, None)


def _in_ranges(entry: Entry) -> Iterator[Key]:
    """Yield what a message names only as a part of a range."""
    for _, text in texts_of(entry):
        for name in between(text):
            yield "path", name.removeprefix("./")
            yield "identifier", name


def _traced(told: Told, place: _Place | None, instead: Told | None) -> Traced:
    said = (told.fact, told.seq, told.category, told.of_user)
    if place:
        return Traced(*said, place.fate, place.seq)
    return Traced(*said, "changed", instead.seq, instead.fact.text) if instead else Traced(*said, "lost")


def _standing(wanted: Mapping[Key, list[list[str]]], parts: Sequence[tuple[_Place, Entry]]) -> list[tuple[Key, _Place]]:
    """Return the facts that stand in a kept text although they are no fact of it: a command in a sentence."""
    texts = [(place, pieces_of(text.replace("’", "'"))) for place, entry in parts for _, text in texts_of(entry)]
    known = {piece for _, pieces in texts for piece in pieces} | {" "}
    likely = [(key, pieces) for key, spelled in wanted.items() for pieces in spelled if known.issuperset(pieces)]
    if not likely:
        return []
    finder, found = Finder([pieces for _, pieces in likely]), []
    for place, pieces in texts:
        for hit in finder.hits([" " if piece == "\n" else piece for piece in pieces]):
            key = likely[hit.number][0]
            if _whole(key, pieces, hit.begin, hit.end):
                found.append((key, place))
    return found


def _spellings(key: Key) -> list[list[str]]:
    """Return what is looked for: a sentence with a small and with a large letter at its beginning.

    Nothing for a number: it is a fact wherever it stands.
    """
    kind, text = key
    if kind == "number":
        return []
    texts = {text, text[:1].upper() + text[1:]} if kind == "constraint" else {text}
    return [[" " if piece == "\n" else piece for piece in pieces_of(each)] for each in sorted(texts)]


def _whole(key: Key, pieces: Sequence[str], begin: int, end: int) -> bool:
    """Whether pieces[begin:end] stand alone and are no part of a longer name, path or sentence."""
    before = pieces[begin - 1] if begin else "\n"
    after, beyond = [*pieces[end : end + 2], "\n", "\n"][:2]
    if after in (_JOINS_OF_URL if key[0] == "url" else _JOINS) and _is_latin(beyond):
        return False
    if key[0] != "constraint":
        return before not in _JOINS and not _is_latin(before) and not _is_latin(after)
    if before == " ":
        before = pieces[begin - 2] if begin > 1 else "\n"
    return not _is_word(before) and not _is_word(beyond if after == " " else after)


def _is_word(piece: str) -> bool:
    return piece[0].isalnum() or piece[0] == "_"


def _is_latin(piece: str) -> bool:
    return _is_word(piece) and not "\u3000" <= piece[0] <= "\u9fff"
