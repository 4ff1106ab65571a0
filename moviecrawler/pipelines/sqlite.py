"""Stores movies and misses in the embedded database `DATA_DIR/movies.sqlite3`.

Any number of processes may write it together; `database/sql/embedded.sql` describes its tables. The
CSV files and the table `scoreboard` are made from it when the crawl ends. A run that finds either
out of date, because an earlier one was killed, updates it.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy.exceptions import NotConfigured

from moviecrawler.basics.clock import latest, utc_now
from moviecrawler.basics.errors import OutputError, RejectedError, TransientStoreError
from moviecrawler.database.embedded import (
    AMOUNTS,
    FILE,
    JSON_COLUMNS,
    PARTS,
    PLAIN_COLUMNS,
    open_embedded,
    transaction,
)
from moviecrawler.database.scoreboard import make_scoreboard, titles_in
from moviecrawler.items import Miss, Movie
from moviecrawler.matching.merging import merged
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.csv_export import export, is_outdated
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.pipelines.store import Limits, Store, time_of
from moviecrawler.sites import SCORES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Role
    from moviecrawler.pipelines.store import Record

logger = logging.getLogger(__name__)

_ROLES: dict[str, Role] = {"directors": "director", "writers": "writer", "creators": "creator"}
_COLUMNS = (
    *PLAIN_COLUMNS,
    *JSON_COLUMNS,
    *_ROLES,
    "scraped_at",
    "fetch",
    "updated_at",
    *(column for form in SCORES.values() if form.columns for column in form.columns),
    *(name for column in AMOUNTS.values() for name in (column, f"{column}_currency")),
)
"""The columns of `movies`."""


def _upsert(changing: Iterable[str]) -> str:
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in changing)
    values = ", ".join(f":{name}" for name in _COLUMNS)
    return (
        f"INSERT INTO movies ({names}) VALUES ({values})"  # noqa: S608 - ours
        f" ON CONFLICT (site, site_id) DO UPDATE SET {changes}"
    )


_UPSERT_CHANGED = _upsert(_COLUMNS)
_UPSERT_SAME = _upsert(name for name in _COLUMNS if name != "updated_at")
_INSERTS = {
    table: (
        f"INSERT INTO {table} (site, site_id, {', '.join(columns)})"  # noqa: S608 - ours
        f" VALUES (?, ?{', ?' * len(columns)})"
    )
    for table, columns in PARTS.items()
}
_ITEM = "SELECT item FROM items WHERE site = ? AND site_id = ?"
_ADD_HISTORY = (
    "INSERT OR REPLACE INTO score_history (site, site_id, kind, since, value, count)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
# A score dated in the future came from a wrong clock: its entry is replaced by one of now.
_END_FUTURE = (
    "DELETE FROM score_history"
    " WHERE site = ? AND site_id = ? AND since > ? AND since > ?"
    " RETURNING kind"
)
_ADD_PERSON = """
INSERT INTO people (site, person_id, name, named_at) VALUES (?, ?, ?, ?)
ON CONFLICT (site, person_id) WHERE person_id IS NOT NULL DO UPDATE SET
    name = excluded.name, named_at = excluded.named_at
