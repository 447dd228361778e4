"""Sends spans while sessions run, from a thread of its own: no task waits for it, and none ends because of it.

What cannot be sent waits, up to a limit; what is lost is counted, and the journal can send it later.
"""

import atexit
import functools
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from harness.recorded import Recorded
from harness.replay import State
from harness.tracing.place import Place
from harness.tracing.sending import BATCH, exporter_for, why_not
from harness.tracing.span import Span
from harness.tracing.standing import Fault, Sending
from harness.tracing.taken import Taken, take
from harness.tracing.tracer import Tracer, unmeasured
from harness.watching import Happened

# So many spans wait, and so many events are not folded yet.
MOST_SPANS, MOST_EVENTS = 2_000, 20_000
# Seconds: until what comes together is sent; between two attempts, at first and at most; that the process's end waits.
GATHER, PAUSE, LONGEST_PAUSE, CLOSING = 0.3, 2.0, 30.0, 3.0


@dataclass(frozen=True, slots=True)
class _News:
    """What the event loop hands to the thread. before: all earlier events, where the thread knows none of them."""

    session: str
    recorded: Recorded
    taken: Taken | None
    before: tuple[Recorded, ...] | None = field(default=None, repr=False)


@functools.cache
def sender(place: Place) -> "Sender":
    """Return the one sender of this process for a place. It starts nothing until an event comes."""
    return Sender(place)


class Sender:
    """The spans of all sessions on their way to one place. `put` and `stands` belong to the event loop's thread."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._news: queue.Queue[_News | None] = queue.Queue(MOST_EVENTS)
        self._known: set[str] = set()
        self._tracers: dict[str, Tracer] = {}
        self._seen: dict[str, int] = {}
        self._waiting: deque[Span] = deque()
        self._alone = 0
        self._counts: dict[str, Sending] = {}
        self._fault, self._detail = "bad_address" if not place.address else "", ""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def put(self, happened: Happened) -> None:
        """Take an event of a session. It costs what a tuple of the request's messages costs."""
        if self._fault in ("bad_address", "missing_packages"):
            return
        session, recorded = happened.session, happened.recorded
        before = None if session in self._known else tuple(happened.records[: recorded.seq - 1])
        try:
            self._news.put_nowait(_News(session, recorded, take(recorded.event, happened.state), before))
            self._known.add(session)
        except queue.Full:
            # The next event that finds room brings all before it along.
            self._known.discard(session)
        if not self._thread:
            self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def stands(self, session: str) -> Sending:
        """Return how the sending of a session's spans stands."""
        with self._lock:
            known = self._counts.get(session, Sending(self._place.shown))
            return replace(known, fault=self._fault, detail=self._detail)

    def close(self, seconds: float = CLOSING) -> None:
        """Send what waits, and end; give up after so many seconds."""
        self._closing.set()
        if self._thread:
            try:
                self._news.put_nowait(None)
            except queue.Full:
                pass
            self._thread.join(seconds)

    def _run(self) -> None:
        exporter, fault = exporter_for(self._place)
        self._failed(fault)
        if not exporter:
            self._news = queue.Queue(1)
            return
        pause, after = PAUSE, 0.0
        while not self._closing.is_set():
            self._gather(0.0 if self._waiting and not self._fault else max(0.0, after - time.monotonic()))
            if self._waiting and time.monotonic() >= after:
                good = self._send(exporter)
                pause = PAUSE if good else min(2 * pause, LONGEST_PAUSE)
                after = 0.0 if good else time.monotonic() + pause
        self._gather(0.0)
        while self._waiting and not self._fault:
            self._send(exporter)

    def _gather(self, seconds: float) -> None:
        """Fold what came; wait for it, where nothing is to be sent before so many seconds have passed."""
        wait: float | None = seconds if self._waiting else None
        try:
            news = self._news.get(timeout=wait) if wait != 0 else self._news.get_nowait()
            if not self._closing.is_set() and not self._waiting:
                # What comes together goes out together.
                self._closing.wait(GATHER)
            while True:
                if news:
                    self._try_fold(news)
                news = self._news.get_nowait()
        except queue.Empty:
            pass

    def _try_fold(self, news: _News) -> None:
        try:
            self._fold(news)
        except Exception as error:  # a thread that ends would send no more of any session
            self._failed("failed", type(error).__name__)
            self._tracers.pop(news.session, None)
            self._known.discard(news.session)

    def _fold(self, news: _News) -> None:
        if news.before is not None:
            self._catch_up(news.session, news.before)
        if tracer := self._tracers.get(news.session):
            self._take(news.session, tracer.fold(news.recorded, news.taken))
            self._seen[news.session] = news.recorded.seq

    def _catch_up(self, session: str, before: tuple[Recorded, ...]) -> None:
        """Know what was open before: of a session that goes on after a restart, or whose events found no room."""
        tracer, state = Tracer(session, requests=True), State(unmeasured)
        seen = self._seen.get(session)
        for recorded in before:
            state.apply(recorded.seq, recorded.event)
            ended = tracer.follow(recorded, state)
            if seen is not None and recorded.seq > seen:
                self._take(session, ended)
        self._tracers[session] = tracer

    def _take(self, session: str, spans: list[Span]) -> None:
        self._waiting += spans
        self._count(session, waiting=len(spans))
        while len(self._waiting) > MOST_SPANS:
            self._count(self._waiting.popleft().session, waiting=-1, lost=1)

    def _send(self, exporter: Any) -> bool:
        """Send the oldest spans; whether they were taken. What will never be taken is lost."""
        most = 1 if self._alone else BATCH
        some = [self._waiting[place] for place in range(min(most, len(self._waiting)))]
        self._alone = max(0, self._alone - 1)
        fault, detail, again = "", "", False
        try:
            exporter.send(some)
        except Exception as error:  # the packages are not ours, and a thread that ends would send no more
            fault, detail, again = why_not(error)
        self._failed(fault, detail)
        if fault == "failed" and len(some) > 1:
            # One of them cannot be sent, and the others can.
            self._alone = len(some)
        elif not again:
            for span in some:
                self._waiting.popleft()
                self._count(span.session, waiting=-1, **({"lost": 1} if fault else {"sent": 1}))
        return not fault

    def _failed(self, fault: Fault, detail: str = "") -> None:
        with self._lock:
            self._fault, self._detail = fault, detail

    def _count(self, session: str, **more: int) -> None:
        with self._lock:
            known = self._counts.get(session, Sending(self._place.shown))
            added = {name: getattr(known, name) + number for name, number in more.items()}
            self._counts[session] = replace(known, **added)
