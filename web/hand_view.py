"""Compacting by hand, before it happens: exactly what would be cut and what would stay."""

from dataclasses import dataclass

from markupsafe import Markup

from harness.by_hand import FOCUS_CHARS, cuts
from harness.compaction import parts_of
from harness.problems import Problem
from harness.sizes import Size, size_of
from web.figures import planned
from web.links import Links
from web.message_lines import MessageLines, message_lines
from web.shown import Shown
from web.viewer import Viewer

KEEPS = (1, 0, 2, 3)  # how many of the newest tasks may stay; the first is the usual one
LISTED = 50


@dataclass(frozen=True, slots=True)
class HandView:
    """The form and its preview. cut: the cut point, 0 where there is nothing to cut.

    keeps: how many tasks may stay; none where a strategy's own rule (rule) says which messages do, or that one and 0
    where it can also keep none. cut_lines, kept_lines: the
    messages on either side, the newest `LISTED` of each; pinned: those before the cut point that stay word for word.
    offline: the model follows no wish.
    """

    keep: int
    keeps: tuple[int, ...]
    rule: bool
    cut: int
    removed: int
    removed_size: Size
    cut_lines: MessageLines
    kept: int
    kept_size: Size
    kept_lines: MessageLines
    pinned: int
    pinned_size: Size
    pinned_lines: MessageLines
    offline: bool
    most: int = FOCUS_CHARS


def hand_view(session: Shown, viewer: Viewer, keep: int) -> HandView | None:
    """Return what compacting all but the `keep` newest tasks would do; None without a task or a way to compact."""
    found = None if viewer.at or not session.state.tasks else planned(session, "by hand", keep)
    if found is None:
        return None
    state, links, plan = session.state, Links(session, viewer), found[0]
    removed, stays = parts_of(state.context, plan)
    pinned = [entry for entry in stays if entry.seq in plan.pinned]
    kept = [entry for entry in stays if entry.seq not in plan.pinned]
    keeps = sorted(each for each in KEEPS if each < max(2, len(state.tasks)))
    return HandView(
        keep,
        tuple(keeps) if plan.scope == "finished tasks" else _or_nothing(session),
        plan.scope != "finished tasks",
        plan.cut if cuts(state, plan) else 0,
        len(removed),
        size_of(removed),
        message_lines(removed, links, LISTED),
        len(kept),
        size_of(kept),
        message_lines(kept, links, LISTED),
        len(pinned),
        size_of(pinned),
        message_lines(pinned, links, LISTED),
        state.offline,
    )


def _or_nothing(session: Shown) -> tuple[int, ...]:
    """Return the choices under a strategy's own rule: none, or nothing (0) and the rule (1) where those differ."""
    by_rule, all_of_it = planned(session, "by hand", 1), planned(session, "by hand", 0)
    return (0, 1) if by_rule and all_of_it and by_rule[0].cut != all_of_it[0].cut else ()


def kept(number: int | None) -> int:
    """Return how many of the newest tasks are to stay; what is no such number means the usual one."""
    return number if number in KEEPS else KEEPS[0]


def render_by_hand(session: Shown, viewer: Viewer) -> Markup:
    """Return the whole form, closed; it has no content where no extension compacts."""
    hand = hand_view(session, viewer, kept(None))
    return viewer.block("session.html", "by_hand", hand=hand, hand_open=False, session_id=session.id)


def render_preview(session: Shown, viewer: Viewer, keep: int) -> Markup:
    """Return the preview alone. Problem: there is no task yet, or nothing compacts."""
    hand = hand_view(session, viewer, keep)
    if hand is None and session.strategy is None:
        raise Problem("no_compaction")
    if hand is None:
        raise Problem("nothing_to_compact")
    return viewer.block("session.html", "hand_preview", hand=hand, session_id=session.id)
