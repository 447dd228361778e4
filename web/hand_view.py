"""Compacting by hand, before it happens: exactly what would be cut and what would stay."""

from dataclasses import dataclass

from markupsafe import Markup

from harness.by_hand import FOCUS_CHARS, cuts, plan_by_hand
from harness.sizes import Size, size_of
from web.links import Links
from web.message_lines import MessageLines, message_lines
from web.shown import Shown
from web.viewer import Viewer

KEEPS = (1, 0, 2, 3)  # how many of the newest tasks may stay; the first is the usual one
LISTED = 50


@dataclass(frozen=True, slots=True)
class HandView:
    """The form and its preview. cut: the cut point, 0 where there is nothing to cut.

    cut_lines, kept_lines: the messages on either side, the newest `LISTED` of each. offline: the model follows no wish.
    """

    keep: int
    keeps: tuple[int, ...]
    cut: int
    removed: int
    removed_size: Size
    cut_lines: MessageLines
    kept: int
    kept_size: Size
    kept_lines: MessageLines
    offline: bool
    most: int = FOCUS_CHARS


def hand_view(session: Shown, viewer: Viewer, keep: int) -> HandView | None:
    """Return what compacting all but the `keep` newest tasks would do; None without a task or a way to compact."""
    if session.wording is None or not session.state.tasks:
        return None
    state, links = session.state, Links(session, viewer)
    plan = plan_by_hand(state, keep)
    entries = state.context.entries
    removed, kept = entries[: len(plan.removed)], entries[len(plan.removed) :]
    return HandView(
        keep,
        tuple(sorted(each for each in KEEPS if each < max(2, len(state.tasks)))),
        plan.cut if cuts(state, plan) else 0,
        len(removed),
        size_of(removed),
        message_lines(removed, links, LISTED),
        len(kept),
        size_of(kept),
        message_lines(kept, links, LISTED),
        state.offline,
    )


def kept(number: int | None) -> int:
    """Return how many of the newest tasks are to stay; what is no such number means the usual one."""
    return number if number in KEEPS else KEEPS[0]


def render_by_hand(session: Shown, viewer: Viewer) -> Markup:
    """Return the whole form, closed; it has no content where no extension compacts."""
    hand = hand_view(session, viewer, kept(None))
    return viewer.block("session.html", "by_hand", hand=hand, hand_open=False, session_id=session.id)


def render_preview(session: Shown, viewer: Viewer, keep: int) -> Markup:
    """Return the preview alone."""
    return viewer.block("session.html", "hand_preview", hand=hand_view(session, viewer, keep), session_id=session.id)
