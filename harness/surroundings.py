"""What the loop works with: the session's state and the things that reach outside."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from harness import events as e
from harness.calls import Approve
from harness.confirmations import Confirmations
from harness.hooks import Extension
from harness.model.gateway import Gateway
from harness.replay import State
from harness.tools import Tool
from harness.workspace import Workspace

Show = Callable[[e.TextDelta], object]
# Keeps the workspace for a checkpoint: its number, the snapshot before it -> the number of the snapshot that holds it.
KeepStep = Callable[[int, int], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the loop works with: the session's state and the things that reach outside.

    alone: held while a tool runs: sub-agents work side by side, and a tool counts on files staying as they are.
    """

    state: State
    emit: Callable[[e.Event], object]
    show: Show
    gateway: Gateway
    tools: dict[str, Tool]
    extensions: tuple[Extension, ...]
    approve: Approve
    confirmations: Confirmations
    workspace: Workspace | None = None
    keep_step: KeepStep | None = None
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)
