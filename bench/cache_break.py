"""What a broken prompt cache costs a real model: lab 09 with results decided about anew each turn, against for good.

Run it with `uv run --group local python -m bench.cache_break FILE.gguf`; a model of 8k tokens is enough. The samples of
lab 09 run in English with the offline model, once with each value of `decide_anew`, in a window in which nothing is
compacted, so that the decisions are all that differs. The requests go in order to llama.cpp's server, which is asked
for one token each; every run has a fresh server and so an empty cache. Printed is what it reports: the tokens that it
did not have in its cache, the same each time, and the time that it took to read the prompts, of all runs the median.
"""

import asyncio
import functools
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench.conversation import ROOT
from harness.discovery import find_labs
from harness.journal import Journal
from harness.library import Library, Setup
from harness.model.gateway import Gateway
from harness.model.local_model import LocalModel
from harness.model.provider import Provider, choose
from harness.problems import Problem
from harness.replay import rebuild
from harness.request import Request
from harness.sandbox.detect import detect
from harness.session import Session
from harness.session_events import ModelChosen
from harness.sizes import Usage
from offline_model.server import OfflineServer
from web.catalogue import load
from web.command import problem_line

NAMES = ("decided for good", "decided anew")  # by the value of `decide_anew`
REPEATS = 3
WINDOW = 12_000  # tokens; in the samples' own 6,000 only one of the two would be compacted


@dataclass(frozen=True, slots=True)
class Total:
    """What a server reports of a whole session: calls, tokens of the prompts, those that it did not have in its cache.

    milliseconds: to read the prompts, None where it does not tell.
    """

    calls: int
    prompt: int
    evaluated: int
    milliseconds: float | None


class Server(Protocol):
    """A model that is served: `start` returns its address, and it forgets all once it was stopped."""

    def start(self) -> str: ...

    def stop(self) -> None: ...


def at(address: str) -> Provider:
    """Return the provider that a server at this address is."""
    return choose({}, model="any", base_url=address, gguf=None)


async def play(session: Session) -> None:
    """Run the lab's samples in order, and say yes to every approval."""
    for sample in (sample for group in session.lab.groups for sample in group.samples):
        session.start_task(sample.task["en"], language="en", sample=sample.id)
        while session.status != "idle":
            if session.waiting:
                session.answer(session.waiting.call_id, True)
            await asyncio.sleep(0.01)


async def session_of(address: str, data: Path, anew: int) -> tuple[Request, ...]:
    """Run lab 09's samples with the model at `address` and return the requests of all calls, as they were sent."""
    labs, provider = find_labs(ROOT / "labs"), at(address)
    setup = Setup(
        labs=labs, lab=labs["09"], extensions=(), source=ROOT / "demo_workspace" / labs["09"].demo, label="demo",
        data=data, sandbox=detect([data]), settings={"decide_anew": anew, "window": WINDOW},
        model=ModelChosen(model=provider.model, provider=provider.kind, reason=provider.reason),
    )  # fmt: skip
    gateway = Gateway(provider)
    library = Library(setup, Journal(f"sqlite:///{data / 'journal.db'}"), gateway)
    try:
        session = await library.create(language="en")
        await play(session)
        numbered = [(each.seq, each.event) for each in session.records]
        return tuple(rebuild(numbered, record.call) for record in session.state.calls)
    finally:
        await library.close()
        await gateway.close()


@functools.cache
def sent(anew: int) -> tuple[Request, ...]:
    """Return the requests of a session with this value of `decide_anew`."""
    server = OfflineServer(sorted((ROOT / "labs").glob("*/offline.toml")), delay=0)
    with tempfile.TemporaryDirectory() as data, server:
        return asyncio.run(session_of(server.address, Path(data), anew))


async def read(address: str, requests: tuple[Request, ...]) -> Total:
    """Have the model at `address` read the requests in order."""
    gateway = Gateway(at(address))

    async def told(request: Request) -> Usage:
        return (await gateway.stream(replace(request, max_tokens=1), lambda piece, kind: None)).usage

    try:
        # What a server does only once is no part of it.
        await told(Request("any", ({"role": "user", "content": "Hello"},)))
        usages = [await told(each) for each in requests]
    finally:
        await gateway.close()
    evaluated = [each.prompt - each.cached for each in usages if each.prompt and each.cached is not None]
    assert len(evaluated) == len(usages), "the server does not tell what came from its cache"
    taken = [each.prompt_ms for each in usages if each.prompt_ms is not None]
    return Total(
        len(usages), sum(each.prompt or 0 for each in usages), sum(evaluated),
        sum(taken) if len(taken) == len(usages) else None,
    )  # fmt: skip


def run(serve: Callable[[], Server], anew: int) -> Total:
    """Return what a fresh server reports of one session. Problem: it cannot start."""
    server = serve()
    address = server.start()
    try:
        return asyncio.run(read(address, sent(anew)))
    finally:
        server.stop()


def line(name: str, totals: Sequence[Total]) -> str:
    """Return the line of one setting; the time is the median, with the shortest and the longest."""
    first, taken = totals[0], times(totals)
    between = f"{statistics.median(taken):10,.0f} ({min(taken):,.0f} to {max(taken):,.0f})" if taken else "  not told"
    return f"{name:<36}{first.calls:>6}{first.prompt:>9,}{first.evaluated:>12,}{between}"


def times(totals: Sequence[Total]) -> list[float]:
    """Return the milliseconds of all runs that told them."""
    return [each.milliseconds for each in totals if each.milliseconds is not None]


def main(serve: Callable[[], Server], repeats: int = REPEATS) -> None:
    """Print what each setting cost, and anew against for good; or in one line why nothing was measured."""
    totals: tuple[list[Total], list[Total]] = ([], [])
    try:
        # By turns, so that what else the machine does meanwhile falls on both.
        for number in range(2 * repeats):
            totals[number % 2].append(run(serve, number % 2))
    except Problem as problem:
        print(f"not measured: {problem_line(load('en'), problem)}")
        return
    kept, anew = totals
    print(f"{'all calls together':<36}{'calls':>6}{'tokens':>9}{'not cached':>12}{'ms':>10}")
    for name, each in zip(NAMES, totals, strict=True):
        print(line(name, each))
    ratio = f"{statistics.median(times(anew)) / statistics.median(times(kept)):10.2f}" if times(kept) else ""
    print(f"{'ratio, anew ÷ for good':<51}{anew[0].evaluated / kept[0].evaluated:12.2f}{ratio}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("Name a GGUF file: python -m bench.cache_break FILE.gguf [REPEATS]")
    main(lambda: LocalModel(Path(sys.argv[1])), *map(int, sys.argv[2:3]))
