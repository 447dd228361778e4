"""Checks the database: can the journal be opened and written, and does another server hold it?

Leaves nothing behind, but an existing database without the journal's table gets it, as at a server's start.
"""

import contextlib
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from harness.doctor.result import Result
from harness.journal import Journal
from harness.model.errors import detail
from harness.ownership import claim
from harness.storage import SQLITE, journal_file, sessions_folder


def database(address: str | None, default: Path) -> Result:
    """Check the journal at `address`, an SQLAlchemy URL, or None for the SQLite file in the folder `default`."""
    file, folder = journal_file(address, default), sessions_folder(address, default)
    near = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryDirectory(dir=near) as place, _claimed(folder):
            if file and not file.exists():
                # Tried beside it: an empty database in a place that was mistyped would stay for ever.
                return _tried(f"{SQLITE}{Path(place) / 'journal.db'}", "database_new", str(file))
            return _tried(address or f"{SQLITE}{file}", "database_good", str(file or _shown(address or "")))
    except OSError as error:
        return Result("database_folder", "mend", {"folder": near, "reason": error.strerror})


def _claimed(folder: Path) -> contextlib.AbstractContextManager[object]:
    """Hold the sessions as a server would. Where no server has ever run, there is nothing to hold."""
    return contextlib.closing(claim(folder)) if (folder / "owner.db").exists() else contextlib.nullcontext()


def _tried(address: str, good: str, place: str) -> Result:
    journal = Journal(address)
    try:
        error = journal.try_write()
    finally:
        journal.close()
    if error:
        return Result("database_read_only", "mend", {"place": place, "reason": type(error).__name__})
    return Result(good, "good", {"place": place})


def _shown(address: str) -> str:
    """Return an address without its user and password."""
    parts = urlsplit(address)
    return detail(f"{parts.scheme}://{parts.hostname or ''}{parts.path}")
