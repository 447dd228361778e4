"""One server for one folder of sessions: a second one would end the first one's running tasks as interrupted.

The claim is a lock that the system lets go when the process ends, however it ends.
"""

import sqlite3
from pathlib import Path

from harness.problems import Problem


def claim(folder: Path) -> sqlite3.Connection:
    """Claim the sessions in `folder` until the connection is closed. Problem: another server has them, or no access."""
    connection = None
    try:
        connection = sqlite3.connect(folder / "owner.db", timeout=0)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if connection:
            connection.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise Problem("journal_in_use", folder=folder) from error
        raise Problem("folder_not_written", folder=folder, reason=error) from error
    return connection
