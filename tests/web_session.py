"""Sessions for the tests of the pages: real events, folded by the real fold, without a server."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness import events as e
from harness.compaction import plan_boundary
from harness.context import make_entry
from harness.discovery import Lab, Sample, SampleGroup
from harness.journal import Recorded
from harness.messages import SummaryMessage, ToolCall
from harness.problems import Problem
from harness.replay import State
from harness.sizes import Size, Usage
from harness.tokens import size_of_message

TOOLS = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name} inside the workspace.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
    for name in ("read", "write", "edit", "bash", "search")
)
LOG = "\n".join(f"08:{minute:02d} probe → 503, pool 100/100, request 7f3{minute}" for minute in range(40))
SUMMARY = """## Goal and limits
- "Don't change any file."
## Confirmed
- 5xx from 08:03, pool 100/100
## Unverified
- the push of 07:40 as the cause
## Rejected
- the mail campaign
## Changes and checks
- none
## Open points
- pool metrics before 07:40"""


def lab(folder: Path = Path("/nowhere")) -> Lab:
    """A lab with two samples, and no text unless `folder` has one."""
    first = Sample("sort", {"en": "Sort the log", "zh": "把记录归类"}, {"en": "the bar", "zh": "条形图"})
    second = Sample("guess", {"en": "Which are guesses?", "zh": "哪些是猜测？"}, {"en": "the cut", "zh": "切点"})
    group = SampleGroup({"en": "Fill the context", "zh": "先填满"}, (first, second))
    title = {"en": "Context at the task boundary", "zh": "任务边界上的上下文管理"}
    goal = {"en": "See how finished tasks become a summary.", "zh": "看已完成的任务怎样变成摘要。"}
    return Lab("07", "context-management", folder, title, goal, "incident-log", {}, (group,), True)


@dataclass
class FoldedSession:
    """A session as `web.shown.Shown` wants it, grown event by event."""

    id: str = "s1"
    lab: Lab = field(default_factory=lab)
    state: State = field(default_factory=State)
    records: list[Recorded] = field(default_factory=list)
    status: Literal["idle", "running", "waiting"] = "idle"
    waiting: e.ApprovalRequested | None = None
    proposed: e.SummaryProposed | None = None
    wording: Path | None = None
    partial: tuple[int, str, str] | None = None
    failure: Problem | None = None

    @property
    def committed(self) -> int:
        return len(self.records)

    def add(self, event: e.Event) -> Recorded:
        """Record one event."""
        recorded = Recorded(len(self.records) + 1, 1_800_000_000.0 + len(self.records), event)
        self.records.append(recorded)
        self.state.apply(recorded.seq, event)
        return recorded

    def begin(self, language: str = "en", *, budget: int | None = 1500) -> "FoldedSession":
        """Record what every session starts with."""
        settings = {"step_limit": 30, "approval_seconds": 300}
        settings |= {"budget": budget, "summary_limit": 900} if budget is not None else {}
        self.add(
            e.SessionStarted(lab="07", extensions=(), workspace="incident-log", language=language, settings=settings)
        )
        self.add(
            e.ModelChosen(model="offline", provider="offline", reason="no_key", window=32768, window_source="table")
        )
        self.add(e.InstructionsSet(system="You are a careful coding agent. " * 12, tools=TOOLS))
        return self

    def task(self, text: str, sample: str = "") -> Recorded:
        """Start a task."""
        self.status = "running"
        number = len(self.state.tasks) + 1
        return self.add(e.TaskStarted(task=number, text=text, language="en", sample=sample))

    def call_started(self) -> Recorded:
        """Send a request."""
        context, task = self.state.context, self.state.tasks[-1].task
        call = len(self.state.calls) + 1
        return self.add(
            e.ModelCallStarted(
                call=call, task=task, turn=1, messages=len(context.entries), parts=dict(context.totals), digest="d"
            )
        )

    def call_ended(self, text: str, *calls: ToolCall, **more: object) -> Recorded:
        """Take the reply to the newest request."""
        call, task = len(self.state.calls), self.state.tasks[-1].task
        tokens = self.state.calls[-1].size.tokens
        values = {"reasoning": "", "finish": "stop", "usage": Usage(tokens - 7, 88, 64), "seconds": 0.41} | more
        return self.add(e.ModelCallEnded(call=call, task=task, turn=1, text=text, calls=calls, **values))

    def tool(self, call: ToolCall, text: str, *, ok: bool = True) -> Recorded:
        """Run a call that needs no approval."""
        named = {"task": len(self.state.tasks), "call_id": call.id, "name": call.name, "arguments": call.arguments}
        self.add(e.ToolStarted(**named))
        return self.add(e.ToolEnded(text=text, ok=ok, seconds=0.004, **named))

    def end(self, reason: str = "answered", detail: str = "") -> Recorded:
        """End the task."""
        self.status = "idle"
        return self.add(e.TaskEnded(task=len(self.state.tasks), reason=reason, seconds=3.2, detail=detail))

    def measure(self, outcome: str) -> Recorded:
        """Measure at the task's border."""
        task = self.state.tasks[-1]
        budget = self.state.settings["budget"]
        plan = plan_boundary(self.state.context, task=task.task, budget=budget)
        named = {"strategy": plan.strategy, "unit": plan.unit, "measured": plan.measured, "budget": budget}
        return self.add(e.BoundaryMeasured(task=task.task, outcome=outcome, **named))

    def compact(
        self, summary: str = SUMMARY, *, trigger: str = "task ended", written: str = "", focus: str = "", keep: int = 1
    ) -> Recorded:
        """Write a summary and let it take effect, as lab 07 does; `written` is what a person changed it from."""
        task, state = self.state.tasks[-1], self.state
        border, budget = task.task + 1 - keep, state.settings["budget"]
        plan = plan_boundary(state.context, task=border, budget=budget, trigger=trigger)
        call = len(state.calls) + 1
        messages = ({"role": "system", "content": "Summarise."}, {"role": "user", "content": "<history>…</history>"})
        named = {"call": call, "task": task.task, "attempt": 1}
        self.add(
            e.SummaryCallStarted(
                messages=messages, max_tokens=2000, clipped=12, size=Size(3214, 900), digest="d", **named
            )
        )
        usage = Usage(1204, 188)
        self.add(e.SummaryCallEnded(text=written or summary, finish="stop", usage=usage, seconds=0.4, **named))
        if written:
            self.propose(call, written, summary)
        removed = sum((x.size for x in state.context.entries[: len(plan.removed)]), Size())
        before, preface = state.context.total, "[Background: a summary.]"
        size = make_entry(0, task.task, SummaryMessage(preface, summary), size_of_message).size
        return self.add(
            e.ContextCompacted(
                number=len(state.compactions) + 1, task=task.task, strategy=plan.strategy, trigger=plan.trigger,
                unit=plan.unit, budget=plan.budget, measured=plan.measured, measured_after=0, before=before,
                after=before - removed + size, cut=plan.cut, removed=plan.removed,
                kept=plan.kept, preface=preface, summary=summary, shortened="",
                calls=(call,), usage=usage, seconds=0.4, model="offline", written=written, focus=focus,
            )
        )  # fmt: skip

    def propose(self, call: int, written: str, used: str) -> None:
        """Let a person change a summary."""
        named = {"call": call, "task": len(self.state.tasks)}
        self.status = "waiting"
        self.add(e.SummaryProposed(preface="[Background: a summary.]", text=written, seconds=300, **named))
        self.status = "running"
        self.add(e.SummaryAnswered(text=used, used=True, by="person", **named))

    def undo(self) -> Recorded:
        """Take the newest compaction in force back."""
        made, before = self.state.in_force[-1], self.state.context.total
        after = before - made.summary.size + sum((x.size for x in made.removed), Size())
        return self.add(e.CompactionUndone(number=made.event.number, before=before, after=after))


