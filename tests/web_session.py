"""Sessions for the tests of the pages: real events, folded by the real fold, without a server."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from harness import events as e
from harness.accounting import estimate
from harness.budgets import freed_by
from harness.compaction import plan_boundary, plan_cut
from harness.context import make_entry
from harness.cutting import cut_at, place_of_tail
from harness.discovery import Lab, Sample, SampleGroup, find_labs, load
from harness.hooks import Compacting, Extension
from harness.journal import Recorded
from harness.messages import SummaryMessage, ToolCall
from harness.problems import Problem
from harness.replay import State
from harness.result_events import FOLDER, Decision
from harness.sizes import Size, Usage, size_of
from harness.sources import Source, joined
from harness.tokens import size_of_message

LABS = Path(__file__).parent.parent / "labs"
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
    asking: int = 0
    proposed: e.SummaryProposed | None = None
    strategy: Compacting | None = field(default_factory=lambda: load(find_labs(LABS)["07"]).compaction)
    extensions: tuple[Extension, ...] = ()
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
        settings |= {"budget": budget, "summary_limit": 900, "keep_demands": 0} if budget is not None else {}
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

    def watch(self, threshold: int = 3200) -> Recorded:
        """Measure the request before a turn, as lab 08 does."""
        found = estimate(self.state)
        counted = {"exact": found.exact, "simple": found.simple, "reported": found.reported, "call": found.call}
        named = {"task": len(self.state.tasks), "strategy": "threshold", "window": 4000}
        return self.add(e.ContextMeasured(estimate=found.exact, threshold=threshold, **named, **counted))

    def decide(self, *decisions: Decision, anew: bool = False) -> Recorded:
        """Let texts stand for results, as lab 09 does."""
        freed = freed_by(self.state, decisions)
        figures = {"freed_chars": max(0, freed.chars), "freed_tokens": max(0, freed.tokens)}
        return self.add(e.ResultsDecided(task=len(self.state.tasks), decisions=decisions, anew=anew, **figures))

    def cut(self, keep: int, summary: str = SUMMARY, *, trigger: str = "threshold", **more: object) -> Recorded:
        """Compact all but the `keep` newest messages inside a task; the task's request stays."""
        state, running = self.state, self.state.running_task()
        entries, call, number = state.context.entries, len(state.calls) + 1, state.tasks[-1].task
        place = place_of_tail(entries, lambda entries: len(entries) - keep)
        cut = cut_at(entries, place, request=running.seq if running else 0)
        measured = estimate(state).exact
        named = {"call": call, "task": number, "attempt": 1}
        asked = ({"role": "system", "content": "Summarise."}, {"role": "user", "content": "<history>…</history>"})
        self.add(e.SummaryCallStarted(messages=asked, max_tokens=9, clipped=0, size=Size(9, 9), digest="d", **named))
        usage = Usage(1204, 188)
        self.add(e.SummaryCallEnded(text=summary, finish="stop", usage=usage, seconds=0.4, **named))
        message = SummaryMessage("[Background: a summary.]", summary, str(more.get("beside", "")))
        before, size = state.context.total, make_entry(0, number, message, size_of_message).size
        after = before - size_of(entry for entry in entries if entry.seq in cut.removed) + size
        plan = plan_cut("threshold", trigger, cut, measured=measured, budget=3200)
        return self.add(
            e.ContextCompacted(
                number=len(state.compactions) + 1, task=number, before=before, after=after, preface=message.preface,
                summary=summary, shortened="", calls=(call,), usage=usage, seconds=0.4, model="offline", cut=plan.cut,
                measured_after=after.tokens, **(asdict(plan) | more),
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


@dataclass
class ChildSession(FoldedSession):
    """A sub-agent of `whole`: what is added here stands in its session's journal."""

    whole: FoldedSession = field(default_factory=FoldedSession)
    number: int = 0

    def add(self, event: e.Event) -> Recorded:
        """Record one event of the sub-agent."""
        wrapped = self.whole.add(e.ChildEvent(child=self.number, event=event))
        recorded = Recorded(len(self.records) + 1, wrapped.time, event)
        self.records.append(recorded)
        return recorded


def hand_on(session: FoldedSession, call: ToolCall, role: str, text: str) -> ChildSession:
    """Let a sub-agent begin for a call that was asked for, and be told its role and task."""
    named = {"task": len(session.state.tasks), "call_id": call.id}
    session.add(e.ToolStarted(name=call.name, arguments=call.arguments, **named))
    number = len(session.state.children) + 1
    session.add(e.ChildStarted(child=number, role=role, **named))
    child = ChildSession(whole=session, number=number, state=session.state.children[number].state)
    child.add(e.InstructionsSet(system=f"You are {role}.", tools=TOOLS[:1]))
    child.task(text)
    return child


def handed_session() -> FoldedSession:
    """Two sub-agents side by side, one of which asks a person and compacts its own context; then a third runs."""
    session = FoldedSession().begin()
    session.task("Look at both")
    session.call_started()
    calls = [ToolCall(f"t{n}", "task", f'{{"role": "explorer", "task": "look <{n}>"}}') for n in (1, 2)]
    session.call_ended("", *calls)
    one = hand_on(session, calls[0], "explorer", "look <1>")
    one.call_started()
    two = hand_on(session, calls[1], "fixer", "look <2>")
    two.call_started()
    read, bash = ToolCall("t1", "read", '{"path":"a.md"}'), ToolCall("t2", "bash", '{"command":"ls"}')
    one.call_ended("I look.", read)
    one.tool(read, LOG)
    two.call_ended("", bash)
    named = {"task": 1, "call_id": "t2", "name": "bash", "arguments": bash.arguments}
    two.add(e.ApprovalRequested(preview="ls", seconds=5, **named))
    one.watch()
    one.cut(1)
    one.call_started()
    one.call_ended("- pool 100/100 <b>")
    one.end()
    two.add(e.ApprovalAnswered(allowed=True, by="person", **named))
    two.tool(bash, "a.md")
    two.call_started()
    two.add(e.ModelCallFailed(call=2, task=1, kind="server", detail="500", seconds=0.1))
    two.end("failed", "server")
    session.status = "running"
    told = [("- pool 100/100 <b>", True), ("The sub-agent ended without an answer.", False)]
    for call, (text, ok) in zip(calls, told, strict=True):
        ended = {"task": 1, "call_id": call.id, "name": "task", "arguments": call.arguments}
        session.add(e.ToolEnded(text=text, ok=ok, seconds=0.2, **ended))
    session.call_started()
    third = ToolCall("t3", "task", "{}")
    session.call_ended("", third)
    hand_on(session, third, "explorer", "look again").call_started()
    return session


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


def sourced_session() -> FoldedSession:
    """Parts of a system prompt, some with a problem, in a folder that is asked about and then trusted."""
    session = FoldedSession().begin()
    first_task(session)
    session.add(told(("body", "SYSTEM.md", "", "untrusted", ""), ("check", "check", "", "untrusted", "make test")))
    session.add(e.WorkspaceTrusted(trusted=False))
    session.task("Go on")
    session.call_started()
    session.call_ended("Done.")
    session.end()
    session.add(e.WorkspaceTrusted(trusted=True))
    session.add(told(("body", "SYSTEM.md", "Be brief. " * 30, "", ""), ("rules", "/a/AGENTS.md", "", "link_loop", "")))
    session.add(e.WorkspaceTrusted(trusted=True, by="earlier"))
    return session


def told(*sources: tuple[str, str, str, str, str]) -> e.InstructionsSet:
    """Instructions of these parts: kind, name, text, problem, detail."""
    own = Source("body", "lab", "You are a careful coding agent.")
    system, parts = joined(
        [own, *(Source(*each, wanted=each[4] if each[3] == "untrusted" else "") for each in sources)]
    )  # type: ignore[arg-type]
    return e.InstructionsSet(system=system, tools=TOOLS, sources=parts)


def check(session: FoldedSession, outcome: str, exit: int = 0, output: str = "", *, back: bool = False) -> Recorded:
    """Run the check of the task that runs; where it fails and goes back, the agent is told."""
    made = [each for each in session.state.checks if each.begun.task == len(session.state.tasks)]
    named = {"task": len(session.state.tasks), "attempt": len(made) + 1, "command": "python3 -m unittest <-q>"}
    named["changed"] = len(made) == 1
    session.add(e.CheckStarted(limit=60, **named))
    went = {"outcome": outcome, "exit": exit, "output": output, "back": back}
    recorded = session.add(e.Verified(seconds=1.5, **named, **went))
    if back:
        session.add(e.FollowUpAdded(task=named["task"], extension="verify", text=f"The check failed.\n{output}"))
    return recorded


def checked_session() -> FoldedSession:
    """Tasks whose checks pass at last, never, are stopped, are not run, and are cut short by a kill."""
    session = FoldedSession().begin()
    for ends in (("failed", "passed"), ("failed", "time", "lost", "failed"), ("stopped",), ("no_sandbox",)):
        session.task("Mend it")
        for number, outcome in enumerate(ends, 1):
            session.call_started()
            session.call_ended("Done.")
            back = outcome != "passed" and number < len(ends)
            check(session, outcome, int(outcome == "failed"), 'FAIL: <b hx-get="/x">test</b>\n' * 3, back=back)
        session.end()
    session.task("Once more")
    session.call_started()
    session.call_ended("Done.")
    session.add(e.CheckStarted(task=5, attempt=1, command="make check", limit=60, changed=True))
    session.end()
    return session


def read_turn(session: FoldedSession, number: int, text: str = LOG) -> ToolCall:
    """A turn that reads a file."""
    session.watch()
    session.call_started()
    call = ToolCall(f"t{len(session.records)}", "read", f'{{"path":"log-{number}.md"}}')
    session.call_ended("", call)
    session.tool(call, text)
    return call


def threshold_session() -> FoldedSession:
    """Compactions inside two tasks: the request stays, a demand and files stand beside, one is undone, one refused."""
    session = FoldedSession().begin()
    first_task(session)
    session.task("Find out why. Don't change any file.")
    for number in range(3):
        read_turn(session, number)
    demand = "Don't change any file."
    beside = f"[Word for word, still in force:]\n- {demand}"
    session.cut(2, "## Goal\n- find out why", beside=beside, demands=(demand,))
    for number in range(3, 6):
        read_turn(session, number)
    session.cut(2, demands=(demand,), trigger="overflow")
    read_turn(session, 6)
    session.call_started()
    session.call_ended("It is the pool.")
    session.end()
    session.undo()
    session.status = "running"
    session.add(e.CompactionAsked(task=2, focus="", keep=1))
    session.cut(4, trigger="by hand")
    session.status = "idle"
    session.task("And the push?")
    for number in range(7, 9):
        read_turn(session, number)
    session.cut(2)
    refused = {"task": 3, "strategy": "threshold", "trigger": "threshold"}
    session.add(e.CompactionRefused(reason="nothing_to_cut", **refused))
    session.add(e.CompactionRefused(reason="summary_too_long", failures=3, **refused))
    session.add(e.CompactionRefused(reason="breaker_failures", **refused))
    session.call_started()
    session.call_ended("A guess.")
    session.end()
    return session


def decided_session() -> FoldedSession:
    """Results that others texts stand for: one by itself, an old one, and one that changes when decided anew."""
    session = FoldedSession().begin()
    session.task("Read all logs")
    large, old, small = (read_turn(session, number, LOG * (3 - number)) for number in range(3))
    chars = len(LOG)
    file = f"{FOLDER}/1-read.txt"
    spilled = Decision(large.id, "single", 3 * chars, f"08:00 probe\n[The whole is in {file}.]", file)
    session.decide(spilled, Decision(old.id, "kept", 2 * chars), Decision(small.id, "kept", chars))
    read_turn(session, 3)
    session.decide(Decision(small.id, "kept", chars, detail=f"{file}: No space left on device"))
    session.decide(Decision(old.id, "stale", 2 * chars, "08:00 … [old]"))
    session.cut(5)
    read_turn(session, 4)
    newest = read_turn(session, 5)
    session.decide(Decision(newest.id, "together", chars, "[short]", f"{FOLDER}/6-read.txt"))
    session.decide(Decision(newest.id, "kept", chars), anew=True)
    session.decide(Decision(newest.id, "together", chars, "[short again]", f"{FOLDER}/6-read.txt"), anew=True)
    session.call_started()
    session.call_ended("Read.")
    session.end()
    return session


def resumed_session() -> FoldedSession:
    """A long task that goes on from a checkpoint, and then compacts."""
    session = FoldedSession().begin()
    first_task(session)
    session.task("Thirty steps")
    for number in range(3):
        read_turn(session, number)
    session.cut(2, "## Goal\n- steps")
    read_turn(session, 3)
    session.add(e.StageEnded(task=2, name="reading", by="agent"))
    session.add(e.CheckpointSaved(number=1, task=2, turn=4, summary="## Goal\n- steps", rounds=(), workspace=0))
    for number in range(4, 8):
        read_turn(session, number)
    session.cut(2)
    read_turn(session, 8)
    session.add(e.TaskResumed(number=1, task=2, by="person"))
    session.status = "running"
    for number in range(9, 12):
        read_turn(session, number)
    session.cut(2)
    read_turn(session, 12)
    session.call_started()
    session.call_ended("Done.")
    session.end()
    return session
