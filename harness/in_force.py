"""How many compactions of a session are in force, counted from its journal without reading a summary. Blocking.

It is the count of `State.in_force`: each one that came stands until it is undone, and a resume lets stand what stood
at its checkpoint, whether that was undone since or not.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterable

from harness import events as e
from harness.journal import Journal
from harness.recorded import JournalError, decode

_CHANGES = ("ContextCompacted", "CompactionUndone", "CheckpointSaved", "TaskResumed")


def count_in_force(journal: Journal, sessions: Iterable[str]) -> dict[str, int]:
    """Return the number for each of `sessions` that has any such change. Raises JournalError.

    The only bodies that are read are those of resumes. One that this version cannot read changes nothing.
    """
    wanted = list(sessions)
    to: dict[tuple[str, int], int] = {}
    for session, seq, _, kind, body in journal.rows(wanted, ("TaskResumed",)):
        with contextlib.suppress(JournalError):
            event = decode(kind, body)
            to[session, seq] = event.number if isinstance(event, e.TaskResumed) else 0
    standing: dict[str, int] = defaultdict(int)
    saved: dict[str, dict[int, int]] = defaultdict(dict)
    for session, seq, kind in journal.kinds(wanted, _CHANGES):
        there = saved[session]
        match kind:
            case "ContextCompacted":
                standing[session] += 1
            case "CompactionUndone":
                standing[session] -= 1
            case "CheckpointSaved":
                there[len(there) + 1] = standing[session]
            case _:
                standing[session] = there.get(to.get((session, seq), 0), standing[session])
    return dict(standing)
