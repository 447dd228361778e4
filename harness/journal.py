"""The journal: every event of every session, appended and never changed. One table, any SQL database.

A writer thread commits in the order of `append`, many events in one transaction where they come fast.
Each event's `done` is called after its commit; what waits for that is never shown and lost.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    Engine,
    Executable,
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
    delete,
    event,
    func,
    insert,
    select,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from harness.recorded import JournalError, Recorded, decode, encode
from harness.writer import Done, Rows, Writer

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


class Journal:
    """Writes in the background, reads in the caller's thread. One writer thread for each journal."""

    def __init__(self, address: str) -> None:
        """Open or create the table at `address`, an SQLAlchemy URL. JournalError says what is wrong."""
        try:
            self._engine = _engine(address)
            METADATA.create_all(self._engine)
        except (ArgumentError, SQLAlchemyError, ImportError) as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise JournalError("journal_open", reason=reason) from error
        self._writer = Writer(self._insert, lambda session: self._run(delete(EVENT).where(EVENT.c.session == session)))

    def append(self, session: str, recorded: Recorded, done: Done) -> None:
        """Queue one event. `done` is called in the writer thread after its commit, or with the error."""
        self._writer.put(session, _rows(session, [recorded]), done)

    def store(self, session: str, records: Sequence[Recorded]) -> None:
        """Write a whole session as one, all of it or nothing; returns when it is committed. JournalError."""
        self._writer.finish(session, _rows(session, records))

    def delete(self, session: str) -> None:
        """Remove a session's events: the one thing that removes any. Returns when they are gone. JournalError.

        It has its turn among what is appended: what came before goes too, and what comes after is refused.
        """
        self._writer.finish(session, None)

    def reopen(self, session: str) -> None:
        """Take events of a session again after a failed write; to be called before the session is read anew."""
        self._writer.accept(session)

    def read(self, session: str) -> list[Recorded]:
        """Return every event of one session in order; an unknown session has none."""
        return [Recorded(seq, moment, decode(kind, body)) for _, seq, moment, kind, body in self.rows([session])]

    def read_kind(self, kind: str) -> list[tuple[str, Recorded]]:
        """Return (session, event) for the events of one kind in all sessions, the oldest first.

        An event that this version cannot read is left out: it must not hide the other sessions.
        """
        found, query = [], select(EVENT).where(EVENT.c.kind == kind).order_by(EVENT.c.time)
        for session, seq, moment, _, body in self._select(query):
            with contextlib.suppress(JournalError):
                found.append((session, Recorded(seq, moment, decode(kind, body))))
        return found

    def rows(
        self,
        sessions: Iterable[str] | None,
        kinds: Iterable[str] | None = None,
        *,
        after: int = 0,
        most: int | None = None,
    ) -> Iterator[Row[Any]]:
        """Yield (session, seq, time, kind, body) as stored, each session's in order. None: of every session or kind.

        after: only numbers above it. most: at most so many rows.
        """
        query = select(EVENT).where(EVENT.c.seq > after).order_by(EVENT.c.session, EVENT.c.seq).limit(most)
        for column, wanted in ((EVENT.c.session, sessions), (EVENT.c.kind, kinds)):
            query = query if wanted is None else query.where(column.in_(list(wanted)))
        return self._select(query)

    def kinds(self, sessions: Iterable[str], kinds: Iterable[str]) -> Iterator[Row[Any]]:
        """Yield (session, seq, kind) of the events of these kinds, each session's in order; no body is read."""
        query = select(EVENT.c.session, EVENT.c.seq, EVENT.c.kind).order_by(EVENT.c.session, EVENT.c.seq)
        return self._select(query.where(EVENT.c.session.in_(list(sessions)), EVENT.c.kind.in_(list(kinds))))

    def count(self, sessions: Iterable[str], kinds: Iterable[str]) -> dict[tuple[str, str], int]:
        """Return how many events of each kind each session has, by (session, kind)."""
        query = select(EVENT.c.session, EVENT.c.kind, func.count()).group_by(EVENT.c.session, EVENT.c.kind)
        query = query.where(EVENT.c.session.in_(list(sessions)), EVENT.c.kind.in_(list(kinds)))
        return {(session, kind): number for session, kind, number in self._select(query)}

    def length(self, session: str) -> int:
        """Return the number of a session's newest event, 0 where there is no such session."""
        [(last,)] = self._select(select(func.max(EVENT.c.seq)).where(EVENT.c.session == session))
        return last or 0

    def newest(self, *, but: str) -> list[tuple[str, float]]:
        """Return every session with the time of its newest event of another kind than `but`, the newest first."""
        other = EVENT.alias()
        last = select(other.c.time).where(other.c.session == EVENT.c.session, other.c.kind != but)
        moment = last.order_by(other.c.seq.desc()).limit(1).scalar_subquery().label("moment")
        query = select(EVENT.c.session, moment).where(EVENT.c.kind == "SessionStarted", EVENT.c.seq == 1)
        return [(session, time) for session, time in self._select(query.order_by(moment.desc(), EVENT.c.session))]

    def try_write(self) -> Exception | None:
        """Write an event and take it back; return what kept it from being written, or None."""
        return self._insert([{"session": "", "seq": 0, "time": 0.0, "kind": "", "body": ""}], keep=False)

    def close(self) -> None:
        """Commit what is queued and end the writer."""
        self._writer.close()
        self._engine.dispose()

    def _select(self, query: Select[Any]) -> Iterator[Row[Any]]:
        try:
            with self._engine.connect() as connection:
                yield from connection.execution_options(yield_per=500).execute(query)
        except SQLAlchemyError as error:
            raise JournalError("journal_read", reason=str(getattr(error, "orig", None) or error)) from error

    def _insert(self, rows: Rows, *, keep: bool = True) -> Exception | None:
        return self._run(insert(EVENT), rows, keep=keep)

    def _run(self, statement: Executable, rows: Rows | None = None, *, keep: bool = True) -> Exception | None:
        try:
            with self._engine.connect() as connection:
                connection.execute(statement, rows)
                (connection.commit if keep else connection.rollback)()
        except Exception as error:  # whatever it is, the writer must live on and the sessions must hear of it
            return error
        return None


def _rows(session: str, records: Iterable[Recorded]) -> Rows:
    rows = []
    for recorded in records:
        kind, body = encode(recorded.event)
        rows.append({"session": session, "seq": recorded.seq, "time": recorded.time, "kind": kind, "body": body})
    return rows


def _engine(address: str) -> Engine:
    engine = create_engine(address)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure)
    return engine


def _configure(connection: Any, _record: object) -> None:
    # WAL: readers never wait for the writer, and a killed process loses no committed event.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=10000"):
        connection.execute(f"PRAGMA {pragma}")
