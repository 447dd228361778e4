"""Sends the spans of a whole session out of its journal, which may be long over."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from harness.recorded import Recorded
from harness.replay import State
from harness.tracing.place import Place, here
from harness.tracing.standing import Fault, Sending
from harness.tracing.tracer import Tracer, unmeasured

# So many spans go out at once.
BATCH = 40


def send_later(session: str, records: Sequence[Recorded], endpoint: str = "", project: str = "") -> Sending:
    """Send every span of a session that has ended; return how that went. Blocking: for a thread.

    endpoint: Phoenix's address, "" for the one of the environment. Sent twice to one project, a span is there once.
    """
    place = here(endpoint, project)
    exporter, fault = exporter_for(place)
    tracer, state, spans = Tracer(session, requests=True), State(unmeasured), []
    for recorded in records:
        state.apply(recorded.seq, recorded.event)
        spans += tracer.follow(recorded, state)
    result = Sending(place.shown, waiting=len(spans), fault=fault)
    if not exporter:
        return result
    for first in range(0, len(spans), BATCH):
        some = spans[first : first + BATCH]
        try:
            exporter.send(some)
        except Exception as error:  # the packages are not ours
            fault, detail, _ = why_not(error)
            return replace(result, fault=fault, detail=detail)
        result = replace(result, sent=result.sent + len(some), waiting=result.waiting - len(some))
    return result


def exporter_for(place: Place) -> tuple[Any, Fault]:
    """Return what sends to a place, or None and why there is nothing. Imports for a second the first time."""
    if not place.address:
        return None, "bad_address"
    try:
        return import_module("harness.tracing.otlp").Exporter(place), ""
    except ImportError:
        return None, "missing_packages"
    except Exception:  # the packages are not ours, and the thread that asks must not end by them
        return None, "failed"


def why_not(error: Exception) -> tuple[Fault, str, bool]:
    """Return why spans could not be sent: a code, what tells more of it, and whether the same may work later."""
    fault = getattr(error, "fault", "failed")
    return fault, getattr(error, "detail", type(error).__name__), getattr(error, "again", False)
