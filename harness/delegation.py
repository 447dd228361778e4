"""What a tool hands on to a sub-agent: a role, a task, and the tools that it may use. Pure: the harness runs it."""

from dataclasses import dataclass

from harness.sources import Source


@dataclass(frozen=True, slots=True)
class Delegation:
    """What a sub-agent is to be and to do.

    role: its name. sources: its system prompt. text: its task, word for word. tools: the names of those that it may
    use, where they are there; None: all that ask nobody, since those only look.
    """

    role: str
    sources: tuple[Source, ...]
    text: str
    tools: tuple[str, ...] | None = None
