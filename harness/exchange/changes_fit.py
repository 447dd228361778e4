"""Whether a session could have changed its context so: what `in_place` asks of cuts, decisions and projections."""

from collections.abc import Mapping
from typing import Any

from harness import events as e
from harness.compaction import Plan, refusal
from harness.context import make_entry
from harness.cutting import cut_at
from harness.messages import SummaryMessage
from harness.projection import category_of
from harness.replay import State
from harness.result_events import FOLDER, Decision
from harness.tokens import size_of_message


def cut_fits(state: State, event: e.ContextCompacted) -> bool:
    """Whether the compaction keeps the rules that hold for every strategy, and removes and pins what it says."""
    named = (event.strategy, event.trigger, event.unit, event.budget, event.measured)
    plan = Plan(*named, event.removed, event.kept, event.pinned, event.scope)
    running, message = state.running_task(), SummaryMessage(event.preface, event.summary, event.beside)
    summary, request = make_entry(0, event.task, message, size_of_message), running.seq if running else 0
    return (
        not refusal(state.context, plan, summary, request=request)
        and plan.cut == event.cut
        and event.unit == ("characters" if event.scope == "finished tasks" else "tokens")
        and _pins_fit(state, event, request)
        and all(is_summary_call(state, call) for call in event.calls)
    )


def _pins_fit(state: State, event: e.ContextCompacted, request: int) -> bool:
    """Whether what stays from before the cut point is the running task's request and what waits for results."""
    if event.scope == "finished tasks":
        return not event.pinned
    place = len(event.removed) + len(event.pinned)
    cut = cut_at(state.context.entries[: place + len(event.kept)], place, request=request, waiting=state.unanswered)
    return (cut.removed, cut.pinned, cut.kept) == (event.removed, event.pinned, event.kept)


def decisions_fit(state: State, event: e.ResultsDecided) -> bool:
    """Whether each decision is about a result in the context, about each one at most, and may be made now."""
    there, ids = {entry.seq for entry in state.context.entries}, [each.call_id for each in event.decisions]
    known = all(call_id in state.results and state.results[call_id].seq in there for call_id in ids)
    once = bool(ids) and len(set(ids)) == len(ids)
    return once and known and all(_fits(state, each, event) for each in event.decisions)


def _fits(state: State, decision: Decision, event: e.ResultsDecided) -> bool:
    entry, before = state.results[decision.call_id], state.decisions.get(decision.call_id)
    if decision.chars != len(entry.message.text) or (decision.verdict == "kept") != (not decision.text):
        return False
    if decision.file and not (decision.file.startswith(f"{FOLDER}/") and ".." not in decision.file):
        return False
    if decision.verdict in ("single", "together") and not decision.file:
        return False
    # What the model has not seen is not old.
    if decision.verdict == "stale" and not _seen(state, entry.seq):
        return False
    if event.anew:
        # One whose file could not be written says so, also where nothing was decided before.
        return bool(decision.text or decision.detail or (before and before.text)) and decision != before
    # Once made it holds for ever; only what was kept, and not read back from its file, may grow old.
    return before is None or (before.verdict == "kept" and not before.file and decision.verdict == "stale")


def _seen(state: State, seq: int) -> bool:
    answered = (call.seq for call in reversed(state.calls) if call.purpose == "turn" and call.usage is not None)
    return next(answered, 0) > seq


def projection_fits(state: State, event: e.ModelCallStarted) -> bool:
    """Whether the request can be made of the context's as the event says: places that are there, messages that are."""
    last = len(state.context.places) if event.projected else 0
    return all(
        0 <= part[0] <= part[1] < last if isinstance(part, tuple) else _is_message(part) for part in event.projected
    )


def _is_message(part: Mapping[str, Any]) -> bool:
    """Whether a page can show this as a message: its role is known, and its calls have names."""
    calls = part.get("tool_calls", [])
    named = isinstance(calls, list) and all(isinstance(call["function"]["name"], str) for call in calls)
    return bool(category_of(part)) and "content" in part and named


def is_summary_call(state: State, call: int) -> bool:
    """Whether this model call asked for a summary."""
    return 0 < call <= len(state.calls) and state.calls[call - 1].purpose == "summary"
