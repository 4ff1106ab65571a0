"""The embedded database, `DATA_DIR/movies.sqlite3`: opening it, and writing it in transactions."""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from moviecrawler.basics.clock import latest
from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.basics.files import run_script
from moviecrawler.basics.progress import INTERVAL_SECONDS, Progress, log
from moviecrawler.database.records import text_of
from moviecrawler.database.schema import (
    VERSION,
    is_up_to_date,
    update_schema,
)
from moviecrawler.database.sql import read_sql
from moviecrawler.database.tables import CHILDREN
from moviecrawler.database.views import VIEWS, csv_views

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from moviecrawler.database.records import Key, Place, Row
    from moviecrawler.database.tables import Dialect, Table
    from moviecrawler.items import Movie

logger = logging.getLogger(__name__)

FILE = "movies.sqlite3"

_UNWRITABLE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
"""Errors, without their finer parts, of a folder in which nothing can be written."""
_MOST_VALUES = 900
"""Values of a statement; a SQLite from before 2020 takes 999."""
_LOCK_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for another process's batch before writing fails."""


class SqliteTables:
    """The tables of an open database; see `records.Tables`."""

    dialect: Dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection, name: str = FILE) -> None:
        self.name = name
        self.connection = connection

    def select(self, query: str, ids: Collection[str | int] = (), *values: object) -> list[Row]:
        statement = query.format(ids="IN (SELECT value FROM json_each(?))", mark="?")
        listed = (json.dumps(list(ids)),) if "{ids}" in query else ()
        return self.connection.execute(statement, (*values, *listed)).fetchall()

    def stream(self, statement: str, *values: object) -> Iterator[Row]:
        yield from self.connection.execute(statement.replace("{mark}", "?"), values)

    def columns_of(self, table: Table) -> str:
        return ", ".join(f'"{name}"' for name in table.columns)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        # Python gives up its lock for each run of a statement, and then waits for other threads.
        at_once = _MOST_VALUES // len(table.columns)
        whole = len(rows) // at_once * at_once
        for begin in range(0, whole, at_once):
            values = list(chain.from_iterable(rows[begin : begin + at_once]))
            self.connection.execute(table.insert(_marks(table, at_once)), values)
        self.connection.executemany(table.insert(_marks(table)), rows[whole:])

    def upsert(self, table: Table, rows: Sequence[Row], condition: str = "") -> None:
        self.connection.executemany(table.upsert(_marks(table), condition), rows)

    def delete(self, table: Table, keys: Sequence[Row]) -> None:
        if keys:
            condition = " AND ".join(f"{name} = ?" for name in table.key[: len(keys[0])])
            self.connection.executemany(f"DELETE FROM {table.name} WHERE {condition}", keys)

    def change(self, statement: str, *values: object) -> None:
        self.connection.execute(statement.format(mark="?"), values)

    def new_ids(self, _: Table, number: int) -> list[int]:
        """Return ids that no row has; a title has the id of the first of its records."""
        last = last_record_id(self.connection)
        return list(range(last + 1, last + 1 + number))

    @property
    def is_loading(self) -> bool:
        return is_loading(self.connection)

    def places_of(self, _: Collection[Key]) -> dict[Key, Place]:
        return {}

    def match_keys_of(self, _: Movie) -> None:
        return None

    def version(self) -> int:
        ((version,),) = self.connection.execute("PRAGMA user_version")
        ((tables,),) = self.connection.execute("SELECT count(*) FROM sqlite_master")
        return -1 if tables and not version else int(version)

    def set_version(self, version: int) -> None:
        self.connection.execute(f"PRAGMA user_version = {version}")

    def run(self, script: str) -> None:
        run_script(self.connection, script)

    def drop_views(self) -> None:
        for name in (*csv_views(()), *reversed(VIEWS)):
            self.connection.execute(f"DROP VIEW IF EXISTS {name}")


def _marks(table: Table, rows: int = 1) -> str:
    row = f"({', '.join('?' * len(table.columns))})"
    return f"VALUES {', '.join([row] * rows)}"


