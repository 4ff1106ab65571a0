"""Alarms, their history and what is known of pages in an SQLite file, for the processes that share a DATA_DIR."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import msgspec

from moviecrawler.monitors.books import FILE, MOST_EVENTS, Alarm, Book, BookError, Day, Event, today
from moviecrawler.monitors.places import ANY, KNOWN_FROM, NOTHING, WINDOW, Example, merge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moviecrawler.monitors.books import What
    from moviecrawler.monitors.places import Levels, Seen

_WAIT = 10.0
"""Seconds for the file's lock."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS alarms (name TEXT PRIMARY KEY, alarm BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, event BLOB NOT NULL);
DROP TABLE IF EXISTS levels;  -- an earlier version's
CREATE TABLE IF NOT EXISTS places (
    site TEXT NOT NULL, category TEXT NOT NULL, field TEXT NOT NULL, pages REAL NOT NULL, silent REAL NOT NULL,
    absent REAL NOT NULL, PRIMARY KEY (site, category, field)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS latest (
    site TEXT NOT NULL, field TEXT NOT NULL, signs TEXT NOT NULL, PRIMARY KEY (site, field)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS examples (
    site TEXT NOT NULL, field TEXT NOT NULL, site_id TEXT NOT NULL, url TEXT NOT NULL, PRIMARY KEY (site, field)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS coverage (
    site TEXT NOT NULL, day TEXT NOT NULL, field TEXT NOT NULL, pages INTEGER NOT NULL, present INTEGER NOT NULL,
    silent INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (site, day, field)
) WITHOUT ROWID;
"""
_ADD_SILENT = "ALTER TABLE coverage ADD COLUMN silent INTEGER NOT NULL DEFAULT 0"
"""For a file of an earlier version."""
_COUNT = """
INSERT INTO coverage VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET pages = pages + excluded.pages, present = present + excluded.present, silent = silent + excluded.silent
"""


class FileBook(Book):
    """The book of the processes that share a DATA_DIR: an SQLite file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._connection: sqlite3.Connection | None = None

    def fire(self, alarm: Alarm, reminder: float) -> Literal["opened", "reminder"] | None:
        """See `Book`."""
        with self._transaction() as connection:
            known = self._known(connection, alarm.name)
            said: Literal["opened", "reminder"] | None = None
            if known is None:
                said = "opened"
                self._add_event(connection, Event(at=alarm.since, what="opened", alarm=alarm))
            elif known.told_at + reminder <= alarm.seen_at:
                said = "reminder" if known.told_at else "opened"
            self._keep(
                connection,
                replace(
                    alarm,
                    since=known.since if known else alarm.since,
                    told_at=alarm.seen_at if said or known is None else known.told_at,
                ),
            )
        return said

    def untell(self, name: str) -> None:
        """See `Book`."""
        with self._transaction() as connection:
            known = self._known(connection, name)
            if known is not None:
                self._keep(connection, replace(known, told_at=0.0))

    def recover(self, name: str, now: float, quiet: float, what: What = "recovered") -> Alarm | None:
        """See `Book`."""
        with self._transaction() as connection:
            known = self._known(connection, name)
            if known is None or known.seen_at + quiet > now:
                return None
            connection.execute("DELETE FROM alarms WHERE name = ?", (name,))
            self._add_event(connection, Event(at=now, what=what, alarm=known))
        return known

    def open_alarms(self) -> list[Alarm]:
        """See `Book`."""
        with self._transaction() as connection:
            found = connection.execute("SELECT alarm FROM alarms").fetchall()
        return sorted((msgspec.json.decode(one, type=Alarm) for (one,) in found), key=lambda alarm: alarm.since)

    def history(self, limit: int = 100) -> list[Event]:
        """See `Book`."""
        with self._transaction() as connection:
            found = connection.execute("SELECT event FROM events ORDER BY number DESC LIMIT ?", (limit,)).fetchall()
        return [msgspec.json.decode(one, type=Event) for (one,) in found]

    def levels(self, site: str) -> Levels:
        """See `Book`."""
        levels: Levels = {}
        with self._transaction() as connection:
            query = "SELECT category, field, pages, silent, absent FROM places WHERE site = ?"
            for group, field, *level in connection.execute(query, (site,)):
                levels.setdefault(group, {})[field] = tuple(level)
        return levels

    def latest(self, site: str) -> dict[str, str]:
        """See `Book`."""
        with self._transaction() as connection:
            return dict(connection.execute("SELECT field, signs FROM latest WHERE site = ?", (site,)).fetchall())

    def examples(self, site: str) -> dict[str, Example]:
        """See `Book`."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT field, site_id, url FROM examples WHERE site = ?", (site,))
            return {field: Example(*example) for field, *example in rows}

    def learn(self, site: str, day: str, seen: Seen) -> None:
        """See `Book`."""
        with self._transaction() as connection:
            for group, fields in seen.levels.items():
                for field, added in fields.items():
                    query = "SELECT pages, silent, absent FROM places WHERE site = ? AND category = ? AND field = ?"
                    known = connection.execute(query, (site, group, field)).fetchone()
                    merged = merge(known or NOTHING, added)
                    connection.execute("REPLACE INTO places VALUES (?, ?, ?, ?, ?, ?)", (site, group, field, *merged))
            for field, signs in seen.marks.items():
                query = "SELECT signs FROM latest WHERE site = ? AND field = ?"
                (before,) = connection.execute(query, (site, field)).fetchone() or ("",)
                connection.execute("REPLACE INTO latest VALUES (?, ?, ?)", (site, field, (before + signs)[-WINDOW:]))
            examples = [(site, field, *example) for field, example in seen.examples.items()]
            connection.executemany("REPLACE INTO examples VALUES (?, ?, ?, ?)", examples)
            rows = [
                (site, day, field, seen.pages, seen.having[field], seen.silent[field])
                for field in {*seen.having, *seen.silent}
            ]
            connection.executemany(_COUNT, rows)
            connection.execute("DELETE FROM coverage WHERE day < date(?, '-400 days')", (day,))

    def forget(self, site: str, field: str) -> None:
        """See `Book`."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM places WHERE site = ? AND field = ?", (site, field))
            row = (site, ANY, field, KNOWN_FROM, KNOWN_FROM, 0)
            connection.execute("INSERT INTO places VALUES (?, ?, ?, ?, ?, ?)", row)
            connection.execute("DELETE FROM latest WHERE site = ? AND field = ?", (site, field))

    def coverage(self, site: str, since_day: str, until_day: str | None = None) -> list[Day]:
        """See `Book`."""
        query = """
            SELECT day, field, pages, present, silent FROM coverage WHERE site = ? AND day BETWEEN ? AND ? ORDER BY day, field
        """
        with self._transaction() as connection:
            return [Day(*row) for row in connection.execute(query, (site, since_day, until_day or today()))]

    def close(self) -> None:
        """See `Book`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _errors_translated():
            if self._connection is None:
                connection = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
                try:
                    connection.executescript(_SCHEMA)
                    if not any(name == "silent" for _, name, *_ in connection.execute("PRAGMA table_info(coverage)")):
                        connection.execute(_ADD_SILENT)
                except BaseException:
                    connection.close()
                    raise
                self._connection = connection
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                # SQLite itself has rolled back after some errors, such as a full disk.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @staticmethod
    def _known(connection: sqlite3.Connection, name: str) -> Alarm | None:
        row = connection.execute("SELECT alarm FROM alarms WHERE name = ?", (name,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Alarm)

    @staticmethod
    def _keep(connection: sqlite3.Connection, alarm: Alarm) -> None:
        connection.execute("REPLACE INTO alarms VALUES (?, ?)", (alarm.name, msgspec.json.encode(alarm)))

    @staticmethod
    def _add_event(connection: sqlite3.Connection, event: Event) -> None:
        number = connection.execute("INSERT INTO events (event) VALUES (?)", (msgspec.json.encode(event),)).lastrowid
        assert number is not None  # noqa: S101 - a row was inserted
        connection.execute("DELETE FROM events WHERE number <= ?", (number - MOST_EVENTS,))


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BookError(f"alarms and what is known of pages can't be read or written: {error}") from error
