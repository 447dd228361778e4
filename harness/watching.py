"""What an extension that watches is shown of an event."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.recorded import Recorded
from harness.replay import State


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a session. `state`: the session's, with the event folded in; `records`: all so far, this one last.

    Both are the session's own and go on changing: whoever keeps something of them for later copies it now.
    """

    session: str
    recorded: Recorded
    state: State
    records: Sequence[Recorded] = ()
