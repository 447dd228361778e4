"""The figures of a trajectory's steps: what was reported, what was counted, and what became of the context."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from harness import events as e
from harness.messages import ToolCall
from harness.replay import State
from harness.sizes import Size, Usage

# What happened beside the messages, and is told in the step before it.
TOLD = (
    e.ModelCallFailed, e.ModelCallEnded, e.ApprovalAnswered, e.HookFailed, e.TaskEnded, e.BoundaryMeasured,
    e.ContextMeasured, e.SummaryCallEnded, e.CompactionRefused, e.StageEnded, e.CheckpointSaved, e.Verified,
    e.SettingChanged, e.ModelChosen,
)  # fmt: skip
DEPTH = 50  # objects and lists inside one another; a tool's arguments have two or three
TEXT_CHARS = 500  # of a text that is told beside the messages


def metrics(usage: Usage) -> dict[str, Any]:
    """Return the tokens that a provider reported; empty where it said nothing."""
    known = {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion, "cached_tokens": usage.cached}
    found: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    return found | ({"extra": {"prompt_ms": usage.prompt_ms}} if found and usage.prompt_ms is not None else {})


def of_call(event: e.ModelCallEnded, state: State) -> dict[str, Any]:
    """Return what is known of the request and the reply of a turn."""
    call = state.calls[-1]
    about: dict[str, Any] = {
        "task": event.task, "turn": event.turn, "call": event.call, "finish_reason": event.finish,
        "seconds": event.seconds, "request": size(call.size),
    }  # fmt: skip
    if call.projected:
        about["request_projected"] = True
    return about | ({"marks": list(event.marks)} if event.marks else {})


def of_tool_call(call: ToolCall) -> dict[str, Any]:
    """Return a call; arguments that are no JSON object stand beside it as text."""
    try:
        arguments = json.loads(call.arguments, parse_constant=_refuse)
    except (ValueError, RecursionError):
        arguments = None
    named = {"tool_call_id": call.id, "function_name": call.name}
    if isinstance(arguments, dict) and not _deep(arguments):
        return named | {"arguments": arguments}
    return named | {"arguments": {}, "extra": {"arguments_text": call.arguments}}


def of_change(event: e.Event, steps: Mapping[int, int]) -> dict[str, Any]:
    """Return what a boundary step says. steps: of each message the number of its step, by journal number."""
    match event:
        case e.ContextCompacted():
            kind: dict[str, Any] = {"type": "compaction", "boundary": "replace"} | _compaction(event, steps)
        case e.CompactionUndone():
            kind = {"type": "compaction_undone", "boundary": "replace", "number": event.number}
            kind |= {"before": size(event.before), "after": size(event.after)}
        case e.TaskResumed():
            kind = {"type": "resumed", "boundary": "replace", "task": event.task, "checkpoint": event.number}
            kind |= {"by": event.by}
        case _:
            kind = {"type": "instructions_changed", "boundary": "replace"}
    return kind


def _compaction(event: e.ContextCompacted, steps: Mapping[int, int]) -> dict[str, Any]:
    usage = {name: value for name, value in asdict(event.usage).items() if value is not None}
    return {
        "number": event.number, "task": event.task, "strategy": event.strategy, "trigger": event.trigger,
        "source": "person" if event.trigger == "by hand" else "strategy", "unit": event.unit,
        "threshold": event.budget, "measured": event.measured, "measured_after": event.measured_after,
        "before": size(event.before), "after": size(event.after), "messages_removed": len(event.removed),
        "messages_kept": len(event.kept), "messages_pinned": len(event.pinned),
        "removed_step_ids": sorted({steps[seq] for seq in event.removed if steps.get(seq)}),
        "kept_step_ids": sorted({steps[seq] for seq in (*event.pinned, *event.kept) if steps.get(seq)}),
        "shortened": event.shortened, "changed_by_person": bool(event.written), "focus": event.focus,
        "summary_calls": list(event.calls), "summary_model": event.model, "summary_usage_reported": usage,
        "seconds": event.seconds,
    }  # fmt: skip


def of_event(event: e.Event) -> dict[str, Any]:
    """Return the event's name and its numbers, codes and short texts; empty where it is not told."""
    if not isinstance(event, TOLD):
        return {}
    told: dict[str, Any] = {"event": type(event).__name__}
    for name, value in asdict(event).items():
        if isinstance(value, str):
            told[name] = value if len(value) <= TEXT_CHARS else f"{value[:TEXT_CHARS]} [… {len(value)} characters]"
        elif isinstance(value, bool | int | float):
            told[name] = value
        elif name == "usage":
            told["usage_reported"] = {key: each for key, each in value.items() if each is not None}
    return told


def size(counted: Size) -> dict[str, int]:
    """Return a size, its units named: characters of JSON, and tokens that we estimate."""
    return {"characters": counted.chars, "tokens_estimated": counted.tokens}


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _deep(value: Any, left: int = DEPTH) -> bool:
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return not left or any(_deep(each, left - 1) for each in inside)
