"""What a hook may report: what it measured and decided, what it refused, how a check went.

The harness emits what is shown, so a lab is visible without a line of its own.
"""

from collections.abc import Callable, Sequence

from harness import events as e
from harness.accounting import estimate, window_of
from harness.budgets import freed_by
from harness.check_events import Outcome
from harness.checks import Check, checks_of
from harness.compaction import Plan
from harness.records import TaskRecord
from harness.replay import State
from harness.result_events import Decision


class Reporting:
    """The part of an agent that emits what extensions report. overflowed: as for `Agent`."""

    def __init__(self, state: State, emit: Callable[[e.Event], object]) -> None:
        self.state = state
        self.overflowed = False
        self._watched: dict[str, e.ContextMeasured] = {}
        self._emit = emit

    @property
    def task(self) -> TaskRecord:
        """Return the current task."""
        return self.state.tasks[-1]

    @property
    def settings(self) -> dict[str, int]:
        """Return the settings in force."""
        return self.state.settings

    def measured(self, plan: Plan) -> None:
        """Report what a strategy counted at the end of a task and whether it acts."""
        outcome = "past" if plan.past else "within" if plan.removed else "none"
        counted = {name: getattr(plan, name) for name in ("strategy", "unit", "measured", "budget")}
        self._emit(e.BoundaryMeasured(task=self.task.task, outcome=outcome, **counted))

    def watch(self, strategy: str, *, simple: bool, threshold: int) -> bool:
        """Report how large the next request is; whether it is past `threshold`, in tokens, or was refused as too long.

        What was reported before a refusal is not reported again after it where nothing has changed.
        Costs the same however long the history is, so it may be done before every turn; a cut is planned only then.
        """
        found, window = estimate(self.state), window_of(self.state).tokens
        counted = {"exact": found.exact, "simple": found.simple, "reported": found.reported, "call": found.call}
        limit = {"estimate": found.tokens(simple=simple), "threshold": threshold, "window": window}
        event = e.ContextMeasured(task=self.task.task, strategy=strategy, **counted, **limit)
        if not (self.overflowed and self._watched.get(strategy) == event):
            self._emit(event)
        self._watched[strategy] = event
        return found.tokens(simple=simple) > threshold or self.overflowed

    def decide(self, decisions: Sequence[Decision], *, anew: bool = False) -> None:
        """Let `decisions` about results hold from here on; those that hold already are left out.

        anew: they are made afresh before each turn and not kept.
        """
        new = tuple(each for each in decisions if each != self.state.decisions.get(each.call_id))
        if new:
            freed = freed_by(self.state, new)
            figures = {"freed_chars": max(0, freed.chars), "freed_tokens": max(0, freed.tokens)}
            self._emit(e.ResultsDecided(task=self.task.task, decisions=new, anew=anew, **figures))

    def end_stage(self, name: str) -> None:
        """Report that the agent has marked the end of a stage of its task."""
        self._emit(e.StageEnded(task=self.task.task, name=name, by="agent"))

    def refuse(self, plan: Plan, reason: str, detail: str = "") -> None:
        """Report that a compaction was wanted and that everything stays as it was."""
        wanted = {"strategy": plan.strategy, "trigger": plan.trigger}
        failures = self.state.breaker.after(reason)
        self._emit(e.CompactionRefused(task=self.task.task, reason=reason, detail=detail, failures=failures, **wanted))

    def check_begins(self, check: Check, *, changed: bool) -> e.CheckStarted:
        """Report that the command runs that checks the task. changed: its file says something else by now."""
        number = len(checks_of(self.state, self.task.task)) + 1
        named = {"task": self.task.task, "attempt": number, "command": check.command, "limit": check.seconds}
        begun = e.CheckStarted(changed=changed, **named)
        self._emit(begun)
        return begun

    def verified(
        self, begun: e.CheckStarted, outcome: Outcome, *, exit: int, output: str, seconds: float, back: bool
    ) -> None:
        """Report how the check went that has begun. back: what it printed goes back to the agent."""
        named = {"task": begun.task, "attempt": begun.attempt, "command": begun.command}
        went = {"exit": exit, "output": output, "seconds": seconds, "back": back}
        self._emit(e.Verified(outcome=outcome, changed=begun.changed, **named, **went))
