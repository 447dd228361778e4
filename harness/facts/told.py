"""The facts of messages: which message told each first. Knows what a message holds, and nothing of what was kept."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.context import Entry
from harness.facts.extract import Fact, Kind, fact, facts_in
from harness.messages import AssistantMessage, SummaryMessage, UserMessage
from harness.sizes import Category

Key = tuple[Kind, str]
# Arguments of a call that are one fact, whatever they look like.
PATH_ARGUMENTS = frozenset(("path", "file", "file_path", "filename", "directory", "cwd"))
COMMAND_ARGUMENTS = frozenset(("command", "cmd"))
PATH_CHARS = 300


@dataclass(frozen=True, slots=True)
class Told:
    """A fact and where it stands: in `text`, which is all or a part of the message with journal number `seq`.

    of_user: a person wrote that message, and no extension.
    """

    fact: Fact
    text: str
    seq: int
    category: Category
    of_user: bool

    @property
    def key(self) -> Key:
        """Return what is the same in all places that tell this fact."""
        return self.fact.kind, self.fact.key


def texts_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield every text of a message that facts are taken from, with the name of the argument that it is or ""."""
    message = entry.message
    yield "", message.text
    if isinstance(message, SummaryMessage):
        yield "", message.beside
    if isinstance(message, AssistantMessage):
        yield "", message.reasoning
        for call in message.calls:
            yield from _arguments(call.arguments)


def facts_of(entry: Entry) -> Iterator[tuple[Fact, str]]:
    """Yield the facts of a message, text by text, each with the text that it stands in."""
    of_user = is_of_user(entry) or entry.category == "summary"
    for name, text in texts_of(entry):
        if name in COMMAND_ARGUMENTS and text.strip():
            yield fact("command", text.strip(), text.index(text.strip())), text
        if name in PATH_ARGUMENTS and 1 < len(text) <= PATH_CHARS and text.isprintable():
            yield fact("path", text), text
        for each in facts_in(text, of_user=of_user) if text else ():
            yield each, text


def first_told(entries: Iterable[Entry]) -> dict[Key, Told]:
    """Return every fact where it was told first; a demand where the user made it, whoever else said it before."""
    found: dict[Key, Told] = {}
    for entry in entries:
        for each, text in facts_of(entry):
            known = found.get((each.kind, each.key))
            if known is None or (each.kind == "constraint" and is_of_user(entry) and not known.of_user):
                found[each.kind, each.key] = told_in(entry, each, text)
    return found


def told_in(entry: Entry, each: Fact, text: str) -> Told:
    """Return a fact with the message that tells it, in `text`."""
    return Told(each, text, entry.seq, entry.category, is_of_user(entry))


def is_of_user(entry: Entry) -> bool:
    """Whether a person wrote it; an extension adds messages of the same category."""
    return isinstance(entry.message, UserMessage) and entry.message.author == "user"


def _arguments(arguments: str) -> Iterator[tuple[str, str]]:
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = arguments
    waiting = [("", values)]
    while waiting:
        name, value = waiting.pop()
        match value:
            case str():
                yield name, value
            case dict():
                waiting += [(key, each) for key, each in reversed(value.items())]
            case list():
                waiting += [(name, each) for each in reversed(value)]
