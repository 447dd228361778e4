"""The context: the messages that the next model call will carry, with the size of each part.

Each message is measured, hashed and searched for demands once, when it comes in, so a turn costs the same however long
the history is. Knows nothing of events; `replay` folds them into it.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.facts.extract import Fact, demands_in
from harness.messages import AssistantMessage, Message, SummaryMessage, ToolResult, UserMessage
from harness.request import Request, Wire, finish, line, to_wire
from harness.sizes import Category, Size

# A longer message of a user's is searched for demands only when a summary wants them, and not in the event loop.
LONG_CHARS = 100_000
_CATEGORIES: dict[type[Message], Category] = {
    UserMessage: "user",
    AssistantMessage: "assistant",
    ToolResult: "results",
    SummaryMessage: "summary",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of the history; `seq` is the journal number of the event that brought it.

    demands: what a person demands in it; None where that was not looked for when it came in, for its length.
    """

    seq: int
    task: int
    message: Message
    wire: Wire
    size: Size
    demands: tuple[Fact, ...] | None = ()

    @property
    def category(self) -> Category:
        """Return the part of the request that this message belongs to."""
        return _CATEGORIES[type(self.message)]


def make_entry(seq: int, task: int, message: Message, measure: Callable[[Wire], Size]) -> Entry:
    """Build an entry, measure it and look for demands; `measure` takes the message as it stands on the wire."""
    wire = to_wire(message)
    return Entry(seq, task, message, wire, measure(wire), _demands(message))


def _demands(message: Message) -> tuple[Fact, ...] | None:
    if not isinstance(message, UserMessage) or message.author != "user":
        return ()
    return demands_in(message.text) if len(message.text) <= LONG_CHARS else None


class Context:
    """The running projection: system prompt, tool definitions, and the entries from the cut point on."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.totals: dict[Category, Size] = {}
        self._system: Wire | None = None
        self._tools: tuple[Wire, ...] = ()
        self._messages: list[Wire] = []
        # The running hash behind each message: a message that is replaced costs what stands behind it, no more.
        self._hashes: list[hashlib._Hash] = []

    @property
    def total(self) -> Size:
        """Return the size of the next request: its messages and its tool definitions."""
        return sum(self.totals.values(), Size())

    @property
    def messages(self) -> Size:
        """Return the size of all entries together, which costs the same however many there are."""
        return sum([size for name, size in self.totals.items() if name not in ("system", "tools")], Size())

    def parted(self, removed: Sequence[int], pinned: Sequence[int]) -> tuple[list[Entry], list[Entry]]:
        """Return the entries that a cut takes away and those that stay, each in order.

        removed, pinned: journal numbers of all that stands before the cut point, where only what is pinned stays.
        """
        place = len(removed) + len(pinned)
        before, behind = self.entries[:place], self.entries[place:]
        if not pinned:
            return before, behind
        stays = set(pinned)
        return (
            [entry for entry in before if entry.seq not in stays],
            [entry for entry in before if entry.seq in stays] + behind,
        )

    def instruct(self, system: Wire, system_size: Size, tools: tuple[Wire, ...], tools_size: Size) -> None:
        """Set what stands before every message; replaces what was set before."""
        self._system, self._tools = system, tools
        self.totals |= {"system": system_size, "tools": tools_size}
        self._put(self.entries)

    def append(self, entry: Entry) -> None:
        """Add one message at the end."""
        # First what can fail: a text that UTF-8 cannot carry must not leave half a message behind.
        self._hashes.append(_hashed(self._hashes[-1] if self._hashes else hashlib.sha256(), entry.wire))
        self._messages.append(entry.wire)
        self.entries.append(entry)
        self._count(entry)

    def put(self, entries: Sequence[Entry]) -> None:
        """Let these be the entries, in this order."""
        self._put(list(entries))

    def swap(self, entries: Mapping[int, Entry]) -> None:
        """Put each of `entries`, by journal number, in the place of the one that has its number."""
        first = min((i for i, each in enumerate(self.entries) if each.seq in entries), default=len(self.entries))
        self._put([*self.entries[:first], *(entries.get(each.seq, each) for each in self.entries[first:])], first)

    @property
    def places(self) -> list[tuple[Category, Size]]:
        """Return category and size of each message of the next request, the system prompt first."""
        system: list[tuple[Category, Size]] = [("system", self.totals["system"])] if self._system else []
        return system + [(entry.category, entry.size) for entry in self.entries]

    def request(self, model: str) -> Request:
        """Return the exact request that the next model call would send."""
        return Request(model, tuple(self._messages), self._tools)

    def digest(self, model: str) -> str:
        """Return the sha256 over model, messages and tools; equal requests have equal digests."""
        return finish(self._hashes[-1] if self._hashes else hashlib.sha256(), model, self._tools)

    def _put(self, entries: list[Entry], same: int = 0) -> None:
        """Let these be the entries. same: how many of the first ones are what they were."""
        messages = ([self._system] if self._system else []) + [entry.wire for entry in entries]
        # As in `append`: nothing is changed before all is known to work.
        hashes = self._hashes[: same + len(messages) - len(entries)] if same else []
        for wire in messages[len(hashes) :]:
            hashes.append(_hashed(hashes[-1] if hashes else hashlib.sha256(), wire))
        self.entries, self._messages, self._hashes = entries, messages, hashes
        self.totals = {name: size for name, size in self.totals.items() if name in ("system", "tools")}
        for entry in entries:
            self._count(entry)

    def _count(self, entry: Entry) -> None:
        self.totals[entry.category] = self.totals.get(entry.category, Size()) + entry.size


def _hashed(running: "hashlib._Hash", wire: Wire) -> "hashlib._Hash":
    following = running.copy()
    following.update(line(wire))
    return following
