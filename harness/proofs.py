"""What a session's journal proves: that something which a lab's text asks to look for has happened.

A proof that holds once holds for ever, so each event is looked at once, however long the session is. Knows no
lab and no words.
"""

import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import Literal
from weakref import WeakKeyDictionary

from harness import events as e
from harness.breaker import MOST_FAILURES, TOLD
from harness.check_events import FAILING
from harness.context import Entry
from harness.facts import facts_in
from harness.facts.told import texts_of
from harness.lost import trace
from harness.messages import AssistantMessage
from harness.recorded import Recorded
from harness.records import Compaction
from harness.replay import State

# compacted: a compaction took effect. compacted_inside: while a task ran, and not by hand. summary_updated: it took the
# place of an earlier summary. overflow_survived: the provider had refused the request as too long. demand_beside: a
# demand of the user's stands beside a summary that does not have it. rewritten: a person changed the summary first.
# undone: one was taken back. refused: a summary was no good and all stayed as it was. breaker_opened: nothing is
# compacted by itself any more. constraint_lost: a demand of the user's stood in what was cut, and stands word for word
# neither in the summary nor behind it. reread: a file was read that had been read in what was cut. cut_moved: a budget
# that a person set had another outcome at a task's end than the first one would have had. tool_result_largest: in some
# call they were the largest part. result_spilled: the whole of one went to a file. result_aged: an old one gave way to
# a preview. result_read_back: its file was read. decided_anew: what stood for a result was decided afresh.
# check_failed: a check failed and went back to the agent. check_passed: one passed. check_given_up: a task ended
# although its check still failed. trusted: a person trusted the folder. skill_read: with the tool. stage_ended,
# checkpointed, resumed: of a long task. handed_on: a sub-agent answered. side_by_side: two of them worked at the same
# time. By a person: child_allowed: a call of one; child_stopped: one. approved, denied, stopped: by a person.
Proof = Literal[
    "compacted", "compacted_inside", "summary_updated", "overflow_survived", "demand_beside", "rewritten", "undone",
    "refused", "breaker_opened", "constraint_lost", "reread", "cut_moved", "tool_result_largest", "result_spilled",
    "result_aged", "result_read_back", "decided_anew", "stage_ended", "checkpointed", "resumed", "approved", "denied",
    "stopped", "check_failed", "check_passed", "check_given_up", "remembered", "recalled",
    "forgotten", "trusted", "skill_read", "handed_on", "side_by_side", "child_allowed", "child_stopped",
]  # fmt: skip
# What was done to a note that outlives the session, by the tool that did it.
_OF_NOTES: dict[str, Proof] = {"remember": "remembered", "recall": "recalled", "forget": "forgotten"}


class Proofs:
    """What the journal of one session proves so far."""

    def __init__(self) -> None:
        self.found: set[Proof] = set()
        self._seen = 0
        self._budget: int | None = None
        self._gone: set[str] = set()
        self._demands: set[str] = set()

    def read_on(self, state: State, records: Sequence[Recorded]) -> frozenset[Proof]:
        """Look at the records that are new since the last time; return all that is proved."""
        new, self._seen = records[self._seen :], len(records)
        for recorded in new:
            self.found.update(self._proved_by(state, recorded))
        return frozenset(self.found)

    def _proved_by(self, state: State, recorded: Recorded) -> Iterable[Proof]:
        match recorded.event:
            case e.SessionStarted(settings=settings) | e.ExtensionsChanged(settings=settings):
                self._budget = settings.get("budget") if self._budget is None else self._budget
            case e.BoundaryMeasured(measured=measured, budget=budget) if self._budget is not None:
                if (measured > budget) != (measured > self._budget):
                    yield "cut_moved"
            case e.ModelCallStarted(parts=parts) if (
                max(parts, key=lambda part: parts[part].chars, default="") == "results"
            ):
                yield "tool_result_largest"
            case e.ApprovalAnswered(allowed=allowed, by="person"):
                yield "approved" if allowed else "denied"
            case e.ChildEvent(child=number, event=event):
                yield from _of_child(state, recorded.seq, number, event)
            case e.WorkspaceTrusted(trusted=True, by="person"):
                yield "trusted"
            case e.ToolEnded(ok=True):
                yield from self._of_tool(state, recorded.event)
            case e.TaskEnded(reason="stopped"):
                yield "stopped"
            case e.CompactionRefused(reason=reason, failures=failures):
                if reason.startswith("summary_") or reason == "not_smaller":
                    yield "refused"
                if failures >= MOST_FAILURES or reason in TOLD.values():
                    yield "breaker_opened"
            case e.CompactionUndone():
                yield "undone"
            case e.ContextCompacted():
                made = next(each for each in reversed(state.compactions) if each.seq == recorded.seq)
                self._gone |= _reads(made.removed)
                yield from _of_compaction(made)
                if "constraint_lost" not in self.found and _any_lost(self._demands, made.removed, _kept(state, made)):
                    yield "constraint_lost"
            case e.TaskStarted(text=text):
                self._demands |= _demands_in(text)
            case _:
                yield from _of_long_task(recorded.event)

    def _of_tool(self, state: State, event: e.ToolEnded) -> Iterable[Proof]:
        if event.name in _OF_NOTES:
            yield _OF_NOTES[event.name]
        if event.name == "skill":
            yield "skill_read"
        if event.call_id in state.child_of:
            yield "handed_on"
        if event.name == "read" and _path(event.arguments) in self._gone:
            yield "reread"


