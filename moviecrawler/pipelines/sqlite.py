"""Stores movies and misses in the embedded database `DATA_DIR/movies.sqlite3`.

Any number of processes may write it together; `database/tables.py` declares its tables. The CSV
files are made from it when the crawl ends, when records are also matched with those of other sites.
A run that finds either out of date, because an earlier one was killed, updates it.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from moviecrawler.basics import progress
from moviecrawler.basics.errors import OutputError, RejectedError, SchemaError, TransientStoreError
from moviecrawler.database.records import BatchWriter
from moviecrawler.database.scoreboard import has_other_sites, match_embedded
from moviecrawler.database.sqlite import (
    FILE,
    SqliteTables,
    begin_loading,
    end_loading,
    is_loading,
    last_record_id,
    leave_readable,
    open_sqlite,
    read_sqlite,
    transaction,
)
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.csv_export import export, is_outdated
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.pipelines.store import Limits, Store, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site
    from moviecrawler.pipelines.store import Record

logger = logging.getLogger(__name__)

_WRONG_STATEMENT = re.compile("no such (?:table|column)|has no column|syntax error")
"""What SQLite says of a statement that its tables don't fit: these have no error code."""
_HURRIED_EXPORT_SECONDS = 5.0
"""Seconds that waiting for another process and exporting may take after SIGTERM or Ctrl-C."""
_BULK_BATCH = 100
"""Records of a batch that only a source with many titles at once fills."""
_BULK_SHARE = 10
"""A load begins when what was written in such batches is more than a tenth of all records."""
MOST_TITLES_AT_THE_END = 50_000
"""Records above which only `scrapy scoreboard` compares those of several sites, and none are
indexed or matched after a signal: it takes minutes."""


def read_times(folder: Path, site: Site) -> Iterator[tuple[str, str]]:
    """Yield the id and the time of each record of a site in a folder's database.

    There is none where the database can't be read.
    """
    query = "SELECT site_id, scraped_at FROM records WHERE site = ?"
    try:
        with closing(read_sqlite(folder)) as connection:
            yield from connection.execute(query, (site,))
    except (FileNotFoundError, sqlite3.Error):
        return


class SqlitePipeline(BatchingPipeline):
    """Write movies and misses to `movies.sqlite3` in DATA_DIR.

    From there they go to CSV files unless CSV_ENABLED is 0.
    """

    # Small batches let readers of the database follow the crawl; a commit costs only a few
    # milliseconds.
    default_limits = Limits(batch_items=1_000, batch_seconds=0.5)

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
        self._bulk_records = 0  # written in large batches, one after the other
        self._is_ending_long_load = False

    def open(self) -> None:
        """Open `movies.sqlite3`, and create it when it is missing."""
        self._open = open_sqlite(self._folder)
        self._file = _identity(self._folder / FILE)

    def write(self, records: Sequence[Record]) -> None:
        """Store the records in one transaction."""
        connection = self._connection
        try:
            with transaction(connection, "IMMEDIATE"):
                self._choose_loading(len(records))
                BatchWriter(SqliteTables(connection), self._margin).write(in_order(records))
                connection.execute("UPDATE state SET written = written + 1")
            if not self._bulk_records and is_loading(connection):
                end_loading(connection)
        except (
            sqlite3.DataError,
            sqlite3.IntegrityError,
            sqlite3.InterfaceError,
            OverflowError,
        ) as error:
            raise RejectedError(str(error)) from error
        except sqlite3.DatabaseError as error:
            if _WRONG_STATEMENT.search(str(error)):
                raise SchemaError(str(error)) from error
            raise TransientStoreError(str(error)) from error

    def _choose_loading(self, batch_size: int) -> None:
        """Begin a load once what is written in large batches is much beside what is stored."""
        self._bulk_records = self._bulk_records + batch_size if batch_size >= _BULK_BATCH else 0
        if self._bulk_records * _BULK_SHARE > last_record_id(self._connection):
            begin_loading(self._connection)

    def close(self) -> None:
        """Match records, update the files, and close the database.

        Raises OutputError when the files can't be replaced, or somebody has taken the database
        away.
        """
        if self._open is None:
            return
        try:
            failure = ""
            if self._end_load():
                self._match()
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
            leave_readable(self._folder)

    def hurry(self) -> None:
        """Leave the end of a load to the next opening."""
        super().hurry()
        if self._is_ending_long_load:
            self._connection.interrupt()

    def _end_load(self) -> bool:
        """End a load that goes on; return whether none goes on any more."""
        if not is_loading(self._connection):
            return True
        reason = "there was no time for that"
        is_long = last_record_id(self._connection) > MOST_TITLES_AT_THE_END
        self._is_ending_long_load = is_long
        try:
            if not (is_long and self.hurried):
                end_loading(self._connection)
                return True
        except sqlite3.DatabaseError as error:
            reason = str(error)
        finally:
            self._is_ending_long_load = False
        message = "%s has no people of what was loaded until it is opened again, and no new CSV: %s"
        logger.warning(message, self._folder / FILE, reason)
        return False

    @property
    def _connection(self) -> sqlite3.Connection:
        assert self._open is not None  # noqa: S101 - `open` comes first
        return self._open

    def _match(self) -> None:
        connection = self._connection
        written, matched = connection.execute("SELECT written, matched FROM state").fetchone()
        if written == matched:
            return
        records = last_record_id(connection)
        if records > MOST_TITLES_AT_THE_END and (self.hurried or has_other_sites(connection)):
            self.remark = (
                f"{records:,} records are not matched with those of other sites yet; "
                "run scrapy scoreboard to do that"
            )
            return
        try:
            match_embedded(connection, progress.log)
        except sqlite3.DatabaseError as error:
            logger.warning("The records of %s are not matched anew: %s", self._folder / FILE, error)

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
