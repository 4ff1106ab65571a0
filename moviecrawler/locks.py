"""A lock between processes, which ends with the process that holds it, whatever ends that."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


class ProcessLock:
    """Held by one process at a time, from `acquire` to `release`.

    These are SQLite's own file locks, on an empty file, as Python has no lock between processes that works on every
    system.
    """

    def __init__(self, path: Path) -> None:
        """Use the file at `path`, which stays behind."""
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def acquire(self, longest_wait: float) -> bool:
        """Wait up to so many seconds for the lock; return whether it is held. Raises sqlite3.OperationalError, OSError."""
        connection = sqlite3.connect(self._path, timeout=longest_wait, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            return False
        self._connection = connection
        return True

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
