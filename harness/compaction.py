"""Where a context is to be cut, and whether a compaction may take effect. Pure: it calls no model.

A plan says what would be removed; `refusal` holds every strategy to the same rules before anything changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.compaction_events import Scope, Unit
from harness.context import Context, Entry
from harness.cutting import Cut
from harness.messages import AssistantMessage, ToolResult
from harness.sizes import Size, Usage, size_of


@dataclass(frozen=True, slots=True)
class Plan:
    """A cut that a strategy wants.

    measured: what the strategy counted, in `unit`, to be compared with `budget`; scope: of what.
    removed, kept: the journal numbers of the context's entries before and from the cut point.
    pinned: those before the cut point that stay, behind the summary.
    """

    strategy: str
    trigger: str
    unit: Unit
    budget: int
    measured: int
    removed: tuple[int, ...]
    kept: tuple[int, ...]
    pinned: tuple[int, ...] = ()
    scope: Scope = "finished tasks"

    @property
    def cut(self) -> int:
        """Return the cut point: the first kept entry's number, or the one after all when none is kept."""
        return self.kept[0] if self.kept else max((*self.removed, *self.pinned), default=0) + 1

    @property
    def past(self) -> bool:
        """Whether the strategy acts: there is something to cut, and its measure is strictly above the budget."""
        return self.measured > max(self.budget, 0)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that could take effect, and what it cost. `shortened` says how it came under its limit.

    written: what the model wrote, where a person changed it. focus: what a person asked to keep above all.
    beside: what the harness puts behind it. demands: the user's, that are in `beside` or in the text.
    """

    preface: str
    text: str
    shortened: str
    calls: tuple[int, ...]
    usage: Usage
    seconds: float
    written: str = ""
    focus: str = ""
    beside: str = ""
    demands: tuple[str, ...] = ()


def plan_boundary(context: Context, *, task: int, budget: int, trigger: str = "task ended") -> Plan:
    """Plan the cut of lab 07: before the first message of `task`. `trigger` is a code that the catalogue explains.

    Measured are the characters of JSON of the finished tasks' messages. The summary of an earlier
    compaction is replaced too, but not measured: it has a limit of its own, and with it most tasks would
    end past the budget.
    """
    before = [entry for entry in context.entries if entry.task < task or entry.category == "summary"]
    kept = context.entries[len(before) :]
    measured = sum([entry.size.chars for entry in before if entry.category != "summary"])
    return Plan("task boundary", trigger, "characters", budget, measured, _numbers(before), _numbers(kept))


def plan_cut(strategy: str, trigger: str, cut: Cut, *, measured: int, budget: int) -> Plan:
    """Plan a cut of the whole request, measured in tokens."""
    return Plan(strategy, trigger, "tokens", budget, measured, cut.removed, cut.kept, cut.pinned, "request")


def parts_of(context: Context, plan: Plan) -> tuple[list[Entry], list[Entry]]:
    """Return the entries that `plan` removes, and those that would stay, each in order."""
    return context.parted(plan.removed, plan.pinned)


def size_removed(context: Context, plan: Plan) -> Size:
    """Return the size of what `plan` removes: of all messages, which is known, without the few that would stay."""
    return context.messages - size_of(parts_of(context, plan)[1])


def is_smaller(summary: Entry, gone: Size) -> bool:
    """Whether a summary, with all that stands beside it, is smaller than what it takes the place of, in both units."""
    return summary.size.chars < gone.chars and summary.size.tokens < gone.tokens


def has_news(removed: Iterable[Entry]) -> bool:
    """Whether there is more to summarise than an earlier summary."""
    return any(entry.category != "summary" for entry in removed)


def refusal(context: Context, plan: Plan, summary: Entry, *, request: int = 0) -> str:
    """Return the code of the rule that `plan` with `summary` would break, or "" if it may take effect.

    request: the journal number of the running task's request, which stays word for word; 0 when none runs.
    """
    if not str(summary.message.text).strip():
        return "summary_empty"
    removed, stays = parts_of(context, plan)
    # A message that came while the summary was written is kept, behind the ones of the plan.
    as_planned = stays[: len(plan.pinned) + len(plan.kept)]
    if _numbers(removed) != plan.removed or _numbers(as_planned) != (*plan.pinned, *plan.kept):
        return "context_changed"
    if not has_news(removed):
        return "nothing_to_cut"
    if request in plan.removed:
        return "running_task"
    if not _pairs_stay(removed, stays):
        return "broken_pairs"
    if not is_smaller(summary, size_removed(context, plan)):
        return "not_smaller"
    return ""


def _numbers(entries: Sequence[Entry]) -> tuple[int, ...]:
    return tuple([entry.seq for entry in entries])


def _pairs_stay(removed: Sequence[Entry], stays: Sequence[Entry]) -> bool:
    """Whether no call is parted from its result, and what stays begins with no result.

    A call that nobody ever answered may go: it is part of what is summarised.
    """
    calls: set[str] = set()
    results: set[str] = set()
    for entry in stays:
        match entry.message:
            case AssistantMessage(calls=asked):
                calls |= {call.id for call in asked}
            case ToolResult(call_id=call_id) if call_id not in calls:
                return False
            case ToolResult(call_id=call_id):
                results.add(call_id)
            case _:
                pass
    waiting = calls - results
    # Only a call that stays without its result can have left it behind.
    return not waiting or not any(
        entry.message.call_id in waiting for entry in removed if isinstance(entry.message, ToolResult)
    )
