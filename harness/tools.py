"""What a tool is: a name and a schema for the model, a function for the harness.

A tool never raises at the model: what goes wrong becomes a result that the model can act on.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from harness.delegation import Delegation

Arguments = dict[str, Any]


class ToolError(Exception):
    """A tool could not do what was asked; the text says what to do instead and goes to the model."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    name, description, parameters: what the model reads; `parameters` is a JSON schema of type object.
    run: takes the parsed arguments and returns the result's text, or raises ToolError. Cancelling it
        must end everything that it started.
    asks: whether a person must allow each call first.
    preview: for a tool that asks, what the person sees before deciding (a diff, a command).
    delegate: what a sub-agent is to do for a call; the harness runs that in place of `run`. Raises ToolError; pure.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[Arguments], Awaitable[str]]
    asks: bool = False
    preview: Callable[[Arguments], str] | None = None
    delegate: Callable[[Arguments], Delegation] | None = None

    def definition(self) -> dict[str, Any]:
        """Return the tool as Chat Completions wants it in `tools`."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}
