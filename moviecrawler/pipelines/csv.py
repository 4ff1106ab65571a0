"""Movies as CSV files that any number of processes may write together, and that a kill never leaves half written.

What is durable stands in `movies.sqlite3`, one row a title and site. The CSV files are exported from it, each replaced as a
whole: soon after the first batch, now and then while more come, at the end, and at a start that finds rows which no
export has seen, because a run was killed before its own.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import TYPE_CHECKING

import msgspec
from filelock import FileLock, Timeout
from scrapy.exceptions import NotConfigured

from moviecrawler.catalogue.merging import merged
from moviecrawler.clock import latest
from moviecrawler.errors import ConfigurationError, RejectedError, TransientStoreError
from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.csv_export import TABLES, OutOfTimeError, export, prepare_export, transaction
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.pipelines.store import Limits, Store, time_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.store import Record

logger = logging.getLogger(__name__)

_VERSION = 1
"""The version of the schema below."""
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS movies (
    seq INTEGER PRIMARY KEY,  -- in the order of first storing
    site TEXT NOT NULL,
    site_id TEXT NOT NULL,
    scraped_at REAL NOT NULL,  -- seconds since 1970, UTC
    list_name TEXT,
    list_rank INTEGER,
    movie BLOB NOT NULL,  -- the item as JSON
    UNIQUE (site, site_id)
);
CREATE INDEX IF NOT EXISTS movies_in_order
    ON movies (site, list_name IS NULL, list_name, list_rank IS NULL, list_rank, seq);
CREATE TABLE IF NOT EXISTS people (
    site TEXT NOT NULL,
    person_id TEXT NOT NULL,  -- empty where the site gives none
    known_as TEXT NOT NULL,  -- the name of a person without an id, else empty
    name TEXT NOT NULL,  -- empty: not known
    scraped_at REAL NOT NULL,
    PRIMARY KEY (site, person_id, known_as)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS misses (  -- of titles that have not been read since
    site TEXT NOT NULL,
    site_id TEXT NOT NULL,
    checked_at REAL NOT NULL,  -- seconds since 1970, UTC
    miss BLOB NOT NULL,  -- the item as JSON
    PRIMARY KEY (site, site_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (
    written INTEGER NOT NULL,  -- counts the batches
    exported INTEGER NOT NULL  -- the last batch that the CSV files hold
);
INSERT INTO state SELECT 0, 0 WHERE NOT EXISTS (SELECT * FROM state);
PRAGMA user_version = 1;
COMMIT;
"""
_UPSERT_MOVIE = """
INSERT INTO movies (site, site_id, scraped_at, list_name, list_rank, movie) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (site, site_id) DO UPDATE SET
    scraped_at = excluded.scraped_at, list_name = excluded.list_name, list_rank = excluded.list_rank,
    movie = excluded.movie
"""
_ONE_MOVIE = "SELECT movie FROM movies WHERE site = ? AND site_id = ?"
# The last parameter of those below is the latest time that can be right. A stored row of a later time is replaced.
_UPSERT_PERSON = """
INSERT INTO people (site, person_id, known_as, name, scraped_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (site, person_id, known_as) DO UPDATE SET name = excluded.name, scraped_at = excluded.scraped_at
WHERE (excluded.scraped_at >= people.scraped_at OR people.scraped_at > ?) AND excluded.name <> ''
"""
_UPSERT_MISS = """
INSERT INTO misses (site, site_id, checked_at, miss) VALUES (?, ?, ?, ?)
ON CONFLICT (site, site_id) DO UPDATE SET checked_at = excluded.checked_at, miss = excluded.miss
WHERE excluded.checked_at >= misses.checked_at OR misses.checked_at > ?
"""
_END_MISS = "DELETE FROM misses WHERE site = ? AND site_id = ? AND (checked_at <= ? OR checked_at > ?)"

_LOCK_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for another process's batch before it counts as a failed try."""
_EXPORT_TIMEOUT_SECONDS = 600.0
"""Seconds to wait, at the end, for another process's export."""
_HURRIED_EXPORT_SECONDS = 5.0
"""Seconds that waiting and exporting may take each after SIGTERM or Ctrl-C."""
_MIN_EXPORT_INTERVAL_SECONDS = 2.0
_RETRY_EXPORT_SECONDS = 60.0
"""Seconds until files that could not be replaced are tried again."""
_EXPORT_SHARE = 20
"""Exports take a twentieth of the time at most."""


class CsvPipeline(BatchingPipeline):
    """Writes movies to `movies.csv`, `people.csv`, `credits.csv` and `scores.csv` in DATA_DIR, and misses to `misses.csv`."""

    # A commit costs a few milliseconds, and the files show how the crawl goes on.
    default_limits = Limits(batch_seconds=0.5)

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> CsvStore:
        """Read CSV_ENABLED and DATA_DIR."""
        if not settings.getbool("CSV_ENABLED", True):
            raise NotConfigured("CSV_ENABLED is 0")
        return CsvStore(check_data_dir(settings.get("DATA_DIR", "data")))


