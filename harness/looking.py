"""What the extensions add to every request, looked up in a thread before it is needed: it may read files."""

import asyncio

from harness.hooks import Added, Extension, gather
from harness.workspace import Workspace


class Looked:
    """What was found at the newest look, until it is taken."""

    def __init__(self) -> None:
        self._found: tuple[tuple[Extension, ...], Workspace, Added] | None = None

    async def look(self, extensions: tuple[Extension, ...], workspace: Workspace) -> None:
        """Look now; the next `take` has it at hand."""
        self._found = (extensions, workspace, await asyncio.to_thread(gather, extensions, workspace))

    def take(self, extensions: tuple[Extension, ...], workspace: Workspace) -> Added:
        """Return what these extensions add; without a look for the same ones it is looked up here and now."""
        found, self._found = self._found, None
        if found and found[:2] == (extensions, workspace):
            return found[2]
        return gather(extensions, workspace)
