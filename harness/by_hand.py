"""What a person changes in a session: settings, name, fault, ticks; a compaction by hand, and taking one back.

Each is an event. What cannot be done is refused before anything is recorded.
"""

from harness import events as e
from harness.compacting import Job, carry_out
from harness.compaction import Plan, has_news, parts_of
from harness.hooks import Compacting
from harness.messages import clean
from harness.problems import Problem
from harness.replay import State
from harness.session import Busy, Session
from harness.sizes import size_of

# More than any budget or limit needs, and far from what a database cannot hold.
SETTING_MAX = 10_000_000
FOCUS_CHARS = 500
NAME_CHARS = 120


def change_setting(session: Session, name: str, value: int, preset: str = "") -> bool:
    """Change one of the session's settings; whether it was another. ValueError: no such setting, or out of range.

    preset: the lab's numbers that were chosen, if it is the first of them that changes.
    """
    if name not in session.state.settings or not 0 <= value <= SETTING_MAX:
        raise ValueError(name)
    if session.state.settings[name] == value:
        return False
    session.emit(e.SettingChanged(name=name, value=value, preset=preset))
    return True


def choose_fault(session: Session, fault: str) -> None:
    """Let the offline model act out a fault for this session, "" for none."""
    if session.state.fault != fault:
        session.emit(e.FaultChosen(fault=fault))


def rename(session: Session, name: str) -> None:
    """Give the session a name; "" takes it away."""
    name = " ".join(clean(name).split())[:NAME_CHARS]
    if session.state.name != name:
        session.emit(e.SessionNamed(name=name))


def tick(session: Session, tick_id: str, *, on: bool) -> None:
    """Tick something that was seen, or take the tick away."""
    if (tick_id in session.state.ticked) != on:
        session.emit(e.Ticked(tick=tick_id, on=on))


def plan_by_hand(strategy: Compacting, state: State, keep: int) -> tuple[Plan, Job]:
    """Return the cut that `compact_now` would make. keep: how many of the newest tasks stay, where that matters."""
    return strategy(state, state.settings, "by hand", keep)


def cuts(state: State, plan: Plan) -> bool:
    """Whether `plan` would take away more than an earlier summary."""
    return has_news(parts_of(state.context, plan)[0])


def compact_now(session: Session, *, focus: str, keep: int, cut: int, language: str) -> None:
    """Compact all tasks but the `keep` newest. Raises Busy, or Problem where nothing is done.

    focus: what the summary should keep above all, at most `FOCUS_CHARS` characters; "" for nothing.
    cut: the cut point that a person saw in the preview.
    """
    if session.status != "idle":
        raise Busy
    if session.strategy is None:
        raise Problem("no_compaction")
    plan, job = plan_by_hand(session.strategy, session.state, keep)
    focus = " ".join(clean(focus).split())
    if len(focus) > FOCUS_CHARS:
        raise Problem("long_focus", n=len(focus), top=FOCUS_CHARS)
    if not cuts(session.state, plan):
        raise Problem("nothing_to_compact")
    if plan.cut != cut:
        raise Problem("preview_old")
    session.prepare()
    session.emit(e.CompactionAsked(task=len(session.state.tasks), focus=focus, keep=keep, scope=plan.scope))
    session.work(lambda agent: carry_out(agent, plan, job, focus=focus, language=language))


def undo(session: Session, number: int) -> None:
    """Take back compaction `number`: what it cut stands in the context again, before what came since.

    Raises Busy, or Problem where it is not the newest compaction in force.
    """
    if session.status != "idle":
        raise Busy
    in_force = session.state.in_force
    if not in_force or in_force[-1].event.number != number:
        raise Problem("not_newest_compaction", number=number)
    context = session.state.context
    before, entries = context.total, session.state.entries_without(in_force[-1])
    after = before - size_of(context.entries) + size_of(entries)
    session.emit(e.CompactionUndone(number=number, before=before, after=after))
