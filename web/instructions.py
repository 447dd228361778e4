"""What the system prompt is made of, as the row of the instructions and the panel show it. Knows no HTML."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from harness.records import Instructed
from harness.sizes import Size
from web.details import visible

# A name or a detail stands in a file, so it may have any length, and there may be any number of them.
LONGEST = 200  # characters
MOST = 40


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the system prompt. number: its place, from 1. problem: what was wrong with it, as a code, or "".

    size: as JSON, with its tokens. text: characters of it as they stand in the prompt.
    """

    number: int
    kind: str
    name: str
    size: Size
    text: int
    problem: str
    detail: str


@dataclass(frozen=True, slots=True)
class InstructionsDetail:
    """The parts of one system prompt, how many there are in all, and how large the whole of it is on the wire.

    text: characters of all parts together as they stand in the prompt. gaps: of the blank lines between them.
    """

    parts: tuple[Part, ...]
    count: int
    whole: Size
    text: int
    gaps: int

    @property
    def troubled(self) -> tuple[Part, ...]:
        """Return the parts with which something was wrong."""
        return tuple(part for part in self.parts if part.problem)


def instructions_detail(made: Instructed) -> InstructionsDetail:
    """Return what is shown of the instructions `made`; what has a problem is never left out for what has none."""
    sources = list(enumerate(zip(made.event.sources, made.sources, strict=True), 1))
    shown = sorted(sorted(sources, key=lambda each: not each[1][0].problem)[:MOST])
    parts = (
        Part(
            number, told.kind, shortened(told.name), size, told.end - told.start, told.problem, shortened(told.detail)
        )
        for number, (told, size) in shown
    )  # fmt: skip
    text = sum(told.end - told.start for told in made.event.sources)
    return InstructionsDetail(tuple(parts), len(sources), made.system, text, len(made.event.system) - text)


def instructed_at(instructed: Sequence[Instructed], seq: int) -> InstructionsDetail | None:
    """Return what is shown of the instructions with journal number `seq`, or None where there are none."""
    place = bisect_right(instructed, seq, key=lambda made: made.seq)
    made = instructed[place - 1] if place else None
    return instructions_detail(made) if made and made.seq == seq else None


def shortened(text: str) -> str:
    """Return `text` in one line that is not too long to show."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
