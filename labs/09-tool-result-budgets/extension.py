"""Lab 09: before every model call, tool results that are too large or too old give way to a short text, once and for
ever; past a threshold the older messages become a summary, and what was on the desk stands beside it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import budgets, restoring
from harness.accounting import estimate, summary_tokens, window_of
from harness.agent import Agent
from harness.compacting import Job, act
from harness.compaction import Plan, plan_cut
from harness.context import Entry
from harness.cutting import cut_at, place_of_tail, tail_of
from harness.deciding import hold
from harness.rendering import Reading
from harness.replay import State
from harness.summary import Asked
from harness.thresholds import margin_threshold
from harness.wording import Wording

WORDING = Path(__file__).with_name("wording.toml")
# What the summariser reads, in characters: the whole history, but of a huge result or call only the start and the end.
READING = Reading(message=8_000, arguments=1_000)


def threshold(state: State, settings: Mapping[str, int], trigger: str = "") -> int:
    """Return above how many tokens this lab acts; by hand less is kept free."""
    margin = settings["margin_by_hand" if trigger == "by hand" else "margin"]
    return margin_threshold(window_of(state).tokens, settings["summary_reserve"], margin)


def compaction(state: State, settings: Mapping[str, int], trigger: str = "", keep: int = 1) -> tuple[Plan, Job]:
    """Return the cut before the tail that the settings name, and how to summarise. `keep` tasks are no matter."""
    measured = estimate(state).exact
    least, messages, most = (settings[name] for name in ("tail_tokens", "tail_messages", "tail_most"))
    if trigger == "overflow":
        # What the provider refused is larger than thought, so less of it can stay.
        least, messages, most = min(least, measured // 4), 1, min(most, measured // 4)
    entries, running = state.context.entries, state.running_task()
    place = place_of_tail(entries, tail_of(least, messages, most))
    cut = cut_at(entries, place, request=running.seq if running else 0, waiting=state.unanswered)
    limit = threshold(state, settings, trigger)
    plan = plan_cut("budgets", trigger or "threshold", cut, measured=measured, budget=limit)
    window = window_of(state).tokens or 3 * settings["summary_reserve"]
    asked = Asked(0, summary_tokens(state, min(settings["summary_reserve"], window // 3)), READING)

    def beside(state: State, removed: Sequence[Entry], words: Wording) -> str:
        return restoring.restored(state, removed, words, restoring.Room.of(settings))

    return plan, Job(WORDING, asked, bool(settings["keep_demands"]), beside, settings["least_gain"])


async def before_turn(agent: Agent) -> None:
    """Decide about results; then compact where the request is still past the threshold, or was refused as too long."""
    await _decide(agent)
    if agent.watch("budgets", simple=False, threshold=threshold(agent.state, agent.settings)):
        await act(agent, *compaction(agent.state, agent.settings, "overflow" if agent.overflowed else ""))


async def _decide(agent: Agent) -> None:
    state, limits, anew = agent.state, budgets.Budgets.of(agent.settings), bool(agent.settings["decide_anew"])
    wanted = budgets.decide_anew(state, limits) if anew else budgets.decide(state, limits)
    await hold(agent, wanted, anew=anew)
