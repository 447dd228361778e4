"""The journal's writer: one thread that writes in the order in which it was asked, and answers after the commit.

What comes fast is written together. Knows no database: it is given what inserts rows and what removes a session's.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from harness.recorded import JournalError

Rows = list[dict[str, Any]]
Done = Callable[[Exception | None], Any]
TOGETHER = 500


@dataclass(frozen=True, slots=True)
class _Job:
    """Rows to write for a session; None to remove all that it has."""

    session: str
    rows: Rows | None
    done: Done


class Writer:
    """Starts at once. `insert` writes rows in one transaction, `remove` removes a session's; both return the error."""

    def __init__(self, insert: Callable[[Rows], Exception | None], remove: Callable[[str], Exception | None]) -> None:
        self._insert, self._remove = insert, remove
        self._queue: queue.SimpleQueue[_Job | str | None] = queue.SimpleQueue()
        self._refused: dict[str, Exception] = {}
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def put(self, session: str, rows: Rows | None, done: Done) -> None:
        """Queue the rows of a session, or with None its removal. `done` is called in the writer's thread.

        After a failed write and after a removal every further write of the session is answered with an error.
        """
        self._queue.put(_Job(session, rows, done))

    def finish(self, session: str, rows: Rows | None) -> None:
        """Do as `put` does, and wait until it is committed. JournalError: it is not, and nothing has changed."""
        finished: Future[Exception | None] = Future()
        self.put(session, rows, finished.set_result)
        if error := finished.result():
            raise JournalError("journal_write", reason=type(error).__name__) from error

    def accept(self, session: str) -> None:
        """Write for a session again whose writing had failed."""
        self._queue.put(session)

    def close(self) -> None:
        """Commit what is queued and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            jobs: list[_Job | str] = [job]
            while not self._queue.empty() and len(jobs) < TOGETHER:
                if (following := self._queue.get()) is None:
                    self._queue.put(None)
                    break
                jobs.append(following)
            self._commit(jobs)

    def _commit(self, jobs: list[_Job | str]) -> None:
        """Write a batch as one; where that fails, one by one, so that a session costs no other its events."""
        rows = [row for job in jobs if isinstance(job, _Job) for row in job.rows or ()]
        if all(isinstance(job, _Job) and job.rows and job.session not in self._refused for job in jobs):
            if self._insert(rows) is None:
                for job in jobs:
                    job.done(None)  # type: ignore[union-attr]
                return
        for job in jobs:
            if isinstance(job, str):
                self._refused.pop(job, None)
            else:
                job.done(self._carry_out(job))

    def _carry_out(self, job: _Job) -> Exception | None:
        if job.rows is None:
            if (error := self._remove(job.session)) is None:
                self._refused[job.session] = JournalError("session_deleted")
            return error
        if job.session not in self._refused and (error := self._insert(job.rows)):
            # After a gap nothing may follow: a session's numbers are without holes.
            self._refused[job.session] = error
        return self._refused.get(job.session)
