"""What the harness adds to a model call in which nothing is to be done, beside peers, at 100 to 10,000 messages.

Run it with `uv run --with-requirements bench/requirements.txt python -m bench.call_overhead`. Ours is the CPU time of a
whole turn of the real loop with a model and a tool that answer at once: the hooks before the call with their measuring
and deciding, the request, its digest, the reply, the tool's result, every event folded. A peer's is its deciding hook
alone. The aim: at 10,000 messages at most 1.5 times the cost at 100, and under a millisecond.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence

from bench.conversation import PLAN, RESULT, ROOMY, TOOL, Conversation, call, labs, settings_of, words
from bench.peers import HUGE, PEERS, Said, said
from harness.confirmations import Confirmations
from harness.discovery import Lab, load
from harness.loop import run_task
from harness.model.reply import Reply
from harness.request import Request
from harness.sizes import Usage
from harness.surroundings import Surroundings
from harness.tools import Arguments, Tool

SIZES = (100, 1_000, 10_000)  # messages
TURNS = 60


class Instant:
    """A model that answers at once: with a call, `turns` times, then without. at: when it was asked, CPU seconds."""

    def __init__(self, conversation: Conversation, turns: int) -> None:
        self.at: list[float] = []
        self._state, self._turns = conversation.state, turns

    async def stream(self, request: Request, on_delta: object, *, headers: object) -> Reply:
        """Answer the request."""
        self.at.append(time.process_time())
        number = len(self._state.history)
        calls = (call(number),) if len(self.at) <= self._turns else ()
        usage = Usage(self._state.context.total.tokens, 80)
        return Reply(PLAN.format(**words(number)), calls, "", "stop", usage, 0.0)


async def ours(lab: Lab, messages: int, turns: int) -> float:
    """Return the CPU seconds of the median turn."""
    conversation = Conversation(lab, settings_of(lab, **ROOMY, step_limit=turns + 2)).grow(messages)
    conversation.begin()
    model = Instant(conversation, turns)

    async def run(arguments: Arguments) -> str:
        return RESULT.format(**words(len(conversation.state.history)))

    tools = {"bash": Tool("bash", "Run a command.", TOOL, run)}
    show, approve = (lambda delta: None), None
    await run_task(
        Surroundings(
            conversation.state, conversation.emit, show, model, tools, (load(lab),), approve,
            Confirmations(conversation.emit),
        )
    )  # fmt: skip
    assert len(model.at) == turns + 1, "the task ended early, or something was summarised"
    assert not conversation.state.compactions, "something was to be done"
    return statistics.median(after - before for before, after in zip(model.at, model.at[1:], strict=False))


def theirs(name: str, given: Sequence[Said], turns: int) -> list[float] | None:
    """Return the CPU seconds of the median hook at each size, or None where the peer is not installed."""
    prepare = next(peer for peer in PEERS if peer.name == name).prepare()
    if prepare is None:
        return None
    medians = []
    for messages in given:
        hook, times = prepare(messages, HUGE), []
        for _ in range(max(3, turns * 100 // max(len(messages), 100))):
            began = time.process_time()
            assert hook() == len(messages), "something was to be done"
            times.append(time.process_time() - began)
        medians.append(statistics.median(times))
    return medians


def line(name: str, seconds: Sequence[float] | None) -> str:
    """Return one line of the table: milliseconds at each size, and the last against the first."""
    if seconds is None:
        return f"{name:<36} not installed"
    return f"{name:<36}" + "".join(f"{each * 1e3:10.3f}" for each in seconds) + f"{seconds[-1] / seconds[0]:9.2f}"


def main(sizes: Sequence[int] = SIZES, turns: int = TURNS) -> None:
    """Print CPU milliseconds a model call at each size, of ours the better of two runs, and last against first."""
    print(f"{'CPU ms a call, at messages':<36}" + "".join(f"{size:>10,}" for size in sizes) + f"{'ratio':>9}")
    for number, lab in labs().items():
        print(line(f"lab {number}", [min(asyncio.run(ours(lab, size, turns)) for _ in range(2)) for size in sizes]))
    lab = next(iter(labs().values()))
    given = [said(Conversation(lab, settings_of(lab)).grow(size)) for size in sizes]
    for peer in PEERS:
        if peer.turn:
            print(line(peer.name, theirs(peer.name, given, turns)))


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
