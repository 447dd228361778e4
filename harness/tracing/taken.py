"""What a span needs of a session's state at one moment, taken so that the state may go on changing."""

from dataclasses import dataclass, replace

from harness import events as e
from harness.projection import project
from harness.replay import State
from harness.request import Request, Wire


@dataclass(frozen=True, slots=True)
class Taken:
    """request: what a model call sends; compacted: some of its context is a summary. tool: a call's definition."""

    request: Request | None = None
    compacted: bool = False
    tool: Wire | None = None


def take(event: e.Event, state: State) -> Taken | None:
    """Return what the span of `event`, the newest of `state`, needs of it, or None where it needs nothing.

    A request costs a tuple of its messages, which are shared and never changed.
    """
    own, inner = state.whose(event)
    match inner:
        case e.ModelCallStarted() if own.model:
            request = own.request()
            sent = replace(request, messages=project(request.messages, inner.projected))
            return Taken(sent, compacted=bool(own.in_force))
        case e.ToolStarted(name=name) | e.ToolEnded(name=name) if own.instructions:
            tools = own.instructions.tools
            return Taken(tool=next((tool for tool in tools if tool.get("function", {}).get("name") == name), None))
        case _:
            return None
