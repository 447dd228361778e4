"""What the fold keeps of calls, tasks and compactions, beside the messages themselves."""

from dataclasses import dataclass

from harness.check_events import CheckStarted, Verified
from harness.context import Entry
from harness.events import ContextCompacted, InstructionsSet
from harness.projection import Part
from harness.sizes import Category, Size, Usage


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One model call and its request by category; usage and seconds are None until a reply came.

    context: the size of the context's request, from which extensions may have made a smaller one.
    """

    seq: int
    call: int
    task: int
    purpose: str
    parts: dict[Category, Size]
    context: Size
    usage: Usage | None = None
    seconds: float | None = None
    projected: tuple[Part, ...] = ()

    @property
    def size(self) -> Size:
        """Return the size of the whole request."""
        return sum(self.parts.values(), Size())


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One user request; `seq` is where it starts. `ended` is the reason code, or empty while it runs."""

    task: int
    seq: int
    text: str
    sample: str
    language: str
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that took effect, with its journal number, the entries that it removed, and its summary.

    undone: the journal number at which a person took it back, or 0.
    """

    seq: int
    event: ContextCompacted
    removed: tuple[Entry, ...]
    summary: Entry
    undone: int = 0


@dataclass(frozen=True, slots=True)
class Instructed:
    """What stood before every message from journal number `seq` on, with the sizes of its two parts.

    sources: the sizes of the system prompt's own parts, in the event's order, each counted by itself.
    """

    seq: int
    event: InstructionsSet
    system: Size
    tools: Size
    sources: tuple[Size, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """A check of a task: where and how it began, and how it went; None before it has ended."""

    seq: int
    begun: CheckStarted
    result: Verified | None = None
