"""The one line that says what goes on, for eyes and for screen readers."""

from typing import Literal

from markupsafe import Markup

from harness import events as e
from web.shown import Shown
from web.words import Words

# A look back this far finds what happened last; between tasks there are only a few records.
LOOK_BACK = 40


def state_of(session: Shown) -> Literal["idle", "running", "waiting"]:
    """Return what the session does now. When nothing can be recorded any more, nothing goes on."""
    return "idle" if session.failure else session.status


def failure_line(session: Shown, words: Words) -> Markup:
    """Return why nothing more can be recorded and what to do, or nothing where all is well."""
    failure = session.failure
    return words.t(f"problem.{failure.code}", **failure.values) if failure else Markup()


def status_line(session: Shown, words: Words) -> Markup:
    """Return the line for what the session does now, or for how its last task ended."""
    if session.failure:
        return words.t("status.failed")
    if session.waiting:
        return words.t("status.waiting", tool=session.waiting.name)
    recent = [recorded.event for recorded in reversed(session.records[-LOOK_BACK:])]
    if session.status != "idle":
        return next((line for event in recent if (line := _running(event, words))), words.t("status.running"))
    ended = next((event for event in recent if isinstance(event, e.TaskEnded)), None)
    if ended is None:
        return words.t("status.ready")
    line = words.code("status_ended", ended.reason, task=ended.task)
    in_task = [event for event in recent if isinstance(event, e.ContextCompacted) and event.task == ended.task]
    if in_task:
        before, after = in_task[0].before.chars, in_task[0].after.chars
        line += words.t("language.gap") + words.t("status.compacted", before=before, after=after)
    return line


def _running(event: e.Event, words: Words) -> Markup | None:
    match event:
        case e.ModelCallStarted(call=call):
            return words.t("status.model", call=call)
        case e.ToolStarted(name=name):
            return words.t("status.tool", tool=name)
        case e.SummaryCallStarted():
            return words.t("status.summary")
        case e.TaskStarted() | e.ToolEnded() | e.ModelCallEnded():
            return words.t("status.running")
        case _:
            return None
