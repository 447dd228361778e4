"""The numbers of the context panel, taken from the state and nothing else. Knows no HTML and no words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from harness import events as e
from harness.compaction import Plan, plan_boundary
from harness.journal import Recorded
from harness.records import CallRecord
from harness.replay import State
from harness.sizes import CATEGORIES, Category, Size, Usage

# Why there is no usage to show: no call yet, none since the compaction, or the provider did not say.
NoUsage = Literal["first_call", "next_call", "not_reported"]


@dataclass(frozen=True, slots=True)
class Part:
    """One category of a request."""

    category: Category
    size: Size


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the provider reported for the newest turn, and our estimate of what was added since, in tokens."""

    call: int
    usage: Usage
    since: int


@dataclass(frozen=True, slots=True)
class Boundary:
    """What the strategy would do when the next task ends, at some budget.

    measured: the finished tasks' characters of JSON. plan: the cut. replaced: characters that a summary
    would take the place of, an earlier summary included. limit: the most characters a summary may have.
    before: the task before which the context would be cut.
    """

    measured: int
    budget: int
    plan: Plan
    replaced: int
    limit: int | None
    before: int

    @property
    def messages(self) -> int:
        """Return how many messages would be replaced."""
        return len(self.plan.removed)


def parts_of(sizes: Mapping[Category, Size]) -> list[Part]:
    """Return the categories in their fixed order, also those that are empty."""
    return [Part(category, sizes.get(category, Size())) for category in CATEGORIES]


def anchor(state: State) -> Anchor | NoUsage:
    """Return the last reported usage if it still holds, else why it does not.

    A usage from before a compaction is void: it counted messages that are gone.
    """
    answered = (call for call in reversed(state.calls) if call.purpose == "turn" and call.usage is not None)
    last: CallRecord | None = next(answered, None)
    if last is None:
        return "first_call"
    if state.cut_at > last.seq:
        return "next_call"
    assert last.usage is not None, "only calls with a usage were kept"
    if last.usage.prompt is None:
        return "not_reported"
    return Anchor(last.call, last.usage, max(0, state.context.total.tokens - last.size.tokens))


def boundary(state: State, budget: int | None = None) -> Boundary | None:
    """Return what happens at the next task border; None where the lab has no budget for finished tasks.

    While a task runs that border is its end, so the tasks before it count. Between tasks it is the end of
    the task that comes next, so every task until now counts.
    """
    if "budget" not in state.settings:
        return None
    running = state.running_task()
    newest = state.tasks[-1] if state.tasks else None
    task = running.task if running else (newest.task + 1 if newest else 1)
    asked = state.settings["budget"] if budget is None else budget
    plan = plan_boundary(state.context, task=task, budget=asked)
    removed = set(plan.removed)
    replaced = sum(entry.size.chars for entry in state.context.entries if entry.seq in removed)
    return Boundary(plan.measured, asked, plan, replaced, state.settings.get("summary_limit"), task)


@dataclass(frozen=True, slots=True)
class Border:
    """One measuring at a task's end: what it found, against the budget of that time."""

    task: int
    measured: int
    budget: int
    unit: str
    outcome: str


def borders(records: Sequence[Recorded], most: int) -> list[Border]:
    """Return the newest measurings of a session, at most `most` of them, in order."""
    found = (each.event for each in reversed(records) if isinstance(each.event, e.BoundaryMeasured))
    newest = [Border(m.task, m.measured, m.budget, m.unit, m.outcome) for m in islice(found, most)]
    return newest[::-1]
