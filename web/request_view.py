"""The tab "Diff": what the newest request changes against the one that went out before it."""

from dataclasses import dataclass

from harness.records import CallRecord
from harness.request_diff import Change, RequestDiff, diff_requests, pieces_at
from web.links import Links
from web.message_lines import MessageLine, MessageLines, message_line, message_lines
from web.shown import Shown
from web.viewer import Viewer

# Parts of one change that are listed; the others are counted.
LISTED = 30


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One change, with the newest parts on each side as lines."""

    change: Change
    before: MessageLines
    after: MessageLines


@dataclass(frozen=True, slots=True)
class RequestView:
    """Two requests compared. earlier: the one that went out before; later: the one now, None where it is still to come.

    breaks: the first part that differs, None where nothing does.
    """

    earlier: CallRecord
    later: CallRecord | None
    diff: RequestDiff
    changes: tuple[ChangeView, ...]
    breaks: MessageLine | None


def request_view(session: Shown, viewer: Viewer) -> RequestView | None:
    """Compare the request as it is now with the last one that went out; None while there is none to compare with.

    Where nothing was added since the last one went out, it is the last one itself, and the one before is the earlier.
    """
    state = session.state
    sent = [call for call in state.calls[-200:] if call.purpose == "turn"]
    now = pieces_at(state, session.committed + 1)
    later = sent[-1] if sent and pieces_at(state, sent[-1].seq) == now else None
    before = sent[:-1] if later else sent
    if not before:
        return None
    diff = diff_requests(pieces_at(state, before[-1].seq), now, before[-1].seq)
    links = Links(session, viewer)
    changes = tuple(_change(change, links) for change in diff.changes)
    breaks = message_line(diff.breaks_at, links) if diff.breaks_at else None
    return RequestView(before[-1], later, diff, changes, breaks)


def _change(change: Change, links: Links) -> ChangeView:
    sides = (message_lines(side, links, LISTED) for side in (change.before, change.after))
    return ChangeView(change, *sides)
