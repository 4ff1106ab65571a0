"""The embedded database, `DATA_DIR/movies.sqlite3`: opening it, and its transactions. `sql/embedded.sql` describes its tables."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from moviecrawler.database.sql import read_sql
from moviecrawler.errors import ConfigurationError, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "movies.sqlite3"
_VERSION = 1
"""The version of the schema, stored as `PRAGMA user_version`."""
_LOCK_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for another process's batch before writing fails."""


def open_embedded(folder: Path) -> sqlite3.Connection:
    """Open a folder's database, and create it when it is missing.

    Raises TransientStoreError when that may work later, ConfigurationError when the file is not one of this version's.
    """
    path = folder / FILE
    try:
        connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.OperationalError) as error:
        raise TransientStoreError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise ConfigurationError(f"{path} is damaged or no SQLite file ({error}); move it away") from error
    return connection


def read_embedded(folder: Path) -> sqlite3.Connection:
    """Open a folder's database to read it. Raises FileNotFoundError when there is none, sqlite3.Error when it is no such file."""
    path = (folder / FILE).resolve()
    if not path.exists():
        raise FileNotFoundError(None, "there is no such file", str(folder / FILE))
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Commit at the end of the block, or roll back; `kind` is DEFERRED to read, IMMEDIATE to write."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # SQLite fails when two processes do this to a new file at the same time.
    try:
        with FileLock(path.with_name("open.lock"), timeout=_LOCK_TIMEOUT_SECONDS):
            connection.execute("PRAGMA journal_mode = WAL")
            ((version,),) = connection.execute("PRAGMA user_version")
            ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
            if version != _VERSION and (version or tables):
                raise ConfigurationError(
                    f"{path} was made by another version of moviecrawler; move it away, and crawl or run scrapy replay again"
                )
            if version != _VERSION:
                script = read_sql("embedded.sql")
                connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {_VERSION}; COMMIT;")
    except Timeout:
        raise TransientStoreError(f"another process has been opening {path} for {_LOCK_TIMEOUT_SECONDS:g} s") from None
    # A commit must be on the disk when it returns, as the batch is then reported durable.
    connection.execute("PRAGMA synchronous = FULL")