def open_sqlite(folder: Path) -> sqlite3.Connection:
    """Open a folder's database, create it when it is missing, and bring its schema up to date.

    Raises TransientStoreError when that may work later, ConfigurationError when the file is not one
    that this version can use.
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
        raise ConfigurationError(
            f"{path} is damaged or not a SQLite file ({error}); move it away"
        ) from error
    return connection


# --- Loading many records -------------------------------------------------------------------------
#
# A large load writes all over the indexes of people, and over their table. So while one goes on,
# the indexes below are dropped, and people are not written. That there are no such indexes says
# that a load goes on: whoever writes meanwhile leaves people to its end, and whoever opens the
# database after a kill ends it.

_DROPPED = {
    name: statement for table in CHILDREN for name, statement in table.index_statements.items()
}
_LOADED_PEOPLE = read_sql("loaded_people.sql")


def last_record_id(connection: sqlite3.Connection) -> int:
    """Return the id of the newest record; 0 when there is none."""
    ((last,),) = connection.execute("SELECT coalesce(max(record_id), 0) FROM records")
    return int(last)


def is_loading(connection: sqlite3.Connection) -> bool:
    """Return whether a load is running, or was broken off."""
    marks = ", ".join("?" * len(_DROPPED))
    query = f"SELECT count(*) FROM sqlite_master WHERE name IN ({marks})"
    ((indexes,),) = connection.execute(query, list(_DROPPED))
    return bool(indexes < len(_DROPPED))


def begin_loading(connection: sqlite3.Connection) -> None:
    """Begin a load, inside the transaction of its first batch."""
    for name in _DROPPED:
        connection.execute(f"DROP INDEX IF EXISTS {name}")


def end_loading(connection: sqlite3.Connection) -> None:
    """End a load: create the indexes, and store the people of all records."""
    with (
        Progress(log, "indexing what was loaded", len(_DROPPED) + 1) as progress,
        transaction(connection, "IMMEDIATE"),
    ):
        if is_loading(connection):  # another process may have done it meanwhile
            for statement in _DROPPED.values():
                connection.execute(statement.replace("INDEX", "INDEX IF NOT EXISTS", 1))
                progress.done += 1
            connection.execute(_LOADED_PEOPLE, (text_of(latest()),))


def read_sqlite(folder: Path) -> sqlite3.Connection:
    """Open a folder's database to read it, which needs no right to write there.

    Raises FileNotFoundError when there is none, sqlite3.Error when it is not one.
    """
    path = (folder / FILE).resolve()
    if not path.exists():
        raise FileNotFoundError(None, "there is no such file", str(folder / FILE))
    try:
        return _connect_to_read(f"{path.as_uri()}?mode=ro")
    except sqlite3.OperationalError as error:
        # Who may not write the folder can't make the index of the log that a writer has left. While
        # nobody writes there is none, and the file itself is whole.
        log = path.with_name(f"{path.name}-wal")
        is_written = log.exists() and log.stat().st_size > 0
        if is_written or error.sqlite_errorcode & 0xFF not in _UNWRITABLE:
            raise
    return _connect_to_read(f"{path.as_uri()}?mode=ro&immutable=1")


def leave_readable(folder: Path) -> None:
    """Leave the empty log and its index beside a database, which the last writer has deleted.

    With these, any program reads it for who may not write the folder.
    """
    with suppress(OSError, sqlite3.Error):
        read_sqlite(folder).close()


def _connect_to_read(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").close()
    except BaseException:
        connection.close()
        raise
    return connection


def tables_in_memory() -> SqliteTables:
    """Return tables of nothing but this process, for what needs the schema alone."""
    tables = SqliteTables(sqlite3.connect(":memory:", isolation_level=None))
    with transaction(tables.connection, "IMMEDIATE"):
        update_schema(tables)
    return tables


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Commit at the end of the block, or roll back.

    `kind` is DEFERRED to read, IMMEDIATE to write.
    """
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
    with _opening_lock(path):
        connection.execute("PRAGMA journal_mode = WAL")
        tables = SqliteTables(connection, str(path))
        if not is_up_to_date(tables):
            with Progress(logger.warning, f"changing the schema of {path}"):
                if 0 < tables.version() < VERSION:
                    _copy(connection, path, tables.version())
                # A view that a user has made need not fit the tables while they change.
                connection.execute("PRAGMA legacy_alter_table = ON")
                is_done = False
                while not is_done:
                    with transaction(connection, "IMMEDIATE"):
                        is_done = update_schema(tables)
                connection.execute("PRAGMA legacy_alter_table = OFF")
        if is_loading(connection):
            end_loading(connection)
    # A commit must be on the disk when it returns, as the batch is then reported durable.
    connection.execute("PRAGMA synchronous = FULL")
    # 32 MB: a batch of titles writes all over the indexes of people, and with SQLite's 2 MB a sixth
    # of a large crawl's time is reading them.
    connection.execute("PRAGMA cache_size = -32000")


@contextmanager
def _opening_lock(path: Path) -> Iterator[None]:
    """Wait while another process opens a database, as its schema may be changing."""
    lock = FileLock(path.with_name("open.lock"))
    waited = 0.0
    while True:
        with suppress(Timeout):
            lock.acquire(timeout=INTERVAL_SECONDS)
            break
        waited += INTERVAL_SECONDS
        logger.warning("Another process has been opening %s for %.0f s", path, waited)
    try:
        yield
    finally:
        lock.release()


def _copy(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Copy a database before its schema is changed.

    Raises ConfigurationError when there is not enough space for the copy and the change.
    """
    size = path.stat().st_size
    free = shutil.disk_usage(path.parent).free
    if free < 3 * size:  # the copy, the new tables, and the log of the transaction
        raise ConfigurationError(
            f"{path} is of an older version, and to change it needs {3 * size / 1e9:.1f} GB of free"
            f" space; there are {free / 1e9:.1f} GB"
        )
    copy = path.with_name(f"{path.name}.version-{version}")
    logger.warning("%s is of version %d: it is copied to %s, and changed", path, version, copy)
    copy.unlink(missing_ok=True)
    connection.execute("VACUUM INTO ?", (str(copy),))