WHERE excluded.name IS NOT NULL AND (excluded.named_at >= people.named_at OR people.named_at > ?)
ON CONFLICT DO NOTHING
"""
_ADD_MISS = """
INSERT INTO misses (site, site_id, url, outcome, reason, checked_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (site, site_id) DO UPDATE SET
    url = excluded.url,
    outcome = excluded.outcome,
    reason = excluded.reason,
    checked_at = excluded.checked_at
WHERE excluded.checked_at >= misses.checked_at OR misses.checked_at > ?
"""
_END_MISS = (
    "DELETE FROM misses WHERE site = ? AND site_id = ? AND (checked_at <= ? OR checked_at > ?)"
)
_ADD_ALIAS = """
INSERT INTO aliases (site, old_id, new_id, since)
SELECT :site, :old_id, :new_id, :since
WHERE NOT EXISTS (
    SELECT 1 FROM movies
    WHERE site = :site AND site_id = :old_id AND source <> 'list' AND scraped_at > :since
)
ON CONFLICT (site, old_id) DO UPDATE SET new_id = excluded.new_id, since = excluded.since
WHERE excluded.since >= aliases.since
"""
_END_ALIAS = "DELETE FROM aliases WHERE site = ? AND old_id = ? AND since <= ?"
_READ_SINCE = (
    "SELECT 1 FROM movies"
    " WHERE site = ? AND site_id = ? AND source <> 'list' AND scraped_at > ? AND scraped_at <= ?"
)

_HURRIED_EXPORT_SECONDS = 5.0
"""Seconds that waiting for another process and exporting may take after SIGTERM or Ctrl-C."""
MOST_TITLES_AT_THE_END = 50_000
"""Rows of `movies` above which only `scrapy scoreboard` makes the scoreboard, as it takes
minutes."""


class SqlitePipeline(BatchingPipeline):
    """Write movies and misses to `movies.sqlite3` in DATA_DIR.

    From there they go to CSV files unless CSV_ENABLED is 0.
    """

    # Small batches let readers of the database follow the crawl; a commit costs only a few
    # milliseconds.
    default_limits = Limits(batch_seconds=0.5)

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> SqliteStore:
        """Read SQLITE_ENABLED, DATA_DIR, CSV_ENABLED and FRESHNESS_MARGIN (seconds).

        Raises NotConfigured when SQLITE_ENABLED is off.
        """
        if not settings.getbool("SQLITE_ENABLED", True):
            raise NotConfigured
        return SqliteStore(
            check_data_dir(settings.get("DATA_DIR", "data")),
            settings.getfloat("FRESHNESS_MARGIN", 3600),
            with_csv=settings.getbool("CSV_ENABLED", True),
        )


class SqliteStore(Store):
    """The embedded database of one folder, and the CSV files that are exported from it."""

    name = "sqlite"

    def __init__(self, folder: Path, margin: float = 0, *, with_csv: bool = True) -> None:
        self._folder = folder
        self._margin = margin
        self._with_csv = with_csv
        self._open: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # which one it has opened

    def open(self) -> None:
        """Open `movies.sqlite3`, and create it when it is missing."""
        self._open = open_embedded(self._folder)
        self._file = _identity(self._folder / FILE)

    def write(self, records: Sequence[Record]) -> None:
        """Store the records in one transaction."""
        connection = self._connection
        try:
            with transaction(connection, "IMMEDIATE"):
                # Misses first: a movie from a list makes its record newer than the miss, although
                # its page was not read.
                for record in sorted(records, key=lambda record: isinstance(record.item, Movie)):
                    if isinstance(record.item, Movie):
                        self._write_movie(record.item)
                    else:
                        self._write_miss(record.item)
                connection.execute("UPDATE state SET written = written + 1")
        except (
            sqlite3.DataError,
            sqlite3.IntegrityError,
            sqlite3.InterfaceError,
            OverflowError,
        ) as error:
            raise RejectedError(str(error)) from error
        except sqlite3.DatabaseError as error:
            raise TransientStoreError(str(error)) from error

    def close(self) -> None:
        """Update the scoreboard and the files, and close the database.

        Raises OutputError when the files can't be replaced, or somebody has taken the database
        away.
        """
        if self._open is None:
            return
        try:
            self._make_scoreboard()
            failure = self._export() if self._with_csv else ""
            if _identity(self._folder / FILE) != self._file:
                has_files = self._with_csv and not is_outdated(self._open, self._folder)
                rescue = "copy the CSV files, which have it until the next crawl replaces them"
                raise OutputError(
                    f"{self._folder / FILE} was deleted or replaced during the crawl, and lacks"
                    f" what was stored; {rescue if has_files else 'crawl it again'}"
                )
            if failure:
                raise OutputError(
                    f"the CSV files in {self._folder} are as old as before,"
                    f" as they could not be replaced ({failure}); {FILE} has all rows,"
                    " and the next crawl, or scrapy scoreboard --export, writes the files"
                )
        finally:
            self._open.close()
            self._open = None

    @property
    def _connection(self) -> sqlite3.Connection:
        assert self._open is not None  # noqa: S101 - `open` comes first
        return self._open

    def _write_movie(self, movie: Movie) -> None:
        connection = self._connection
        scraped = _text(time_of(movie))
        last = _text(latest())
        key = (movie.site, movie.site_id)
        if movie.source != "list":  # a movie from a list does not show that its page exists
            for site_id in movie.ids:
                connection.execute(_END_MISS, (movie.site, site_id, scraped, last))
            self._write_alias(movie, scraped)
        row = connection.execute(_ITEM, key).fetchone()
        known = None if row is None else msgspec.json.decode(row[0], type=Movie)
        ended: set[str] = set()
        if known is not None:
            merged_movie = merged(movie, known, self._margin, latest())
            if merged_movie is None:
                return
            movie = merged_movie
            scraped = _text(time_of(merged_movie))
            ended = {kind for (kind,) in connection.execute(_END_FUTURE, (*key, scraped, last))}
        values = _values(movie) | {"updated_at": _text(utc_now())}
        is_changed = (
            known is None or replace(known, scraped_at=movie.scraped_at, fetch=movie.fetch) != movie
        )
        connection.execute(_UPSERT_CHANGED if is_changed else _UPSERT_SAME, values)
        for table, columns in PARTS.items():
            if known is not None and getattr(known, table) == getattr(movie, table):
                continue
            if known is not None:
                connection.execute(
                    f"DELETE FROM {table} WHERE site = ? AND site_id = ?",  # noqa: S608 - ours
                    key,
                )
            connection.executemany(
                _INSERTS[table], ((*key, *row) for row in _rows(movie, table, columns))
            )
        before = (
            {score.kind: (score.value, score.count) for score in known.scores}
            if known is not None
            else {}
        )
        now = {score.kind: (score.value, score.count) for score in movie.scores}
        changed = [
            kind for kind in before | now if kind in ended or before.get(kind) != now.get(kind)
        ]
        connection.executemany(
            _ADD_HISTORY, ((*key, kind, scraped, *now.get(kind, (None, None))) for kind in changed)
        )
        if known is None or known.credits != movie.credits:
            people = (
                (movie.site, credit.person_id, credit.name, scraped, last)
                for credit in movie.credits
            )
            connection.executemany(_ADD_PERSON, people)

    def _write_alias(self, movie: Movie, scraped: str) -> None:
        """End the alias that the title's id was, and note the one that led to its page."""
        self._connection.execute(_END_ALIAS, (movie.site, movie.site_id, scraped))
        if movie.fetch is not None and movie.fetch.is_alias:
            alias = {
                "site": movie.site,
                "old_id": movie.fetch.requested_id,
                "new_id": movie.site_id,
                "since": scraped,
            }
            self._connection.execute(_ADD_ALIAS, alias)

    def _write_miss(self, miss: Miss) -> None:
        checked = _text(miss.checked_at)
        last = _text(latest())
        if (
            self._connection.execute(
                _READ_SINCE, (miss.site, miss.site_id, checked, last)
            ).fetchone()
            is None
        ):
            values = (miss.site, miss.site_id, miss.url, miss.outcome, miss.reason, checked)
            self._connection.execute(_ADD_MISS, (*values, last))

    def _make_scoreboard(self) -> None:
        connection = self._connection
        written, matched = connection.execute("SELECT written, matched FROM state").fetchone()
        if written == matched:
            return
        if (titles := titles_in(connection)) > MOST_TITLES_AT_THE_END:
            self.remark = (
                f"the scoreboard of {titles:,} titles is as old as before; "
                "run scrapy scoreboard to update it"
            )
            return
        try:
            make_scoreboard(connection)
        except sqlite3.DatabaseError as error:
            logger.warning(
                "The scoreboard of %s is as old as before: %s", self._folder / FILE, error
            )

    def _export(self) -> str:
        """Replace the CSV files; return why that failed, if it did.

        What takes too long after SIGTERM or Ctrl-C is no failure, but left to the next crawl.
        """
        began = time.monotonic()

        def is_late() -> bool:
            return self.hurried and time.monotonic() - began > _HURRIED_EXPORT_SECONDS

        try:
            export(self._connection, self._folder, is_late)
        except TimeoutError:
            logger.warning(
                "The CSV files in %s lack what is new, as there was no time to write them; the next"
                " crawl, or scrapy scoreboard --export, writes them",
                self._folder,
            )
        except (OSError, sqlite3.DatabaseError) as error:
            return str(error)
        return ""


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _text(time_: datetime) -> str:
    return time_.astimezone(UTC).isoformat()


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _values(movie: Movie) -> dict[str, Any]:
    """Return a movie's row in `movies`, but for `updated_at`."""
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    row |= {name: getattr(movie, name) for name in PLAIN_COLUMNS}
    row |= {name: _json(getattr(movie, name)) for name in JSON_COLUMNS}
    for column, role in _ROLES.items():
        row[column] = _json([credit.name for credit in movie.people(role) if credit.name])
    for score in movie.scores:
        if columns := SCORES[score.kind].columns:
            row[columns[0]] = score.value
            row[columns[1]] = score.count
    for amount in movie.amounts:
        column = AMOUNTS[amount.kind]
        row[column] = amount.value
        row[f"{column}_currency"] = amount.currency
    row["scraped_at"] = _text(time_of(movie))
    row["fetch"] = None if movie.fetch is None else _json(movie.fetch)
    return row


def _rows(movie: Movie, table: str, columns: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the values of a movie's rows in one of `PARTS`."""
    for position, part in enumerate(getattr(movie, table), 1):
        row = {name: getattr(part, name, None) for name in columns}
        if table == "scores":
            form = SCORES[part.kind]
            row["scale"] = form.scale
            row["histogram"] = _json(part.histogram)
            row["average_scale"] = None if part.average is None else form.average_scale
        elif table == "offers" and part.seen_at is not None:
            row["seen_at"] = _text(part.seen_at)
        elif table == "related":
            row["related_id"] = part.site_id
            row["position"] = position
        elif table == "other_titles":
            row["position"] = position
        yield list(row.values())
