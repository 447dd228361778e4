"""The journal: every event of every session, appended and never changed. One table, any SQL database.

A writer thread commits in the order of `append`, many events in one transaction where they come fast.
Each event's `done` is called after its commit; what waits for that is never shown and lost.
"""

import contextlib
import functools
import json
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import (
    Column,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    Row,
    Select,
    String,
    Table,
    Text,
    create_engine,
    event,
    insert,
    select,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from harness.events import EVENTS, Event
from harness.messages import clean
from harness.problems import Problem

METADATA = MetaData()
EVENT = Table(
    "event",
    METADATA,
    Column("session", String(64), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("time", Float, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("body", Text, nullable=False),
    Index("event_by_kind", "kind", "time"),
)


class JournalError(Problem):
    """The journal cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its number in the session (from 1) and the time it was recorded (seconds, Unix)."""

    seq: int
    time: float
    event: Event


def encode(happened: Event) -> tuple[str, str]:
    """Return an event as (kind, JSON body)."""
    return type(happened).__name__, clean(json.dumps(asdict(happened), ensure_ascii=False))


def decode(kind: str, body: str) -> Event:
    """Return the event that `encode` wrote. JournalError: unknown kind, or fields that do not fit."""
    if kind not in EVENTS:
        raise JournalError("journal_unknown_event", kind=kind)
    try:
        return _adapter(kind).validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise JournalError("journal_bad_event", kind=kind, field=field, reason=first["msg"]) from error


@functools.cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(EVENTS[kind])


class Journal:
    """Appends in the background, reads in the caller's thread. One writer thread for each journal."""

    def __init__(self, address: str) -> None:
        """Open or create the table at `address`, an SQLAlchemy URL. JournalError says what is wrong."""
        try:
            self._engine = _engine(address)
            METADATA.create_all(self._engine)
        except (ArgumentError, SQLAlchemyError, ImportError) as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise JournalError("journal_open", reason=reason) from error
        self._queue: queue.SimpleQueue[_Job | str | None] = queue.SimpleQueue()
        self._failed: dict[str, Exception] = {}
        self._writer = threading.Thread(target=self._write, name="journal", daemon=True)
        self._writer.start()

    def append(self, session: str, recorded: Recorded, done: Callable[[Exception | None], Any]) -> None:
        """Queue one event. `done` is called in the writer thread after its commit, or with the error."""
        kind, body = encode(recorded.event)
        row = {"session": session, "seq": recorded.seq, "time": recorded.time, "kind": kind, "body": body}
        self._queue.put(_Job(row, done))

    def reopen(self, session: str) -> None:
        """Take events of a session again after a failed write; to be called before the session is read anew."""
        self._queue.put(session)

    def read(self, session: str) -> list[Recorded]:
        """Return every event of one session in order; an unknown session has none."""
        columns = (EVENT.c.seq, EVENT.c.time, EVENT.c.kind, EVENT.c.body)
        query = select(*columns).where(EVENT.c.session == session).order_by(EVENT.c.seq)
        return [Recorded(seq, moment, decode(kind, body)) for seq, moment, kind, body in self._select(query)]

    def read_kind(self, kind: str) -> list[tuple[str, Recorded]]:
        """Return (session, event) for the events of one kind in all sessions, the oldest first.

        An event that this version cannot read is left out: it must not hide the other sessions.
        """
        columns = (EVENT.c.session, EVENT.c.seq, EVENT.c.time, EVENT.c.body)
        query = select(*columns).where(EVENT.c.kind == kind).order_by(EVENT.c.time)
        found = []
        for session, seq, moment, body in self._select(query):
            with contextlib.suppress(JournalError):
                found.append((session, Recorded(seq, moment, decode(kind, body))))
        return found

    def _select(self, query: Select[Any]) -> Sequence[Row[Any]]:
        try:
            with self._engine.connect() as connection:
                return connection.execute(query).all()
        except SQLAlchemyError as error:
            raise JournalError("journal_read", reason=str(getattr(error, "orig", None) or error)) from error

    def close(self) -> None:
        """Commit what is queued and end the writer."""
        self._queue.put(None)
        self._writer.join()
        self._engine.dispose()

    def _write(self) -> None:
        while (job := self._queue.get()) is not None:
            jobs: list[_Job | str] = [job]
            while not self._queue.empty() and len(jobs) < 500:
                if (following := self._queue.get()) is None:
                    self._queue.put(None)
                    break
                jobs.append(following)
            self._commit(jobs)

    def _commit(self, jobs: "list[_Job | str]") -> None:
        """Write a batch as one; where that fails, one by one, so that a session costs no other its events."""
        rows = [job.row for job in jobs if isinstance(job, _Job)]
        whole = self._failed or any(isinstance(job, str) for job in jobs) or self._insert(rows)
        for job in jobs:
            if isinstance(job, str):
                self._failed.pop(job, None)
                continue
            session = job.row["session"]
            if whole and session not in self._failed and (error := self._insert([job.row])):
                # After a gap nothing may follow: a session's numbers are without holes.
                self._failed[session] = error
            job.done(self._failed.get(session))

    def _insert(self, rows: list[dict[str, Any]]) -> Exception | None:
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(EVENT), rows)
        except Exception as error:  # whatever it is, the writer must live on and the sessions must hear of it
            return error
        return None


@dataclass(frozen=True, slots=True)
class _Job:
    row: dict[str, Any]
    done: Callable[[Exception | None], Any]


def _engine(address: str) -> Engine:
    engine = create_engine(address)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure)
    return engine


def _configure(connection: Any, _record: object) -> None:
    # WAL: readers never wait for the writer, and a killed process loses no committed event.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=10000"):
        connection.execute(f"PRAGMA {pragma}")
