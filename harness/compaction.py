"""Where a context may be cut, and whether a compaction may take effect. Pure: it calls no model.

A plan says what would be removed; `refusal` holds every strategy to the same rules before anything changes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.compaction_events import Unit
from harness.context import Context, Entry
from harness.messages import AssistantMessage, ToolResult
from harness.sizes import Usage, size_of


@dataclass(frozen=True, slots=True)
class Plan:
    """A cut that a strategy wants.

    measured: what the strategy counted, in `unit`, to be compared with `budget`.
    removed, kept: the journal numbers of the context's entries before and from the cut point.
    """

    strategy: str
    trigger: str
    unit: Unit
    budget: int
    measured: int
    removed: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def cut(self) -> int:
        """Return the cut point: the first kept entry's number, or the one after all when none is kept."""
        return self.kept[0] if self.kept else max(self.removed, default=0) + 1

    @property
    def past(self) -> bool:
        """Whether the strategy acts: there is something to cut, and its measure is strictly above the budget."""
        return self.measured > max(self.budget, 0)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that could take effect, and what it cost. `shortened` says how it came under its limit.

    written: what the model wrote, where a person changed it. focus: what a person asked to keep above all.
    """

    preface: str
    text: str
    shortened: str
    calls: tuple[int, ...]
    usage: Usage
    seconds: float
    written: str = ""
    focus: str = ""


def plan_boundary(context: Context, *, task: int, budget: int, trigger: str = "task ended") -> Plan:
    """Plan the cut of lab 07: before the first message of `task`. `trigger` is a code that the catalogue explains.

    Measured are the characters of JSON of the finished tasks' messages. The summary of an earlier
    compaction is replaced too, but not measured: it has a limit of its own, and with it most tasks would
    end past the budget.
    """
    before = [entry for entry in context.entries if entry.task < task or entry.category == "summary"]
    kept = context.entries[len(before) :]
    measured = sum(entry.size.chars for entry in before if entry.category != "summary")
    seqs = tuple(entry.seq for entry in before), tuple(entry.seq for entry in kept)
    return Plan("task boundary", trigger, "characters", budget, measured, *seqs)


def refusal(context: Context, plan: Plan, summary: Entry, *, request: int = 0) -> str:
    """Return the code of the rule that `plan` with `summary` would break, or "" if it may take effect.

    request: the journal number of the running task's request, which stays word for word; 0 when none runs.
    """
    if not str(summary.message.text).strip():
        return "summary_empty"
    removed, kept = context.entries[: len(plan.removed)], context.entries[len(plan.removed) :]
    if not any(entry.category != "summary" for entry in removed):
        return "nothing_to_cut"
    # A message that came while the summary was written is kept, behind the ones of the plan.
    now = tuple(entry.seq for entry in kept[: len(plan.kept)])
    if tuple(entry.seq for entry in removed) != plan.removed or now != plan.kept:
        return "context_changed"
    if request in plan.removed:
        return "running_task"
    if not (_pairs_whole(removed) and _pairs_whole(kept)):
        return "broken_pairs"
    if summary.size.chars >= size_of(removed).chars:
        return "not_smaller"
    return ""


def _pairs_whole(entries: Sequence[Entry]) -> bool:
    """Whether every call has exactly one result among `entries`, and every result its call before it."""
    open_calls: Counter[str] = Counter()
    for entry in entries:
        match entry.message:
            case AssistantMessage(calls=calls):
                open_calls.update(call.id for call in calls)
            case ToolResult(call_id=call_id):
                if not open_calls[call_id]:
                    return False
                open_calls[call_id] -= 1
            case _:
                pass
    return not any(open_calls.values())
