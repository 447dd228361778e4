"""Lab 10: a long task is watched, compressed on three triggers, and saved after each step that succeeded.

The triggers: a share of the window, the end of a stage, and a single large result, which is cut at once.
"""

from collections.abc import Mapping
from pathlib import Path

from harness import budgets, stages
from harness.accounting import estimate, summary_tokens, window_of
from harness.agent import Agent
from harness.compacting import Job, act
from harness.compaction import Plan, plan_cut
from harness.cutting import cut_at, place_of_tail, tail_of, tail_of_rounds
from harness.deciding import hold
from harness.rendering import Reading
from harness.replay import State
from harness.stages import TRIGGER as STAGE
from harness.summary import Asked
from harness.thresholds import percent_threshold
from harness.tools import Tool
from harness.workspace import Workspace

WORDING = Path(__file__).with_name("wording.toml")
# A summary gets at most this share of the window, in percent, and no more tokens than that.
SUMMARY_PERCENT, SUMMARY_TOKENS = 15, 8_000
# For less, in tokens, no summary is asked for: it would hardly be shorter.
LEAST_GAIN = 300
SYSTEM = """
A long task has stages. When one of them is complete, say in your reply what was decided, what is left to do and what \
was rejected, and call `end_stage` with its name."""


def tools(workspace: Workspace) -> list[Tool]:
    """Return the tool that marks the end of a stage."""
    return [stages.end_stage_tool()]


def system_prompt(workspace: Workspace) -> str:
    """Return what the agent is told about stages."""
    return SYSTEM


def threshold(state: State, settings: Mapping[str, int]) -> int:
    """Return above how many tokens this lab compresses: a share of the window."""
    return percent_threshold(window_of(state).tokens, settings["compress_at"])


def compaction(state: State, settings: Mapping[str, int], trigger: str = "", keep: int = 1) -> tuple[Plan, Job]:
    """Return the cut before the newest rounds, or behind the stages that are over, and how to summarise.

    By hand nothing stays where `keep` is 0; other numbers of tasks are no matter.
    """
    entries, running, limit = state.context.entries, state.running_task(), threshold(state, settings)
    if trigger == STAGE:
        place = place_of_tail(entries, lambda entries: stages.place_of_stage(state, entries))
    elif trigger == "by hand" and not keep:
        place = place_of_tail(entries, len)
    else:
        # The newest rounds may be too large themselves, so they never take more than half of what is allowed.
        rounds, room = tail_of_rounds(settings["rounds_kept"]), limit // (4 if trigger == "overflow" else 2)
        place = place_of_tail(entries, lambda entries: max(rounds(entries), tail_of(room)(entries)))
    cut = cut_at(entries, place, request=running.seq if running else 0, waiting=state.unanswered)
    plan = plan_cut("stages", trigger or "threshold", cut, measured=estimate(state).exact, budget=limit)
    most = min(SUMMARY_TOKENS, (window_of(state).tokens or SUMMARY_TOKENS) * SUMMARY_PERCENT // 100)
    asked = Asked(0, summary_tokens(state, most), Reading(whole=settings["read_chars"]))
    return plan, Job(WORDING, asked, demands=bool(settings["keep_demands"]), least=LEAST_GAIN)


async def before_turn(agent: Agent) -> None:
    """Cut what is large, mark the end of a stage, save the step that succeeded; then compress where it is time."""
    await _cut_large_results(agent)
    if (name := stages.marked(agent.state)) is not None:
        agent.end_stage(name)
    await agent.checkpoint(agent.settings["rounds_kept"])
    past = agent.watch("stages", simple=False, threshold=threshold(agent.state, agent.settings))
    trigger = "overflow" if agent.overflowed else STAGE if agent.state.stage_ended else ""
    if past or trigger:
        await act(agent, *compaction(agent.state, agent.settings, trigger), wanted=trigger == STAGE)


async def _cut_large_results(agent: Agent) -> None:
    state = agent.state
    # Where results are decided about anew each time, lab 09 does that, with the limit of this lab too.
    wanted = () if agent.settings.get("decide_anew") else budgets.decide(state, budgets.Budgets.of(agent.settings))
    await hold(agent, wanted)
