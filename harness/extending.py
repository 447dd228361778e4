"""Runs a hook of an extension so that whatever it raises costs the task nothing: it is reported, and that is all."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from harness import events as e
from harness.context import Entry
from harness.hooks import Extension
from harness.messages import clean
from harness.replay import State
from harness.surroundings import Surroundings
from harness.watching import Happened

Emit = Callable[[e.Event], object]


def report(state: State, emit: Emit, extension: str, hook: str, detail: str) -> None:
    """Report that a hook failed. detail: what it raised."""
    emit(e.HookFailed(task=len(state.tasks), extension=extension, hook=hook, detail=detail))


async def guarded(around: Surroundings, extension: Extension, hook: str, argument: Any) -> Any:
    """Return what the hook answers, or None where the extension has none or it fails, which is reported."""
    try:
        answer = getattr(extension, hook)
        answer = answer(argument) if answer else None
        return await answer if inspect.isawaitable(answer) else answer
    except Exception as error:  # a lab's code is not ours: it must not cost the task
        report(around.state, around.emit, extension.name, hook, repr(error))
        return None


def put_beside(extensions: tuple[Extension, ...], state: State, emit: Emit, removed: Sequence[Entry]) -> str:
    """Return what the extensions want beside the summary of `removed`, a blank line between them."""
    blocks = []
    for extension in extensions:
        try:
            blocks.append(clean(str(extension.beside(state, removed) if extension.beside else "")).strip())
        except Exception as error:  # a lab's code is not ours: it must not cost the compaction
            report(state, emit, extension.name, "beside", repr(error))
    return "\n\n".join(filter(None, blocks))


def watch(extensions: tuple[Extension, ...], emit: Emit, happened: Happened) -> None:
    """Show an event to every extension that watches."""
    failed = []
    for extension in extensions:
        try:
            if extension.on_event:
                extension.on_event(happened)
        except Exception as error:  # a lab's code is not ours: watching must not cost the task
            failed.append((extension.name, repr(error)))
    # Told once all have seen the event, so that nobody sees them in another order. What fails to watch its own
    # failure would fail for ever.
    if not isinstance(happened.recorded.event, e.HookFailed):
        for name, detail in failed:
            report(happened.state, emit, name, "on_event", detail)
