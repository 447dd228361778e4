"""What deciding and cutting a fresh history of 10,000 messages costs, beside peers; the summariser's own time is out.

Run it with `uv run --with-requirements bench/requirements.txt python -m bench.cut_cost`. Ours is the CPU time of the
lab's own hook, from its measuring to the compacted context, with a summary that is there at once. The messages were
counted when they came in, which is what `bench.count_cost` measures; peers count in the cut, roughly or by what was
reported, or not at all. To look for what users demanded is a line of its own. The aim: under half the time of the
fastest peer.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from unittest.mock import patch

from bench.conversation import ROOMY, Conversation, labs, settings_of
from bench.peers import PEERS, WINDOW, Peer, Said, said
from harness import compacting
from harness import events as e
from harness.agent import Agent
from harness.compaction import Summary
from harness.confirmations import Confirmations
from harness.discovery import Lab, load
from harness.sizes import Usage

MESSAGES = 10_000
REPEATS = 7
SUMMARY = Summary("[Background]", "## Goal\nThe gates.", "", (1,), Usage(1, 1), 0.0)
FEW = 500  # messages: so few are less than some peers keep


async def at_once(*wanted: object) -> Summary:
    """Return a summary without asking for it."""
    return SUMMARY


def ours_once(lab: Lab, whole: Conversation) -> float:
    """Return the CPU seconds of one cut of a fresh copy."""
    copy, hook = whole.again(), hook_of(lab)
    agent = Agent(copy.state, copy.emit, None, Confirmations(copy.emit))  # type: ignore[arg-type]
    with asyncio.Runner() as runner, patch.object(compacting, "write", at_once):
        runner.get_loop()
        began = time.process_time()
        runner.run(hook(agent))
        taken = time.process_time() - began
    assert copy.state.compactions and len(copy.state.context.entries) < len(whole.state.history), copy.numbered[-1]
    return taken


def theirs_once(peer: Peer, given: Said, limit: int) -> float:
    """Return the CPU seconds of one cut of a fresh copy."""
    prepare = peer.prepare()
    assert prepare, "it is installed"
    cut = prepare(given, limit)
    began = time.process_time()
    left = cut()
    taken = time.process_time() - began
    assert left < len(given) or len(given) < FEW, "nothing was cut"
    return taken


def grown(lab: Lab, messages: int, demands: int) -> Conversation:
    """Return a session that is past the limit, before the first turn of a new task; its hook ran once before it was."""
    small = settings_of(lab, window=min(WINDOW, 40 * messages), keep_demands=demands)
    whole = Conversation(lab, small | ROOMY).grow(messages)
    whole.begin()
    asyncio.run(hook_of(lab)(Agent(whole.state, whole.emit, None, Confirmations(whole.emit))))  # type: ignore[arg-type]
    assert not whole.state.compactions, "there was room"
    for name in ROOMY.keys() & small:
        whole.emit(e.SettingChanged(name=name, value=small[name]))
    return whole


def hook_of(lab: Lab) -> Callable[[Agent], Coroutine[None, None, object]]:
    """Return the hook in which a lab compacts."""
    extension = load(lab)
    return extension.before_turn or extension.on_stop  # type: ignore[return-value]


def ours(lab: Lab, messages: int, repeats: int, demands: int = 0) -> float:
    """Return the CPU seconds of the fastest cut. demands: 1 to look for the user's own limits too."""
    whole = grown(lab, messages, demands)
    return min(ours_once(lab, whole) for _ in range(repeats))


def main(messages: int = MESSAGES, repeats: int = REPEATS) -> None:
    """Print CPU milliseconds of the fastest cut of each, and against the fastest peer; all take turns."""
    ways: dict[str, Callable[[], float]] = {}
    for number, lab in labs().items():
        for demands, named in ((0, ""), (1, ", with the user's limits")):
            ways[f"lab {number}{named}"] = partial(ours_once, lab, grown(lab, messages, demands))
    lab = next(iter(labs().values()))
    given = said(Conversation(lab, settings_of(lab)).grow(messages))
    there = [peer for peer in PEERS if peer.cut and peer.prepare()]
    ways |= {peer.name: partial(theirs_once, peer, given, min(WINDOW, 40 * messages)) for peer in there}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, once in ways.items():
            times[name].append(once())
    print(f"CPU ms of a cut of {messages:,} messages")
    fastest = min((min(times[peer.name]) for peer in there), default=None)
    for name, taken in times.items():
        against = f"{min(taken) / fastest:9.2f} of the fastest peer" if fastest else ""
        print(f"{name:<36}{min(taken) * 1e3:10.2f}{against}")
    for peer in PEERS:
        if peer.cut and peer not in there:
            print(f"{peer.name:<36} not installed")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
