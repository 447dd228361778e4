"""The steps of one agent's trajectory, from its events and its state after each of them. Knows no file.

Where the context is replaced, by a compaction or otherwise, a boundary step says so and what the model still reads
follows as copies.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harness import events as e
from harness.exporting import figures
from harness.messages import AssistantMessage, SummaryMessage, ToolCall, ToolResult, UserMessage
from harness.replay import State

Step = dict[str, Any]


class Trajectory:
    """Grown event by event; `steps` are numbered from 1. `id` names it, also among the sub-agents of another."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.steps: list[Step] = []
        self._children: dict[str, str] = {}  # of each call that was handed on the sub-agent's trajectory
        self._asking: dict[str, list[Step]] = {}  # of each call the steps that its result belongs to
        self._at: dict[int, int] = {}  # of each message the number of its newest step, by journal number
        self._system: str | None = None
        self._early: list[dict[str, Any]] = []  # what happened before the first step

    def take(self, seq: int, time: float, event: e.Event, state: State) -> None:
        """Add what the event brings. seq: its journal number in `state`, which has taken it already."""
        match event:
            case e.InstructionsSet() | e.ContextCompacted() | e.CompactionUndone() | e.TaskResumed():
                self._replace(seq, time, event, state)
            case e.TaskStarted() | e.FollowUpAdded():
                author = {"author": "extension", "extension": event.extension} if hasattr(event, "extension") else {}
                self._add(seq, time, "user", event.text, {"task": event.task} | author)
            case e.ModelCallEnded() if state.history and state.history[-1].seq == seq:
                step = self._add(seq, time, "agent", event.text, figures.of_call(event, state))
                self._answer(step, event, state)
            case e.ToolEnded():
                self._at[seq] = self._result(event)
            case e.ResultsDecided():
                self._decide(event, state)
            case _ if told := figures.of_event(event):
                self._happened(time, told)

    def hand_on(self, call_id: str, trajectory: str) -> None:
        """Take note that the sub-agent of this trajectory works for a call."""
        self._children[call_id] = trajectory
        for step in self._asking.get(call_id, [])[:1]:
            step.setdefault("observation", {"results": []})["results"].append(
                {"source_call_id": call_id, "subagent_trajectory_ref": [{"trajectory_id": trajectory}]}
            )

    def keep_references(self, there: set[str]) -> None:
        """Leave out references to trajectories that are not `there`."""
        for step in self.steps:
            for result in step.get("observation", {}).get("results", []):
                named = result.get("subagent_trajectory_ref", [])
                if any(each["trajectory_id"] not in there for each in named):
                    del result["subagent_trajectory_ref"]

    def final_metrics(self) -> dict[str, Any]:
        """Return what the steps come to, without copies; a sum only of what was reported."""
        fresh = [step for step in self.steps if not step.get("is_copied_context")]
        reported = [step["metrics"] for step in fresh if "metrics" in step]
        total: dict[str, Any] = {"total_steps": len(fresh)}
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
            if known := [each[name] for each in reported if name in each]:
                total[f"total_{name}"] = sum(known)
        calls = sum(step["source"] == "agent" for step in fresh)
        return total | {"extra": {"model_calls": calls, "model_calls_with_usage": len(reported)}}

    def _replace(self, seq: int, time: float, event: e.Event, state: State) -> None:
        """Say that the context is another one from here on, and what it holds."""
        system = state.instructions.system if state.instructions else ""
        if isinstance(event, e.InstructionsSet):
            before, self._system = self._system, system
            if before == system:
                return
        if not state.history and self.steps:
            # Nothing was said yet, so that the newest instructions are the only ones that count.
            self.steps[0]["message"] = system
            return
        if not state.history:
            self._add(seq, time, "system", system)
            return
        management = figures.of_change(event, self._at)
        summary = next((x for x in state.context.entries if isinstance(x.message, SummaryMessage)), None)
        step = self._add(seq, time, "system", "", {"context_management": management})
        if summary:
            step["observation"] = {"results": [{"content": summary.wire["content"]}]}
        copied = {"copied": True}
        self._add(0, time, "system", system, **copied)
        for entry in state.context.entries:
            message = entry.message
            match message:
                case UserMessage():
                    self._add(entry.seq, time, "user", message.text, **copied)
                case AssistantMessage():
                    again = self._add(entry.seq, time, "agent", message.text, **copied)
                    self._ask(again, message.calls)
                case ToolResult():
                    self._at[entry.seq] = self._observe(message.call_id, {"content": entry.wire["content"]}, last=True)

    def _add(
        self, seq: int, time: float, source: str, message: str, extra: Mapping[str, Any] | None = None, *,
        copied: bool = False,
    ) -> Step:  # fmt: skip
        step: Step = {"step_id": len(self.steps) + 1, "timestamp": _moment(time), "source": source, "message": message}
        if copied:
            step["is_copied_context"] = True
        if extra:
            step["extra"] = dict(extra)
        self.steps.append(step)
        self._at[seq] = step["step_id"]
        if self._early:
            step.setdefault("extra", {})["happened"], self._early = self._early, []
        return step

    def _answer(self, step: Step, event: e.ModelCallEnded, state: State) -> None:
        step["llm_call_count"] = 1
        if state.model and state.model.model:
            step["model_name"] = state.model.model
        if event.reasoning:
            step["reasoning_content"] = event.reasoning
        if metrics := figures.metrics(event.usage):
            step["metrics"] = metrics
        self._ask(step, event.calls)

    def _ask(self, step: Step, calls: tuple[ToolCall, ...]) -> None:
        if calls:
            step["tool_calls"] = [figures.of_tool_call(call) for call in calls]
        for call in calls:
            self._asking.setdefault(call.id, []).append(step)

    def _result(self, event: e.ToolEnded) -> int:
        known = {"ok": event.ok, "seconds": event.seconds}
        result: dict[str, Any] = {"content": event.text, "extra": known}
        return self._observe(event.call_id, result)

    def _observe(self, call_id: str, result: dict[str, Any], *, last: bool = False) -> int:
        """Put a result into the steps that asked for it; return the number of the newest. last: only into that one."""
        steps = self._asking.get(call_id, [])
        for step in steps[-1:] if last else steps:
            results = step.setdefault("observation", {"results": []})["results"]
            there = next((each for each in results if each.get("source_call_id") == call_id), None)
            if there is None:
                there = {"source_call_id": call_id}
                results.append(there)
            there |= result
        return steps[-1]["step_id"] if steps else 0

    def _decide(self, event: e.ResultsDecided, state: State) -> None:
        """Let a result be what the model reads first of it; what it has read by then stays, and the change is told."""
        for decision in event.decisions:
            if not decision.text:
                continue
            steps, whole = self._asking.get(decision.call_id, []), state.results[decision.call_id]
            extra = {"verdict": decision.verdict, "characters": decision.chars, "file": decision.file}
            if steps and steps[-1] is self.steps[-1]:
                assert isinstance(whole.message, ToolResult), "a call's result is one"
                told = {"content": decision.text, "extra": extra | {"whole": whole.message.text}}
                self._observe(decision.call_id, told, last=True)
            elif steps:
                told = {"source_call_id": decision.call_id, "content": decision.text} | extra
                self.steps[-1].setdefault("extra", {}).setdefault("replaced_results", []).append(told)

    def _happened(self, time: float, told: dict[str, Any]) -> None:
        told = {"timestamp": _moment(time)} | told
        if self.steps:
            self.steps[-1].setdefault("extra", {}).setdefault("happened", []).append(told)
        else:
            self._early.append(told)


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")
