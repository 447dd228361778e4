"""Whether a session could have recorded an event at its place: what `recount` asks of each one of a file.

Knows no lab and no figures: only what stood before, and what a real event looks like.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from harness import events as e
from harness.by_hand import SETTING_MAX
from harness.exchange import checks_fit, children_fit
from harness.exchange.changes_fit import cut_fits, decisions_fit, is_summary_call, projection_fits
from harness.exchange.session_file import MOST
from harness.exchange.steps_fit import checkpoint_fits, resume_fits, stage_fits
from harness.offline import FAULTS
from harness.recorded import Recorded
from harness.replay import State

# Events from a model call to the last one of its row, results included. A call of a tool has four, a person may click
# on while it runs, and each event may fail an extension's hook: a reply of a hundred calls comes to less than 1,000.
# A page looks back over them for each row, so a file must not put names and ticks without end between.
APART = 5_000


def in_place(state: State, recorded: Recorded) -> bool:
    """Whether a session in `state` could have recorded this event next."""
    event = recorded.event
    if isinstance(event, e.ChildEvent):
        inner = children_fit.inside(state, recorded)
        return inner is not None and in_place(*inner)
    # Those of sub-agents are passed over without a look at what they are.
    apart = recorded.seq - _began(state, event, recorded.seq) - state.nested
    return in_bounds(event) and _in_session(state, event) and apart <= APART


def in_bounds(value: object) -> bool:
    """Whether every number of an event is one that can have been counted.

    The file's own bounds hold for its JSON; a text such as "NaN" becomes a number only when the event is decoded.
    """
    match value:
        case int() | float():
            return 0 <= value <= MOST
        case tuple():
            return all(map(in_bounds, value))
        case _:
            return not is_dataclass(value) or all(in_bounds(getattr(value, field.name)) for field in fields(value))


def in_range(value: int) -> bool:
    """Whether a setting can have this value."""
    return 0 <= value <= SETTING_MAX


def _began(state: State, event: e.Event, seq: int) -> int:
    """Return where the model call began that this event belongs to or that waits for results, else `seq`."""
    match event:
        case e.SummaryProposed() | e.SummaryAnswered():
            return state.calls[event.call - 1].seq
        case e.ModelCallEnded() | e.ModelCallFailed() | e.SummaryCallEnded():
            return state.calls[-1].seq
        case e.Verified():
            return state.checks[-1].seq if state.checks else seq
        case _:
            return state.calls[-1].seq if state.unanswered else seq


def _in_session(state: State, event: e.Event) -> bool:
    task, tasks = getattr(event, "task", None), len(state.tasks)
    match event:
        case e.SessionStarted():
            return state.started is None
        case _ if state.started is None:
            return False
        case e.TaskStarted():
            return task == tasks + 1 and not state.running_task() and bool(state.model and state.instructions)
        case e.SessionForked():
            return 0 <= event.task <= tasks
        case e.ChildStarted():
            return children_fit.start_fits(state, event)
        case e.HookFailed():
            return task == tasks
        case e.SettingChanged():
            return event.name in state.settings and in_range(event.value)
        case e.FaultChosen():
            return event.fault in ("", *FAULTS)
        case e.InstructionsSet():
            return all(map(_is_tool, event.tools)) and _are_parts(event)
        case e.WorkspaceTrusted():
            return not state.running_task()
        case e.CompactionUndone():
            return bool(state.in_force) and state.in_force[-1].event.number == event.number
        case _ if task is None:
            return True
        case _:
            return task == tasks > 0 and _in_task(state, event)


def _in_task(state: State, event: e.Event) -> bool:
    running, call = state.running_task(), getattr(event, "call", 0)
    last = state.calls[-1] if state.calls else None
    match event:
        case e.ApprovalRequested() | e.ApprovalAnswered() | e.ToolStarted() | e.ToolEnded():
            asked = state.unanswered.get(event.call_id)
            return asked is not None and (asked.name, asked.arguments) == (event.name, event.arguments)
        case e.StageEnded():
            return stage_fits(state, event)
        case _ if state.unanswered:
            return False
        case e.CheckStarted():
            return checks_fit.start_fits(state, event)
        case e.Verified():
            return checks_fit.end_fits(state, event)
        case e.CheckpointSaved():
            return checkpoint_fits(state, event)
        case e.TaskResumed():
            return resume_fits(state, event)
        case e.ModelCallStarted():
            return running is not None and call == len(state.calls) + 1 and projection_fits(state, event)
        case e.SummaryCallStarted():
            return all(map(_is_message, event.messages)) and call == len(state.calls) + 1
        case e.ModelCallEnded() | e.ModelCallFailed() | e.SummaryCallEnded():
            purpose = "summary" if isinstance(event, e.SummaryCallEnded) else "turn"
            new = {each.id for each in getattr(event, "calls", ())}
            unique = len(new) == len(getattr(event, "calls", ())) and not new & state.call_ids
            # What a kill cut short gets no reply any more.
            there = last is not None and last.seq > state.resumed.seq
            return there and (last.call, last.purpose, last.usage) == (call, purpose, None) and unique
        case e.SummaryProposed() | e.SummaryAnswered():
            return is_summary_call(state, call)
        case e.TaskEnded() | e.ContextMeasured():
            return running is not None
        case e.ResultsDecided():
            return running is not None and decisions_fit(state, event)
        case e.ContextCompacted():
            return event.number == len(state.compactions) + 1 and cut_fits(state, event)
        case _:
            return True


def _are_parts(event: e.InstructionsSet) -> bool:
    """Whether the sources stand in the prompt one behind the other."""
    borders = [place for told in event.sources for place in (told.start, told.end)]
    return borders == sorted(borders) and all(0 <= place <= len(event.system) for place in borders)


def _is_tool(tool: Mapping[str, object]) -> bool:
    match tool:
        case {"function": {"name": str(), "description": str(), "parameters": dict()}}:
            return True
        case _:
            return False


def _is_message(message: Mapping[str, object]) -> bool:
    """Whether this is a message of a summary's request, which is all text."""
    return {"role", "content"} <= message.keys() and all(isinstance(value, str) for value in message.values())
