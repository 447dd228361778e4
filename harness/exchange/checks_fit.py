"""Whether a session could have checked a task so, as a file says it did."""

from harness import events as e
from harness.check_events import FAILING
from harness.checks import MOST_CHARS, MOST_SECONDS, checks_of
from harness.messages import AssistantMessage
from harness.replay import State
from harness.verifying import OUTPUT_CHARS

# What says how much of the output is left out.
MARK_CHARS = 100


def start_fits(state: State, event: e.CheckStarted) -> bool:
    """Whether a check can begin here: the task runs, the agent has answered, and no other check is open."""
    last, made = state.history[-1], checks_of(state, event.task)
    answered = last.task == event.task and isinstance(last.message, AssistantMessage) and not last.message.calls
    bounded = 0 < len(event.command) <= MOST_CHARS and 0 < event.limit <= MOST_SECONDS
    return state.running_task() is not None and answered and bounded and event.attempt == len(made) + 1


def end_fits(state: State, event: e.Verified) -> bool:
    """Whether the newest check, which has no end yet, can have gone so."""
    if not state.checks or state.checks[-1].result:
        return False
    begun = state.checks[-1].begun
    if state.running_task() is None or len(event.output) > OUTPUT_CHARS + MARK_CHARS:
        return False
    names = ("task", "attempt", "command", "changed")
    same = all(getattr(begun, name) == getattr(event, name) for name in names)
    return same and (event.exit != 0) == (event.outcome == "failed") and (not event.back or event.outcome in FAILING)