def first_task(session: FoldedSession) -> None:
    """A task that reads the log and answers."""
    session.task("Read incident-log.md and sort it. Don't change any file.", "sort")
    session.call_started()
    call = ToolCall(f"c{len(session.records)}", "read", '{"path":"incident-log.md"}')
    session.call_ended("", call)
    session.tool(call, LOG)
    session.call_started()
    session.call_ended("**Seen:** 5xx rose at 08:03.\n\n- pool 100/100\n- suspected: the push of 07:40")
    session.measure("none")
    session.end()


def second_task(session: FoldedSession) -> Recorded:
    """A task at whose end the first one is compacted; returns the compaction."""
    session.task("Which are guesses?", "guess")
    session.call_started()
    session.call_ended("Confirmed is the exhausted pool. The push is a guess.")
    session.measure("past")
    compacted = session.compact()
    session.end()
    return compacted


def compacted_session() -> FoldedSession:
    """Two tasks and the compaction at the end of the second."""
    session = FoldedSession().begin()
    first_task(session)
    second_task(session)
    return session


def waiting_session() -> FoldedSession:
    """A task whose edit waits for a person."""
    session = FoldedSession().begin()
    session.task("Fix the test")
    session.call_started()
    call = ToolCall("w1", "edit", '{"path":"a.py","old":"x = 1","new":"x = 2"}')
    session.call_ended("I will fix it.", call)
    preview = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2"
    named = {"task": 1, "call_id": "w1", "name": "edit", "arguments": call.arguments}
    asked = e.ApprovalRequested(preview=preview, seconds=300, **named)
    session.add(asked)
    session.status, session.waiting = "waiting", asked
    return session


def by_hand_session() -> FoldedSession:
    """What a person can do: undo, compact with a focus and another text, name, tick, fork, import, switch."""
    session = compacted_session()
    session.undo()
    session.status = "running"
    session.add(e.CompactionAsked(task=2, focus="every request id", keep=0))
    session.compact(trigger="by hand", written=SUMMARY + "\n- a guess", focus="every request id", keep=0)
    session.status = "idle"
    session.add(e.SessionNamed(name="Second try"))
    session.add(e.Ticked(tick="cut", on=True))
    session.add(e.FaultChosen(fault="summary_empty"))
    session.add(e.ExtensionsChanged(extensions=("01",), settings=dict(session.state.settings)))
    session.add(e.SessionForked(session="s0", task=2))
    session.add(e.SessionImported(file="lab.jsonl"))
    first_task(session)
    return session