_KEPT: WeakKeyDictionary[State, Proofs] = WeakKeyDictionary()


def proved(state: State, records: Sequence[Recorded]) -> frozenset[Proof]:
    """Return all that the session with this state and these records proves. What was read once is remembered."""
    return _KEPT.setdefault(state, Proofs()).read_on(state, records)


def _of_compaction(made: Compaction) -> Iterable[Proof]:
    event = made.event
    yield "compacted"
    if event.scope == "request" and event.trigger != "by hand":
        yield "compacted_inside"
    if event.trigger == "overflow":
        yield "overflow_survived"
    if any(entry.category == "summary" for entry in made.removed):
        yield "summary_updated"
    if any(demand not in event.summary for demand in event.demands):
        yield "demand_beside"
    if event.written:
        yield "rewritten"


def _of_child(state: State, seq: int, number: int, event: e.Event) -> Iterable[Proof]:
    if isinstance(event, e.ApprovalAnswered) and event.allowed and event.by == "person":
        yield "child_allowed"
    if isinstance(event, e.TaskEnded) and event.reason == "stopped":
        yield "child_stopped"
    began = state.children[number].seq
    if any(began < other.seq < seq for other in state.children.values()):
        yield "side_by_side"


def _of_long_task(event: e.Event) -> Iterable[Proof]:
    match event:
        case e.ResultsDecided(decisions=decisions, anew=anew):
            if any(each.text and each.file for each in decisions):
                yield "result_spilled"
            if any(each.verdict == "stale" for each in decisions):
                yield "result_aged"
            if any(each.verdict == "kept" and each.file for each in decisions):
                yield "result_read_back"
            if anew:
                yield "decided_anew"
        case e.StageEnded():
            yield "stage_ended"
        case e.CheckpointSaved():
            yield "checkpointed"
        case e.TaskResumed():
            yield "resumed"
        case e.Verified(outcome="passed"):
            yield "check_passed"
        case e.Verified(outcome=outcome, back=back) if outcome in FAILING:
            yield "check_failed" if back else "check_given_up"


def _any_lost(demands: set[str], removed: Iterable[Entry], kept: Sequence[Entry]) -> bool:
    """Say whether one of a user's demands stood in `removed` and stands, word for word, in nothing of `kept`."""
    # A demand that was cut earlier stands in the earlier summary.
    words = (entry for entry in removed if entry.category in ("user", "summary"))
    told = [entry for entry in words if any(demands & _demands_in(text) for _, text in texts_of(entry))]
    traced = [each for each in trace(told, kept) if each.fact.key in demands] if told else []
    return any(each.fact.kind == "constraint" and each.fate in ("lost", "changed") for each in traced)


def _demands_in(text: str) -> set[str]:
    return {fact.key for fact in facts_in(text) if fact.kind == "constraint"}


def _kept(state: State, made: Compaction) -> list[Entry]:
    """Return what stood in the context when the compaction had taken effect: its summary, and what it kept."""
    return state.entries_at(made.seq + 1)


def _reads(entries: Iterable[Entry]) -> set[str]:
    """Return the paths of the reads that were asked for in `entries`."""
    replies = (entry.message for entry in entries if isinstance(entry.message, AssistantMessage))
    return {_path(call.arguments) for reply in replies for call in reply.calls if call.name == "read"}


def _path(arguments: str) -> str:
    """Return the path in a call's arguments, or the text as it is where it has none."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(arguments)["path"])
    return arguments
