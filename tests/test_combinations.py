"""Every pair of labs, and all of them together, through one session: whatever is combined, the invariants hold."""

import asyncio
import itertools
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import events as e
from harness.by_hand import change_setting
from harness.discovery import find_labs
from harness.request import digest
from harness.sandbox.detect import Sandbox, detect
from harness.session import Session
from tests.checks_support import accept_all
from tests.harness_support import Recorder, assert_rebuilt, events, library, run, running
from tests.replayed_support import hold
from tests.test_invariants import INVARIANTS, Run, Step

ROOT = Path(__file__).parent.parent
LABS = find_labs(ROOT / "labs")
# Of each lab the sample that shows what it is about and is short.
SAMPLE = {"01": 3, "02": 1, "03": 3, "04": 1, "05": 1, "06": 3, "07": 1, "08": 1, "09": 5, "10": 3}
COMPACTING = ("07", "08", "09", "10")
PAIRS = list(itertools.combinations(SAMPLE, 2))
# Tokens on top of what the labs put into every request: where each strategy acts, and the window. Lab 09 keeps at most
# a third of a window free: with a larger one it would act later than that.
ACTS, ROOM = 2_000, 3_500
# A journal is told again in a test of its own, and this one compares the bytes that were sent.
HELD = [each for each in INVARIANTS if not each.__name__.startswith("inv_11")]


@pytest.fixture(scope="module")
def model() -> Iterator[Recorder]:
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return detect()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of every lab's demo, inside of one that has rules too."""
    harbour = tmp_path_factory.mktemp("all") / "harbour"
    demos = ROOT / "demo_workspace"
    shutil.copytree(demos / "harbour", harbour)
    for lab in LABS.values():
        if lab.demo != "harbour/ferry":
            shutil.copytree(demos / lab.demo, harbour / "ferry", dirs_exist_ok=True)
    (harbour / "ferry/.context-lab/verify.toml").write_text('command = "python3 -m unittest -q -f test_tickets"\n')
    return harbour / "ferry"


def task(number: str) -> str:
    samples = [sample for group in LABS[number].groups for sample in group.samples]
    return samples[SAMPLE[number] - 1].task["en"]


async def play(session: Session, numbers: tuple[str, ...]) -> None:
    """Run the labs' tasks one after another, and one more that is answered from the context."""
    if set(numbers) & set(COMPACTING):
        base = session.state.context.total.tokens
        window, limit = base + ROOM, base + ACTS
        wanted = {"window": window, "trigger": limit, "compress_at": 100 * limit // window, "keep_demands": 1}
        wanted |= {"margin": window - limit - session.state.settings.get("summary_reserve", 0)}
        for name in wanted.keys() & session.state.settings.keys():
            change_setting(session, name, wanted[name])
    for number in numbers:
        await run(session, task(number))
    await run(session, "From what you have now: what is confirmed, and what is still open?")


def check(run: Run, step: Step) -> None:
    for invariant in HELD:
        invariant(run, step)


async def held(data: Path, numbers: tuple[str, ...], model: Recorder, sandbox: Sandbox, source: Path) -> Session:
    """Play a session with these labs, hold it to the invariants, and open it again."""
    accept_all(data, source)
    named = {"lab": numbers[-1], "extensions": numbers[:-1], "server": model, "sandbox": sandbox, "source": source}
    first = len(model.requests)
    async with library(data, **named) as opened:
        session = await opened.create(language="en")
        await play(session, numbers)
    inside = [recorded.event.event for recorded in session.records if isinstance(recorded.event, e.ChildEvent)]
    failed = [each for each in (*events(session, e.HookFailed), *inside) if isinstance(each, e.HookFailed)]
    assert failed == []
    assert not [each for each in inside if isinstance(each, e.CheckStarted | e.Verified)], "a sub-agent is not checked"
    assert_rebuilt(session, model.requests[first:])
    state = hold(session.records, tuple(dict.fromkeys(("01", *numbers))), check)
    calls = [
        call.id for entry in session.state.history if entry.category == "assistant" for call in entry.message.calls
    ]
    results = [each.call_id for each in events(session, e.ToolEnded)]
    assert sorted(calls) == sorted(results) and not state.unanswered
    async with library(data, **named) as opened:
        again = await opened.open(session.id)
        assert digest(again.state.request()) == digest(session.state.request()) == digest(state.request())
        assert again.state.context.totals == session.state.context.totals
    return session


def acted(session: Session) -> set[str]:
    """Return the labs that did something in the session."""
    used = {each.name for each in events(session, e.ToolEnded) if each.ok}
    strategies = {each.strategy for each in events(session, e.ContextMeasured, e.BoundaryMeasured)}
    did = {
        "01": bool(used),
        "02": "remember" in used,
        "03": "skill" in used,
        "04": len(session.state.children) == len(events(session, e.ChildStarted)) > 1,
        "05": "passed" in {each.outcome for each in events(session, e.Verified)},
        "06": watched(session),
        "07": "task boundary" in strategies,
        "08": "threshold" in strategies,
        "09": "budgets" in strategies and events(session, e.ResultsDecided),
        "10": events(session, e.StageEnded) and events(session, e.CheckpointSaved),
    }
    return {number for number, there in did.items() if there}


def watched(session: Session) -> bool:
    """Whether spans of the session were made. Nobody takes them here, and what sends them may not be installed."""
    for sending in filter(None, (each.sending for each in session.extensions)):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            stands = sending(session.id)
            if stands and (stands.fault == "missing_packages" or (stands.fault and stands.waiting + stands.lost)):
                return True
            time.sleep(0.02)
    return False


def assert_it_went_well(session: Session, numbers: tuple[str, ...]) -> None:
    assert [each.ended for each in session.state.tasks] == ["answered"] * (len(numbers) + 1)
    assert set(numbers) <= acted(session)
    assert bool(session.state.compactions) is bool(set(numbers) & set(COMPACTING))


@pytest.mark.parametrize("numbers", PAIRS, ids="+".join)
def test_a_pair_of_labs_works_together(
    tmp_path: Path, numbers: tuple[str, ...], model: Recorder, sandbox: Sandbox, source: Path
) -> None:
    assert_it_went_well(asyncio.run(held(tmp_path, numbers, model, sandbox, source)), numbers)


def test_all_labs_work_together(tmp_path: Path, model: Recorder, sandbox: Sandbox, source: Path) -> None:
    session = asyncio.run(held(tmp_path, tuple(SAMPLE), model, sandbox, source))
    assert_it_went_well(session, tuple(SAMPLE))
    strategies = {made.event.strategy for made in session.state.compactions}
    assert len(strategies) >= 3 and all(made.event.task > 1 for made in session.state.compactions)
