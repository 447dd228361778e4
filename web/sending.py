"""How the spans of a session get to a trace viewer: what an extension that sends says, and what was sent by hand."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.recorded import Recorded
from harness.session import Session
from harness.tracing.sending import send_later
from harness.tracing.standing import Sending
from web.shown import Shown
from web.viewer import Viewer

# A visitor is told after so many seconds that it takes longer; it goes on. So many outcomes are kept.
SECONDS, KEPT = 20, 50


@dataclass(frozen=True, slots=True)
class SendingView:
    """What the page shows. live: of an extension that sends while a session runs, else None.

    by_hand: how the newest sending by hand went; None where there was none. busy: it still goes on.
    """

    live: Sending | None
    by_hand: Sending | None
    busy: bool

    @property
    def spans(self) -> int:
        """Return how many spans there were so far."""
        return self.live.sent + self.live.waiting + self.live.lost if self.live else 0

    def moves(self, seen: int) -> bool:
        """Whether the figures may soon be others, though nothing happens in the session. seen: spans, a while ago."""
        return self.live is not None and (self.live.waiting > 0 or self.spans != seen)


_sent: OrderedDict[str, "asyncio.Task[Sending]"] = OrderedDict()


def sending_view(session: Shown, viewer: Viewer) -> SendingView | None:
    """Return how the sending stands now; None for a moment of the past or a sub-agent, of which nothing is sent."""
    if viewer.at or viewer.child:
        return None
    asked = _sent.get(session.id)
    ended = asked and asked.done() and not asked.cancelled()
    return SendingView(_live(session), asked.result() if asked and ended else None, bool(asked and not asked.done()))


def _live(session: Shown) -> Sending | None:
    for extension in session.extensions:
        try:
            stands = extension.sending(session.id) if extension.sending else None
        except Exception:  # a lab's code is not ours: it must not cost the page
            continue
        if isinstance(stands, Sending):
            return stands
    return None


async def send_by_hand(session: Session) -> None:
    """Send all spans of a session out of its journal, in a thread; return when that is done, or takes long."""
    sending = _sent.get(session.id)
    if sending is None or sending.done():
        records = session.records[: session.committed]
        sending = _sent[session.id] = asyncio.create_task(_send(session.id, records))
        _sent.move_to_end(session.id)
        while len(_sent) > KEPT:
            _sent.popitem(last=False)
    await asyncio.wait([sending], timeout=SECONDS)


async def _send(session_id: str, records: Sequence[Recorded]) -> Sending:
    try:
        return await asyncio.to_thread(send_later, session_id, records)
    except Exception as error:  # what a journal from elsewhere holds must cost no more than its sending
        return Sending("", fault="failed", detail=type(error).__name__)
