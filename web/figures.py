"""The numbers of the context panel, taken from the state and nothing else. Knows no HTML and no words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from harness import events as e
from harness.compacting import Job
from harness.compaction import Plan
from harness.compaction import parts_of as parts_of_plan
from harness.hooks import Compacting
from harness.journal import Recorded
from harness.records import CallRecord
from harness.sizes import CATEGORIES, Category, Size, size_of
from web.shown import Shown


@dataclass(frozen=True, slots=True)
class Part:
    """One category of a request."""

    category: Category
    size: Size


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


def planned(session: Shown, trigger: str = "", keep: int = 1, **changed: int) -> tuple[Plan, Job] | None:
    """Return what the session's strategy would cut now and how it would summarise, at settings with `changed`.

    None without a strategy, and where it cannot say: a lab's code is not ours, and at a moment of the past the settings
    may be those of other extensions.
    """
    return _asked(session, session.strategy, trigger, keep, changed) if session.strategy else None


def others(session: Shown) -> list[Plan]:
    """Return what the other strategies, which act too, would cut now: those of labs that were added to the lab."""
    added = [each.compaction for each in session.extensions if each.compaction not in (None, session.strategy)]
    found = [_asked(session, strategy) for strategy in added if strategy]
    return [plan for plan, _ in filter(None, found)]


def _asked(
    session: Shown, strategy: Compacting, trigger: str = "", keep: int = 1, changed: Mapping[str, int] | None = None
) -> tuple[Plan, Job] | None:
    try:
        return strategy(session.state, session.state.settings | (changed or {}), trigger, keep)
    except Exception:  # it must not cost the page
        return None


def boundary(session: Shown, budget: int | None = None) -> Boundary | None:
    """Return what happens at the next task border; None where the lab has no budget for finished tasks.

    While a task runs that border is its end, so the tasks before it count. Between tasks it is the end of
    the task that comes next, so every task until now counts.
    """
    state = session.state
    if "budget" not in state.settings:
        return None
    asked = state.settings["budget"] if budget is None else budget
    found = planned(session, budget=asked)
    if found is None or found[0].scope != "finished tasks":
        return None
    plan, job = found
    task = len(state.tasks) if state.running_task() else len(state.tasks) + 1
    replaced = size_of(parts_of_plan(state.context, plan)[0]).chars
    return Boundary(plan.measured, asked, plan, replaced, job.asked.limit or None, task)


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


def limits(records: Sequence[Recorded], calls: Sequence[CallRecord]) -> dict[int, e.ContextMeasured]:
    """Return what a strategy measured directly before each of `calls`, which are neighbours, by the call's number.

    It is what held then: settings that were changed since change none of it. Of several strategies it is the one that
    was nearest to acting, or furthest past its threshold. Of a call that was sent again after a refusal it may be what
    was measured before the first of both.
    """
    found: dict[int, dict[str, e.ContextMeasured]] = {}
    first, at, again = (calls[0].call if calls else 0), 0, 0
    for each in reversed(records[: calls[-1].seq if calls else 0]):
        match each.event:
            case e.ModelCallStarted(call=call):
                if call < first:
                    break
                at, again = call, again if at == again else 0
            case e.ModelCallFailed() if at and at not in found:
                again = at
            case e.TaskStarted():
                at = again = 0  # what was measured before a task ended without a call belongs to no other task's
            case e.ContextMeasured(strategy=strategy) if at:
                for each_call in filter(None, (at, again)):
                    found.setdefault(each_call, {}).setdefault(strategy, each.event)
            case _:
                pass
    return {
        call: max(measured.values(), key=lambda one: one.estimate - one.threshold)
        for call, measured in reversed(found.items())
    }