class CsvStore(Store):
    """The CSV files of one folder, and the SQLite file that they are exported from."""

    name = "csv"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection: sqlite3.Connection | None = None
        self._next_export = time.monotonic()

    def open(self) -> None:
        """Open `movies.sqlite3`, and make it when it is missing."""
        path = self._folder / "movies.sqlite3"
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
        self._connection = connection

    def write(self, records: Sequence[Record]) -> None:
        """Store the records in one transaction."""
        connection = self._connected()
        try:
            with transaction(connection, "IMMEDIATE"):
                for record in records:
                    if isinstance(record.item, Movie):
                        _write_movie(connection, record.item, record.encoded)
                    else:
                        _write_miss(connection, record.item, record.encoded)
                connection.execute("UPDATE state SET written = written + 1")
        except (sqlite3.DataError, sqlite3.IntegrityError, OverflowError) as error:
            raise RejectedError(str(error)) from error
        except sqlite3.DatabaseError as error:
            raise TransientStoreError(str(error)) from error

    def idle(self) -> float | None:
        """Export when that is due."""
        if not self._export_pending():
            return None
        wait = self._next_export - time.monotonic()
        if wait > 0:
            return wait
        self._export(0)
        return max(0.0, self._next_export - time.monotonic()) if self._export_pending() else None

    def close(self) -> None:
        """Export what is new, and close."""
        if self._connection is None:
            return
        try:
            if self._export_pending():
                self._export(_HURRIED_EXPORT_SECONDS if self.hurried else _EXPORT_TIMEOUT_SECONDS)
            if self._export_pending():
                logger.warning("The CSV files in %s lack what is new; the next crawl writes them first", self._folder)
        finally:
            self._connection.close()
            self._connection = None

    def _connected(self) -> sqlite3.Connection:
        assert self._connection is not None  # noqa: S101 - `open` comes first
        return self._connection

    def _check_time(self, began: float) -> None:
        """Break off a long export after SIGTERM or Ctrl-C, which may come while it runs."""
        if self.hurried and time.monotonic() - began > _HURRIED_EXPORT_SECONDS:
            raise OutOfTimeError

    def _export_pending(self) -> bool:
        written, exported = self._connected().execute("SELECT written, exported FROM state").fetchone()
        if written == 0:
            return False
        return bool(written != exported) or not all((self._folder / name).exists() for name in TABLES)

    def _export(self, longest_wait: float) -> None:
        """Replace the files, unless another process is doing so for longer than `longest_wait` seconds."""
        started = time.monotonic()
        least_pause = 0.0
        try:
            with FileLock(self._folder / "export.lock", timeout=longest_wait):
                # Another process may have exported our rows while we waited for it.
                if self._export_pending():
                    began = time.monotonic()
                    rows = export(self._connected(), self._folder, lambda: self._check_time(began))
                    logger.debug("Exported %d titles in %.1f s", rows, time.monotonic() - began)
        except Timeout:
            logger.debug("Another process exports")
        except OutOfTimeError:
            logger.debug("An export was broken off, as this process is to end")
        except (OSError, sqlite3.OperationalError) as error:
            # No row is lost: it is only not in the CSV files before the next export, by whichever process.
            logger.warning(
                "The CSV files in %s could not be replaced, and are as old as before: %s", self._folder, error
            )
            least_pause = _RETRY_EXPORT_SECONDS
        self._next_export = time.monotonic() + max(least_pause, pause_after_export(time.monotonic() - started))


def pause_after_export(seconds: float) -> float:
    """Return the seconds until the next export may begin, after one that took `seconds`."""
    return max(_MIN_EXPORT_INTERVAL_SECONDS, _EXPORT_SHARE * seconds)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise ConfigurationError(f"{path} was made by a newer version of moviecrawler; update, or move the file away")
    # SQLite itself fails when two processes do this to a new file at the same time.
    try:
        with FileLock(path.with_name("open.lock"), timeout=_LOCK_TIMEOUT_SECONDS):
            connection.execute("PRAGMA journal_mode = WAL")
    except Timeout:
        raise TransientStoreError(f"another process has been opening {path} for {_LOCK_TIMEOUT_SECONDS:g} s") from None
    # A commit is on the disk when it returns: only then is a batch reported as durable.
    connection.execute("PRAGMA synchronous = FULL")
    if version < _VERSION:
        connection.executescript(_SCHEMA)
    prepare_export(connection)


def _write_movie(connection: sqlite3.Connection, movie: Movie, encoded: bytes) -> None:
    scraped = time_of(movie).timestamp()
    last = latest().timestamp()
    if movie.source != "list":  # a row of a list does not show that the page is there
        connection.execute(_END_MISS, (movie.site, movie.site_id, scraped, last))
    known = connection.execute(_ONE_MOVIE, (movie.site, movie.site_id)).fetchone()
    if known is not None:
        now_known = merged(movie, msgspec.json.decode(known[0], type=Movie), 0, latest())
        if now_known is None:
            return
        if now_known is not movie:
            movie, encoded = now_known, msgspec.json.encode(now_known)
            scraped = time_of(movie).timestamp()
    connection.execute(_UPSERT_MOVIE, (movie.site, movie.site_id, scraped, movie.list_name, movie.list_rank, encoded))
    connection.executemany(
        _UPSERT_PERSON,
        [
            (
                movie.site,
                credit.person_id or "",
                "" if credit.person_id else credit.name,
                credit.name or "",
                scraped,
                last,
            )
            for credit in movie.credits
        ],
    )


def _write_miss(connection: sqlite3.Connection, miss: Miss, encoded: bytes) -> None:
    known = connection.execute(_ONE_MOVIE, (miss.site, miss.site_id)).fetchone()
    if known is not None:
        movie = msgspec.json.decode(known[0], type=Movie)
        if movie.source != "list" and movie.scraped_at is not None and miss.checked_at < movie.scraped_at <= latest():
            return  # it has been read since
    connection.execute(
        _UPSERT_MISS, (miss.site, miss.site_id, miss.checked_at.timestamp(), encoded, latest().timestamp())
    )
