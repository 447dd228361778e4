"""Lab 06: what happens in a session goes to Phoenix as a trace, task by task, while it happens.

It only watches. A span leaves once it has ended; what cannot be sent waits in a thread, and no task waits for it.
"""

import functools

from harness.tracing.place import here
from harness.tracing.sender import Sender, sender
from harness.tracing.standing import Sending
from harness.watching import Happened


def on_event(happened: Happened) -> None:
    """Hand an event on to the thread that makes spans and sends them."""
    _sender().put(happened)


def sending(session: str) -> Sending:
    """Return how many of this session's spans were sent, wait or are lost, and why."""
    return _sender().stands(session)


@functools.cache
def _sender() -> Sender:
    return sender(here())
