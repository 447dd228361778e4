"""What the harness adds to a model call, at 100 and at 10,000 messages; prints times and their ratio.

Run it with `uv run python -m bench.turn_cost`. Measured is CPU time of everything that the harness does for one
turn besides waiting: build the request, its sizes and digest, and fold the events that follow.
"""

import statistics
import time

from harness import events as e
from harness.replay import State
from harness.sizes import Usage

TURNS = 200
WORDS = "The gate refused 64 of 64 tickets that were sold after 07:35. "


def state_of(messages: int) -> State:
    """Return a state whose context holds that many messages."""
    state = State()
    state.apply(1, e.SessionStarted(lab="07", extensions=(), workspace="w", language="en"))
    state.apply(2, e.ModelChosen(model="m", provider="offline", reason="no_key"))
    state.apply(3, e.InstructionsSet(system="You are an agent.", tools=()))
    for number in range(messages):
        state.apply(number + 4, e.TaskStarted(task=number + 1, text=f"{number} {WORDS}", language="en"))
    return state


def turn(state: State, seq: int) -> float:
    """Take one turn without a model; return the CPU seconds it took."""
    began = time.process_time()
    request = state.request()
    parts, digest = dict(state.context.totals), state.context.digest(request.model)
    call = len(state.calls) + 1
    started = e.ModelCallStarted(call=call, task=1, turn=1, messages=len(request.messages), parts=parts, digest=digest)
    state.apply(seq, started)
    ended = {"finish": "stop", "usage": Usage(1, 1), "seconds": 0.0, "calls": (), "reasoning": ""}
    state.apply(seq + 1, e.ModelCallEnded(call=call, task=1, turn=1, text=WORDS, **ended))
    return time.process_time() - began


def main() -> None:
    """Print the median turn at both lengths, in microseconds of CPU, and the ratio."""
    medians = {}
    for messages in (100, 10_000):
        state = state_of(messages)
        medians[messages] = statistics.median(turn(state, 20_000 + 2 * n) for n in range(TURNS)) * 1e6
        print(f"{messages:>6} messages: {medians[messages]:8.1f} µs of CPU a turn")
    print(f"ratio: {medians[10_000] / medians[100]:.2f}")


if __name__ == "__main__":
    main()
