"""The events about what stands in a request instead of a tool result, and who decided it when."""

from dataclasses import dataclass
from typing import Literal

# Where in a session's workspace the whole results lie.
FOLDER = ".tool-results"
# kept: as it came. single: too large by itself. together: one of several too large together. stale: old.
Verdict = Literal["kept", "single", "together", "stale"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is sent for the result of one call from here on.

    text: the exact text that stands in its place, "" where it is kept. file: where the whole result lies, a path in
    the workspace, or ""; of a kept one the file that was read back. chars: the length of the result itself, in
    characters. detail: why it had to be kept, where its file could not be written.
    """

    call_id: str
    verdict: Verdict
    chars: int
    text: str = ""
    file: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsDecided:
    """Results were looked at before a request went out. freed: by how much the request shrank, 0 where it grew.

    anew: decisions are not kept in this session, so that what was decided before may be decided again.
    """

    task: int
    decisions: tuple[Decision, ...]
    freed_chars: int
    freed_tokens: int
    anew: bool = False
