"""The files in which whole tool results lie while a request carries only their beginning.

They lie in a hidden folder of the workspace's copy, where `read` reaches them and snapshots and forks take them along.
A file is written before the event that names it, so a kill in between leaves an orphan: `sweep` removes those when
the session is opened again. Blocking, so callers use a thread.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness.child_events import ChildEvent
from harness.copies.contents import new_file
from harness.recorded import Recorded
from harness.result_events import FOLDER, Decision, ResultsDecided

# Ours: what `file_name` gives, and what a write that was cut short leaves.
_OURS = re.compile(r"(?:agent-\d+-)?\d+-[\w-]+\.txt|tmp\w+")
_TOOL = re.compile(r"[^A-Za-z0-9_-]+")
_TOOL_CHARS = 40


def file_name(number: int, tool: str, child: int = 0) -> str:
    """Return the path in the workspace for the session's result `number`: file_name(3, "read") gives a "3-read.txt".

    child: the sub-agent whose result it is, 0 for the session's own agent.
    """
    whose = f"agent-{child}-" if child else ""
    return f"{FOLDER}/{whose}{number}-{_TOOL.sub('_', tool)[:_TOOL_CHARS] or 'tool'}.txt"


def keep(root: Path | None, decisions: Sequence[Decision], texts: Mapping[str, str]) -> tuple[Decision, ...]:
    """Write the file of each decision that has one and replaces a result for its size; return the decisions.

    root: of the workspace. texts: the whole results, by call id. Where a file can't be written, the result stays as
    it came, and the decision says why.
    """
    return tuple(_kept(root, each, texts[each.call_id]) for each in decisions)


def named(records: Iterable[Recorded]) -> frozenset[str]:
    """Return the files that any event of a session or its sub-agents names; also of decisions that no longer hold."""
    bare = (each.event.event if isinstance(each.event, ChildEvent) else each.event for each in records)
    decided = (event for event in bare if isinstance(event, ResultsDecided))
    return frozenset(decision.file for event in decided for decision in event.decisions if decision.file)


def sweep(root: Path, names: frozenset[str]) -> None:
    """Remove the files of results that no event names. What can't be removed stays; nothing is raised."""
    folder = root / FOLDER
    with suppress(OSError):
        if folder.is_symlink():
            return
        for path in list(folder.iterdir()):
            if _OURS.fullmatch(path.name) and f"{FOLDER}/{path.name}" not in names:
                with suppress(OSError):
                    path.unlink()
        folder.rmdir()


def writes(decision: Decision) -> bool:
    """Whether `keep` writes a file for this decision."""
    return decision.verdict in ("single", "together")


def _kept(root: Path | None, decision: Decision, text: str) -> Decision:
    if not writes(decision):
        return decision
    try:
        if root is None:
            raise FileNotFoundError(2, "there is no workspace")
        # A command may have put a link here that leads out of the workspace.
        if (root / FOLDER).is_symlink():
            raise NotADirectoryError(20, f"{FOLDER} is a link")
        with new_file(root / decision.file) as writer:
            writer.write(text.encode())
    except OSError as error:
        detail = f"{decision.file}: {error.strerror or type(error).__name__}"
        return replace(decision, verdict="kept", text="", file="", detail=detail)
    return decision
