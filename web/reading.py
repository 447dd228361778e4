"""One page's place in a session: what it has been sent, and so what comes next. Knows no HTTP."""

import time
from collections.abc import Iterator

from harness.events import ModelCallEnded, ModelCallFailed, ModelCallStarted, TextDelta
from harness.journal import Recorded
from web.channel import Channel
from web.fragments import OVER, message, partials
from web.updates import render_failure, render_panel_updates, render_partial, render_updates
from web.viewer import Viewer

PANEL_SECONDS = 0.25  # a burst of events gives no more panels than this allows
PANEL_AFTER = 0.06  # seconds by which the panel, which is large, lets the event reach every page first
Variant = tuple[str, ...]


class Reading:
    """Created when a page connects; `after` is the journal number up to which it has everything."""

    def __init__(self, channel: Channel, viewer: Viewer, after: int) -> None:
        self._channel, self._session, self._viewer = channel, channel.session, viewer
        self._variant: Variant = (viewer.language, viewer.view, viewer.tab, viewer.scale, viewer.unit)
        self._variant += (viewer.facts, *map(str, (viewer.compaction, viewer.part, viewer.task, viewer.lines)))
        self.after = min(after, self._session.committed)
        self._panel_after, self._panel_sent, self._panel_due = self.after, 0.0, 0.0
        self._live = self._call_at(self.after)
        self._shown = [0, 0]
        self._joined = False

    def due(self) -> Iterator[bytes]:
        """Yield what the page lacks: events in order, then the reply that streams now, then the panel."""
        if self._panel_after == self.after < self._session.committed:
            self._panel_due = max(time.monotonic() + PANEL_AFTER, self._panel_sent + PANEL_SECONDS)
        while self.after < self._session.committed:
            recorded = self._session.records[self.after]
            yield self._event(recorded)
            self.after = recorded.seq
        if not self._joined:
            self._joined = True
            yield from self._whole_reply()
        yield from self._more_reply()
        if self._panel_after < self.after and self.wait() == 0:
            self._panel_after, self._panel_sent = self.after, time.monotonic()
            yield self._panel()

    def last_words(self) -> Iterator[bytes]:
        """Yield what the page is told when nothing more can be recorded: why, and not to come back for more."""
        if self._session.failure:
            yield message(partials(render_failure(self._session, self._viewer)))
            yield OVER

    def wait(self) -> float | None:
        """Return the seconds until the panel is due, or None when it is up to date."""
        if self._panel_after >= self.after:
            return None
        return max(0.0, self._panel_due - time.monotonic())

    def _event(self, recorded: Recorded) -> bytes:
        match recorded.event:
            case ModelCallStarted(call=call):
                self._live, self._shown = call, [0, 0]
            case ModelCallEnded() | ModelCallFailed():
                self._live = 0
        key = (self._variant, recorded.seq)
        return self._channel.frame(
            key, lambda: message(partials(render_updates(self._session, recorded, self._viewer)), recorded.seq)
        )

    def _whole_reply(self) -> Iterator[bytes]:
        partial = self._session.partial
        if partial and partial[0] == self._live:
            self._shown = [len(partial[1]), len(partial[2])]
            yield message(partials(render_partial(self._session, self._viewer)))

    def _more_reply(self) -> Iterator[bytes]:
        # A reply whose row the page does not have yet waits for that row.
        partial = self._session.partial
        if not partial or partial[0] != self._live:
            return
        for place, kind in ((1, "reasoning"), (0, "text")):
            whole, start = partial[place + 1], self._shown[place]
            if start < len(whole):
                self._shown[place] = len(whole)
                delta = TextDelta(call=partial[0], text=whole[start:], kind=kind)
                key = (self._variant, "reply", partial[0], kind, start, len(whole))
                yield self._channel.frame(key, lambda delta=delta: self._delta(delta))

    def _delta(self, delta: TextDelta) -> bytes:
        return message(partials(render_updates(self._session, delta, self._viewer)))

    def _panel(self) -> bytes:
        # The state may be ahead of what is safely journalled, and a panel shows both.
        key = (self._variant, "panel", self._session.committed, len(self._session.records))
        return self._channel.frame(key, lambda: message(partials(render_panel_updates(self._session, self._viewer))))

    def _call_at(self, seq: int) -> int:
        """Return the call whose reply was streaming at journal number `seq`, or 0."""
        for recorded in reversed(self._session.records[:seq]):
            match recorded.event:
                case ModelCallStarted(call=call):
                    return call
                case ModelCallEnded() | ModelCallFailed():
                    return 0
        return 0
