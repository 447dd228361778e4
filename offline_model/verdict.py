"""What a client tells of a check that failed: a user message with what the check printed, between two tags."""

import re
from dataclasses import dataclass

from offline_model.outcome import WHERE, short, telling

PRINTED = re.compile(r"<check_output>\n?(?P<printed>.*)\n?</check_output>", re.DOTALL)
_COMMAND = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A check that failed. command: "" where none is named. told: the words around what it printed."""

    command: str
    printed: str
    told: str

    @property
    def what(self) -> str:
        """Return what failed, on one line: what a test run says of it, else the last line that was printed."""
        lines = [WHERE.sub("", line) for line in telling(self.printed) if not line.startswith("Ran ")]
        return short(" · ".join(lines) or self.printed.strip().rsplit("\n", 1)[-1], 200)


def read_verdict(text: str) -> Verdict | None:
    """Return what a message says of a check that failed; None where it speaks of none."""
    if not (found := PRINTED.search(text)):
        return None
    before = text[: found.start()]
    command = _COMMAND.search(before)
    return Verdict(command[1] if command else "", found["printed"], before + text[found.end() :])
