"""The one line that says what goes on, for eyes and for screen readers."""

from typing import Literal

from markupsafe import Markup

from harness import events as e
from harness.checks import Verdict, verdict
from harness.stages import has_stages
from web.rows import proposal_id, tool_call_id
from web.shown import Shown
from web.trust import trust_of
from web.units import sized
from web.viewer import Viewer
from web.words import Words

# A look back this far finds what happened last; between tasks there are only a few records.
LOOK_BACK = 40
ENDS = (e.TaskEnded, e.ContextCompacted, e.CompactionRefused, e.CompactionUndone)


def state_of(session: Shown) -> Literal["idle", "running", "waiting"]:
    """Return what the session does now. When nothing can be recorded any more, nothing goes on."""
    return "idle" if session.failure else session.status


def may_end_stage(session: Shown) -> bool:
    """Whether a person may mark the end of a stage: a task runs, and something compacts there."""
    if session.failure or session.state.running_task() is None:
        return False
    return session.strategy is not None and has_stages(session.state)


def failure_line(session: Shown, words: Words) -> Markup:
    """Return why nothing more can be recorded and what to do, or nothing where all is well."""
    failure = session.failure
    return words.t(f"problem.{failure.code}", **failure.values) if failure else Markup()


def asking_row(session: Shown) -> str:
    """Return the id of the row or the question that waits for a person's answer, or nothing."""
    if session.failure:
        return ""
    if session.waiting:
        # A sub-agent's rows stand inside the row of its call, under names of their own.
        inside = f"child-{session.asking}-" if session.asking else ""
        return inside + tool_call_id(session.waiting.call_id)
    if session.proposed:
        return proposal_id(session.proposed.call)
    return "trust" if _asks_trust(session) else ""


def _asks_trust(session: Shown) -> bool:
    """Whether the question about the folder waits: its place is the end of the feed, which may be out of sight."""
    trust = trust_of(session) if session.status == "idle" else None
    return trust is not None and trust.asks


def status_line(session: Shown, viewer: Viewer) -> Markup:
    """Return the line for what the session does now, or for how its last task ended."""
    words = viewer.words
    if session.failure:
        return words.t("status.failed")
    if session.status == "idle":
        line = _idle(session, viewer)
        return line + words.t("language.gap") + words.t("status.trust") if _asks_trust(session) else line
    if session.waiting:
        tool, child = session.waiting.name, session.asking
        return words.t("status.waiting_child" if child else "status.waiting", tool=tool, n=child)
    if session.proposed:
        return words.t("status.proposed")
    recent = (each.event for each in reversed(session.records[-LOOK_BACK:]))
    return next((line for event in recent if (line := _running(event, words))), words.t("status.running"))


def doing_of(child: Shown, viewer: Viewer) -> Markup:
    """Return what a sub-agent does now; nothing where no more can be said than that it works, waits or has ended."""
    line = status_line(child, viewer) if state_of(child) == "running" else Markup()
    return Markup() if line == viewer.words.t("status.running") else line


def _idle(session: Shown, viewer: Viewer) -> Markup:
    words, recorded = viewer.words, session.records[-LOOK_BACK:]
    recent = [each.event for each in reversed(recorded)]
    ended = next((event for event in recent if isinstance(event, ENDS)), None)
    if not isinstance(ended, e.TaskEnded):
        return _by_hand(ended, viewer)
    line = words.code("status_ended", ended.reason, task=ended.task)
    at = next(each.seq for each in reversed(recorded) if each.event is ended)
    found = verdict(session.state, ended.task, at, answered=ended.reason == "answered")
    if checked := verdict_line(found, words):
        line += words.t("language.gap") + checked
    # A cut that the task has made calls after is old news.
    newest = next((event for event in recent if isinstance(event, (e.ContextCompacted, e.ModelCallStarted))), None)
    if isinstance(newest, e.ContextCompacted) and newest.task == ended.task:
        line += words.t("language.gap") + words.t("status.compacted", **_went(newest, viewer))
    return line


def verdict_line(found: Verdict, words: Words) -> Markup:
    """Return what the checks say of a task that has ended, or nothing where nothing was to be checked."""
    return words.code("checked", found.says, n=found.back, last=found.last) if found.says else Markup()


def _by_hand(event: e.Event | None, viewer: Viewer) -> Markup:
    match event:
        case e.ContextCompacted():
            return viewer.words.t("status.compacted", **_went(event, viewer))
        case e.CompactionUndone():
            return viewer.words.t("status.undone", **_went(event, viewer))
        case e.CompactionRefused():
            return viewer.words.t("status.not_compacted")
        case _:
            return viewer.words.t("status.ready")


def _went(event: e.ContextCompacted | e.CompactionUndone, viewer: Viewer) -> dict[str, Markup]:
    # What a provider reports comes with the next call only; until then the estimate is all there is.
    unit = "estimated" if viewer.unit == "reported" else viewer.unit
    sizes = {"before": event.before, "after": event.after}
    return {name: sized(viewer.words, unit, "status", size) for name, size in sizes.items()}


def _running(event: e.Event, words: Words) -> Markup | None:
    match event:
        case e.ModelCallStarted(call=call):
            return words.t("status.model", call=call)
        case e.ToolStarted(name=name):
            return words.t("status.tool", tool=name)
        case e.SummaryCallStarted():
            return words.t("status.summary")
        case e.CheckStarted():
            return words.t("status.check")
        case e.ChildStarted() | e.ChildEvent():
            return words.t("status.children")
        case e.TaskStarted() | e.TaskResumed() | e.CompactionAsked() | e.SummaryAnswered():
            return words.t("status.running")
        case e.ToolEnded() | e.ModelCallEnded() | e.Verified():
            return words.t("status.running")
        case _:
            return None
