"""Lab 08: before every model call, older messages become a summary once the request is past a threshold.

The cut falls where enough of the newest messages is kept, inside the running task too; the task's request stays.
"""

from collections.abc import Mapping
from pathlib import Path

from harness.accounting import estimate, summary_tokens, window_of
from harness.agent import Agent
from harness.compacting import Job, act
from harness.compaction import Plan, plan_cut
from harness.cutting import cut_at, place_of_tail, tail_of
from harness.rendering import Reading
from harness.replay import State
from harness.summary import Asked
from harness.thresholds import reserve_threshold, summary_room

WORDING = Path(__file__).with_name("wording.toml")


def threshold(state: State, settings: Mapping[str, int]) -> int:
    """Return above how many tokens this lab acts."""
    window = window_of(state)
    return reserve_threshold(window.tokens, settings["reserve"], known=window.known, trigger=settings["trigger"])


def compaction(state: State, settings: Mapping[str, int], trigger: str = "", keep: int = 1) -> tuple[Plan, Job]:
    """Return the cut before the newest `settings["keep"]` tokens, and how to summarise. `keep` tasks are no matter."""
    entries = state.context.entries
    measured = estimate(state).tokens(simple=bool(settings["count_simply"]))
    # What the provider refused is larger than thought, so less of it can stay.
    tail = min(settings["keep"], measured // 4) if trigger == "overflow" else settings["keep"]
    running = state.running_task()
    place = place_of_tail(entries, tail_of(tail))
    cut = cut_at(entries, place, request=running.seq if running else 0, waiting=state.unanswered)
    asked = Asked(0, summary_tokens(state, summary_room(settings["reserve"], window_of(state).tokens)), Reading())
    limit = threshold(state, settings)
    plan = plan_cut("threshold", trigger or "threshold", cut, measured=measured, budget=limit)
    return plan, Job(WORDING, asked, demands=bool(settings["keep_demands"]))


async def before_turn(agent: Agent) -> None:
    """Compact where the request is past the threshold, or where the provider has just refused it as too long."""
    state, settings = agent.state, agent.settings
    if agent.watch("threshold", simple=bool(settings["count_simply"]), threshold=threshold(state, settings)):
        await act(agent, *compaction(state, settings, "overflow" if agent.overflowed else ""))
