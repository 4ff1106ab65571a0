"""Alarms in an SQLite file, for processes that share a DATA_DIR."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TypeVar

from moviecrawler.errors import AlarmStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

T = TypeVar("T")

_LOCK_TIMEOUT_SECONDS = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS hashes (
    key TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, expires REAL, PRIMARY KEY (key, field)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, event TEXT NOT NULL);
"""
_FROM_TABLES = """
INSERT OR IGNORE INTO hashes SELECT '{alarms}:open', name, CAST(alarm AS TEXT), NULL FROM alarms;
INSERT OR IGNORE INTO hashes SELECT '{alarms}:coverage:' || site || ':' || day, field, present, NULL FROM coverage;
INSERT OR IGNORE INTO hashes
    SELECT '{alarms}:coverage:' || site || ':' || day, 'pages', max(pages), NULL FROM coverage GROUP BY site, day;
DROP TABLE alarms; DROP TABLE IF EXISTS levels; DROP TABLE coverage
"""
"""Converts a file from before 22 November 2026. It had tables of alarms and counts, and shares of fields (`levels`), which nothing reads."""


class SqliteHashes:
    """Hashes by key, and a list of events. Each method raises AlarmStoreError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, hash_keys: Sequence[str]) -> list[dict[str, str]]:
        """Return hashes; an empty one for each unknown key."""
        with self._transaction() as connection:
            return [_hash(connection, key) for key in hash_keys]

    def update(self, hash_keys: Sequence[str], change: Callable[[list[dict[str, str]]], T], seconds: float | None) -> T:
        """Have `change` alter hashes in one atomic step, and return its result. It may be called more than once.

        Hashes that are written expire after `seconds`; never for None.
        """
        now = time.time()
        with self._transaction() as connection:
            connection.execute("DELETE FROM hashes WHERE expires < ?", (now,))
            before = [_hash(connection, key) for key in hash_keys]
            after = [dict(each) for each in before]
            result = change(after)
            for key, old, new in zip(hash_keys, before, after, strict=True):
                gone = [(key, field) for field in old.keys() - new.keys()]
                connection.executemany("DELETE FROM hashes WHERE key = ? AND field = ?", gone)
                expires = None if seconds is None else now + seconds
                written = [(key, field, text, expires) for field, text in new.items() if old.get(field) != text]
                connection.executemany("REPLACE INTO hashes VALUES (?, ?, ?, ?)", written)
        return result

    def add_event(self, event: str, most: int) -> None:
        """Add an event, and keep the `most` latest."""
        with self._transaction() as connection:
            number = connection.execute("INSERT INTO events (event) VALUES (?)", (event,)).lastrowid or 0
            connection.execute("DELETE FROM events WHERE number <= ?", (number - most,))

    def events(self, limit: int) -> list[str]:
        """Return the latest events, newest first."""
        with self._transaction() as connection:
            query = "SELECT CAST(event AS TEXT) FROM events ORDER BY number DESC LIMIT ?"
            return [event for (event,) in connection.execute(query, (limit,))]

    def close(self) -> None:
        """Disconnect, which a file does after each step."""

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(
                sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)
            ) as connection:
                connection.executescript(_SCHEMA)
                connection.execute("BEGIN IMMEDIATE")
                if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'coverage'").fetchone():
                    for statement in _FROM_TABLES.split(";"):
                        connection.execute(statement)
                yield connection  # what is not committed is rolled back when the connection closes
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise AlarmStoreError(f"alarms and what is known of pages can't be read or written: {error}") from error


def _hash(connection: sqlite3.Connection, key: str) -> dict[str, str]:
    return dict(connection.execute("SELECT field, value FROM hashes WHERE key = ?", (key,)).fetchall())
