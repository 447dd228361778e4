"""One server for one folder of sessions: a second one would end the first one's running tasks as interrupted.

The claim is a lock that the system lets go when the process ends, however it ends.
"""

import sqlite3
from pathlib import Path

from harness.problems import Problem


def claim(folder: Path) -> sqlite3.Connection:
    """Claim the sessions in `folder` until the connection is closed. Problem: another server has them."""
    connection = sqlite3.connect(folder / "owner.db", timeout=0)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        connection.close()
        raise Problem("journal_in_use", folder=folder) from error
    return connection
