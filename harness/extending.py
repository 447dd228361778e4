"""Runs a hook of an extension so that whatever it raises costs the task nothing."""

import inspect
from typing import Any

from harness import events as e
from harness.hooks import Extension
from harness.surroundings import Surroundings


async def guarded(around: Surroundings, extension: Extension, hook: str, argument: Any) -> Any:
    """Return what the hook answers, or None where the extension has none or it fails, which is reported."""
    try:
        answer = getattr(extension, hook)
        answer = answer(argument) if answer else None
        return await answer if inspect.isawaitable(answer) else answer
    except Exception as error:  # a lab's code is not ours: it must not cost the task
        failed = {"extension": extension.name, "hook": hook, "detail": repr(error)}
        around.emit(e.HookFailed(task=around.state.tasks[-1].task, **failed))
        return None
