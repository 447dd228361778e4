"""What a tool call says: its arguments, the one that matters, and how it is named."""

import json

from offline_model.chat import Call

# Their results are about notes that last over sessions, and not about what is worked on.
NOTE_TOOLS = ("remember", "recall", "forget")
# Its result is the answer of another agent, which knew nothing but what it was told.
HANDS_ON = "task"


def arguments(call: Call) -> dict[str, object]:
    """Return the arguments of a call; broken JSON gives none."""
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def argument(call: Call) -> str:
    """Return the path, command, pattern or name of a call, or "" when its arguments can't be read."""
    values = arguments(call)
    return next((str(values[name]) for name in ("path", "command", "pattern", "name") if values.get(name)), "")


def label_of(call: Call) -> str:
    """Return how a call is named in an answer: its tool and the argument that matters."""
    what = arguments(call).get("role", "") if call.name == HANDS_ON else argument(call)
    return f"{call.name} {what}".strip()
