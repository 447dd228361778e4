"""Where sessions are kept: the folder of their workspaces, and the SQLite file of their journal if it is one."""

from pathlib import Path

from harness.problems import Problem

SQLITE = "sqlite:///"


def sessions_folder(database: str | None, default: Path) -> Path:
    """Return the folder of sessions' workspaces: beside an SQLite journal, else `default`. Makes nothing.

    database: an SQLAlchemy URL, or None for a file in `default`. Problem: the journal would not outlive the server.
    """
    file = journal_file(database, default)
    return file.resolve().parent if file else default


def journal_file(database: str | None, default: Path) -> Path | None:
    """Return the journal's SQLite file, or None where the journal is another database."""
    if not database:
        return default / "journal.db"
    path = database.removeprefix(SQLITE)
    if database.startswith("sqlite") and path in ("", ":memory:", database):
        raise Problem("journal_memory")
    return Path(path) if path != database else None


def make_folder(folder: Path) -> None:
    """Make the folder where it is not there. Problem: it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem("folder_not_made", folder=folder, reason=error.strerror) from error
