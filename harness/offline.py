"""What the offline model is told apart from the request: the fault to act out, and how small its window is.

Kept out of the request itself, so that what is sent to any model stays the same, byte for byte.
"""

from collections.abc import Mapping

from harness.replay import State

# What it can act out, by what goes wrong: the call for a summary, any call, the reply on its way.
FAULT_KINDS = {
    "summary": (
        "summary_error", "summary_empty", "summary_truncated", "summary_slow", "summary_tools", "summary_bare",
        "summary_long", "summary_stubborn", "summary_thinking", "summary_constraint",
    ),
    "provider": ("rate_limit", "server_error", "key", "model_missing"),
    "stream": ("slow", "cut", "stall", "empty"),
}  # fmt: skip
FAULTS = tuple(fault for faults in FAULT_KINDS.values() for fault in faults)


def offline_headers(state: State) -> Mapping[str, str]:
    """Return the HTTP headers for the session's calls; none for any other model, which would not know them."""
    if not state.offline:
        return {}
    window = state.settings.get("window", 0)
    headers = {"X-Offline-Fault": state.fault, "X-Offline-Window": str(window) if window else ""}
    return {name: value for name, value in headers.items() if value}
