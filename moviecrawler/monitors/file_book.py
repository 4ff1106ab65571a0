"""Alarms, their history and the levels of coverage in an SQLite file, for the processes that share a DATA_DIR."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import msgspec

from moviecrawler.monitors.books import FILE, MOST_EVENTS, Alarm, Book, BookError, Day, Event, today
from moviecrawler.monitors.coverage import merge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from moviecrawler.monitors.books import What
    from moviecrawler.monitors.coverage import Levels

_WAIT = 10.0
"""Seconds for the file's lock."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS alarms (name TEXT PRIMARY KEY, alarm BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, event BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS levels (
    site TEXT NOT NULL, category TEXT NOT NULL, field TEXT NOT NULL, pages REAL NOT NULL, present REAL NOT NULL,
    PRIMARY KEY (site, category, field)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS coverage (
    site TEXT NOT NULL, day TEXT NOT NULL, field TEXT NOT NULL, pages INTEGER NOT NULL, present INTEGER NOT NULL,
    PRIMARY KEY (site, day, field)
) WITHOUT ROWID;
"""
_COUNT = """
INSERT INTO coverage VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET pages = pages + excluded.pages, present = present + excluded.present
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
            query = "SELECT category, field, pages, present FROM levels WHERE site = ?"
            for group, field, pages, having in connection.execute(query, (site,)):
                levels.setdefault(group, {})[field] = pages, having
        return levels

    def learn(self, site: str, learnt: Levels, day: str, counted: Mapping[str, int], pages: int) -> None:
        """See `Book`."""
        with self._transaction() as connection:
            for group, fields in learnt.items():
                for field, added in fields.items():
                    known = connection.execute(
                        "SELECT pages, present FROM levels WHERE site = ? AND category = ? AND field = ?",
                        (site, group, field),
                    ).fetchone()
                    merged = merge(known or (0.0, 0.0), *added)
                    connection.execute("REPLACE INTO levels VALUES (?, ?, ?, ?, ?)", (site, group, field, *merged))
            if pages:
                rows = [(site, day, field, pages, number) for field, number in counted.items()]
                connection.executemany(_COUNT, rows)
                connection.execute("DELETE FROM coverage WHERE day < date(?, '-400 days')", (day,))

    def forget(self, site: str, field: str) -> None:
        """See `Book`."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM levels WHERE site = ? AND field = ?", (site, field))

    def coverage(self, site: str, since_day: str, until_day: str | None = None) -> list[Day]:
        """See `Book`."""
        query = """
            SELECT day, field, pages, present FROM coverage WHERE site = ? AND day BETWEEN ? AND ? ORDER BY day, field
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
        raise BookError(f"alarms and levels of coverage can't be read or written: {error}") from error
