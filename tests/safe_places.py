"""Where a cut may fall, by looking at the whole history: the measure for `harness.cutting`, which looks at less."""

from collections.abc import Sequence

from harness.context import Entry
from harness.messages import AssistantMessage, ToolResult


def safe_places(entries: Sequence[Entry]) -> list[bool]:
    """Return for each place whether the kept part may begin there; one more for the end."""
    begins: dict[str, int] = {}
    ends: dict[str, int] = {}
    for place, entry in enumerate(entries):
        match entry.message:
            case AssistantMessage(calls=calls):
                begins |= {call.id: place for call in calls}
            case ToolResult(call_id=call_id) if call_id in begins:
                ends[call_id] = place
            case _:
                pass
    # A call whose result comes later spans the places between: no cut may fall there.
    edges = [0] * (len(entries) + 2)
    for call_id, end in ends.items():
        edges[begins[call_id] + 1] += 1
        edges[end + 1] -= 1
    open_calls, safe = 0, []
    for place in range(len(entries) + 1):
        open_calls += edges[place]
        starts = place == len(entries) or entries[place].category in ("user", "assistant")
        safe.append(starts and not open_calls)
    return safe
