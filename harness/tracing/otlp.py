"""Spans as OpenTelemetry has them, sent to Phoenix over OTLP and HTTP. The one file that imports its packages.

They are the dependency group `observability`; who imports this file is ready for it to fail.
"""

import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import requests
from openinference.instrumentation import TraceConfig
from openinference.semconv.resource import ResourceAttributes
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from harness.model.provider import is_loopback
from harness.tracing.attributes import attributes, happenings, is_error
from harness.tracing.hiding import hidden
from harness.tracing.place import Place
from harness.tracing.span import Span

# Of one attempt, in seconds: a task never waits for it, but the end of the server does.
SECONDS = 5.0
# The latest moment that the wire can carry, in nanoseconds since 1970.
_LATEST = 2**63 - 1
_SCOPE = InstrumentationScope("context-lab")

# Its own words about what cannot be sent would stand in the terminal, and the page says it already.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
logging.getLogger("opentelemetry").propagate = False


class Refused(Exception):
    """Spans were not taken. fault: "unreachable", "refused", or "failed": they could not be written as OTLP.

    again: the same may be taken later.
    """

    def __init__(self, fault: str, detail: str, *, again: bool) -> None:
        super().__init__(detail)
        self.fault, self.detail, self.again = fault, detail, again


class _Watched(requests.Session):
    """The exporter says only that it failed; this one remembers why."""

    status, error = 0, ""

    def request(self, *args: Any, **named: Any) -> requests.Response:
        self.status, self.error = 0, ""
        try:
            answer = super().request(*args, **named)
        except Exception as error:
            # Not its words: they hold the address, which may hold a password.
            self.error = type(error).__name__
            raise
        self.status = answer.status_code
        return answer


class Exporter:
    """Sends spans to one place, one request at a time. Blocking: for a thread."""

    def __init__(self, place: Place) -> None:
        self._place, self._session, self._hide = place, _Watched(), TraceConfig()
        # What goes to this machine must not take the way over a proxy.
        self._session.trust_env = not is_loopback(place.address)
        self._resource = Resource({"service.name": "context-lab", ResourceAttributes.PROJECT_NAME: place.project})
        headers = dict(place.headers)
        self._exporter = OTLPSpanExporter(place.address, headers=headers, timeout=SECONDS, session=self._session)

    def send(self, spans: Sequence[Span]) -> None:
        """Send spans that have ended. Raises Refused."""
        self._session.status, self._session.error = 0, ""
        if self._exporter.export([self._readable(span) for span in spans]) is SpanExportResult.SUCCESS:
            return
        status, error = self._session.status, self._session.error
        if not status:
            raise Refused("unreachable", error, again=True) if error else Refused("failed", "", again=False)
        raise Refused("refused", f"HTTP {status}", again=status in (408, 429) or status >= 500)

    def close(self) -> None:
        """Give up what is being sent."""
        self._exporter.shutdown()

    def _readable(self, span: Span) -> ReadableSpan:
        told = hidden(span, attributes(span), self._hide.mask)
        events = [(name, moment, hidden(span, each, self._hide.mask)) for name, moment, each in happenings(span)]
        error = is_error(span)
        return ReadableSpan(
            name=span.name,
            context=self._context(span, span.id),
            parent=self._context(span, span.parent) if span.parent else None,
            resource=self._resource,
            attributes=told,
            events=[Event(name, each, _nanoseconds(moment)) for name, moment, each in events],
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.fault) if error else Status(StatusCode.OK),
            start_time=_nanoseconds(span.begin),
            end_time=_nanoseconds(span.end or span.begin),
            instrumentation_scope=_SCOPE,
        )

    def _context(self, span: Span, span_id: str) -> SpanContext:
        # An id may stand in one project only, so each project has its own; sent twice to one, it is still one.
        trace, own = (self._number(name, size) for name, size in ((span.trace, 16), (span_id, 8)))
        return SpanContext(trace, own, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def _number(self, name: str, size: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{self._place.project} {name}".encode()).digest()[:size], "big")


def _nanoseconds(moment: float) -> int:
    # Also for a number that is none, and for one before 1970.
    return int(moment * 1_000_000_000) if 0 <= moment * 1_000_000_000 <= _LATEST else 0
