"""Whether a session could have begun a sub-agent so, and what could have happened in one, as a file says it did."""

from harness import events as e
from harness.child_events import INSIDE
from harness.recorded import Recorded
from harness.replay import State

# What each sub-agent begins with, once.
BEGINNING = (e.InstructionsSet, e.TaskStarted)


def start_fits(state: State, event: e.ChildStarted) -> bool:
    """Whether a sub-agent can begin here: for a call that has neither a result nor a sub-agent yet."""
    waits = event.call_id in state.unanswered and event.call_id not in state.child_of
    running = state.running_task()
    return (
        waits
        and running is not None
        and running.task == event.task
        and state.number == 0
        and event.child == len(state.children) + 1
    )


def inside(state: State, recorded: Recorded) -> tuple[State, Recorded] | None:
    """Return the state of the sub-agent that has recorded an event, and that event by its own number.

    None where no sub-agent can have: there is none, its call has a result, it has ended, or it begins otherwise.
    """
    child, event = state.children.get(recorded.event.child), recorded.event.event
    if child is None or child.event.call_id not in state.unanswered or type(event).__name__ not in INSIDE:
        return None
    place, tasks = len(child.seqs), child.state.tasks
    first = BEGINNING[place : place + 1]
    if isinstance(event, BEGINNING) if not first else not isinstance(event, first):
        return None
    return None if tasks and tasks[-1].ended else (child.state, Recorded(place + 1, recorded.time, event))
