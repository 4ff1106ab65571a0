"""The tables of Postgres, and the hashes by which its records are found."""

from __future__ import annotations

import csv
import io
import logging
import time
from hashlib import blake2b
from typing import TYPE_CHECKING

import psycopg2
from psycopg2.extras import execute_values

from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.basics.progress import INTERVAL_SECONDS, Progress
from moviecrawler.basics.texts import fold
from moviecrawler.database.records import Place
from moviecrawler.database.schema import is_up_to_date, update_schema
from moviecrawler.database.sql import read_sql
from moviecrawler.database.tables import RECORDS, TABLES, TITLES
from moviecrawler.database.views import VIEWS
from moviecrawler.matching.titles import match_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    # Psycopg2 writes its classes in small letters.
    from psycopg2.extensions import connection as Connection  # noqa: N812
    from psycopg2.extensions import cursor as Cursor  # noqa: N812

    from moviecrawler.database.records import Key, Row
    from moviecrawler.database.tables import Dialect, Table
    from moviecrawler.items import Movie

logger = logging.getLogger(__name__)

_LOCK = 7_303_170_117_561_344_000
"""The advisory lock that is held while a schema is changed: a number that no other program uses."""
_STALE_KEYS = "stale_keys"
"""The table that a migration leaves after which keys are to be made anew."""
_ROWS_AT_ONCE = 1_000
"""Rows of one statement that replaces rows."""
_PAUSE_SECONDS = 0.5
"""Seconds between two tries to change a schema that others use."""
_PLACES = read_sql("places.sql")
_NEW_IDS = (
    "SELECT nextval(sequence)"
    " FROM CAST(pg_get_serial_sequence(%s, %s) AS regclass) AS sequence, generate_series(1, %s)"
)
_AS_TEXT = ("json", "hashes")
"""The types that are read as texts."""


class PostgresTables:
    """The tables in a transaction; see `records.Tables`."""

    name = "the database that DATABASE_URL names"
    dialect: Dialect = "postgres"
    is_loading = False

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def select(self, query: str, ids: Collection[str | int] = (), *values: object) -> list[Row]:
        statement = query.format(ids="= ANY (%s)", mark="%s")
        listed = [list(ids)] * query.count("{ids}")
        with self._cursor.connection.cursor() as plain:  # a named tuple a row takes long
            plain.execute(statement, (*values, *listed))
            rows: list[Row] = plain.fetchall()
        return rows

    def stream(self, statement: str, *values: object) -> Iterator[Row]:
        query = statement.replace("%", "%%") if values else statement
        with self._cursor.connection.cursor("stream") as cursor:
            cursor.execute(query.replace("{mark}", "%s"), values or None)
            yield from cursor

    def columns_of(self, table: Table) -> str:
        return ", ".join(
            f'"{name}"::text' if table.type_of(name) in _AS_TEXT else f'"{name}"'
            for name in table.columns
        )

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        if rows:
            names = ", ".join(f'"{name}"' for name in table.columns)
            copy_rows(self._cursor, f"{table.name} ({names})", rows)

    def upsert(self, table: Table, rows: Sequence[Row], condition: str = "") -> None:
        if rows:
            statement = table.upsert("VALUES %s", condition)
            execute_values(self._cursor, statement, rows, page_size=_ROWS_AT_ONCE)

    def delete(self, table: Table, keys: Sequence[Row]) -> None:
        if keys:
            names = ", ".join(table.key[: len(keys[0])])
            self._cursor.execute(f"DELETE FROM {table.name} WHERE ({names}) IN %s", (tuple(keys),))

    def change(self, statement: str, *values: object) -> None:
        self._cursor.execute(statement.format(mark="%s"), values)

    def new_ids(self, table: Table, number: int) -> list[int]:
        self._cursor.execute(_NEW_IDS, (table.name, table.key[0], number))
        return [number for (number,) in self._cursor.fetchall()]

    def places_of(self, keys: Collection[Key]) -> dict[Key, Place]:
        values = {
            "sites": [site for site, _ in keys],
            "site_ids": [site_id for _, site_id in keys],
        }
        self._cursor.execute(_PLACES, values)
        return {
            (site, site_id): Place(title_id=title_id, imdb_id=imdb_id)
            for site, site_id, title_id, imdb_id in self._cursor.fetchall()
        }

    def match_keys_of(self, movie: Movie) -> str:
        hashes = [] if is_part(movie) else match_hashes(match_keys(movie), [movie.site])
        return "{" + ",".join(map(str, sorted(hashes))) + "}"

    def check_privileges(self) -> None:
        """Raise psycopg2's error for what the database's user may not write."""
        self.new_ids(RECORDS, 1)
        self.new_ids(TITLES, 1)
        for table in TABLES:
            name = table.key[0]
            self._cursor.execute(
                f"UPDATE {table.name} SET {name} = {name} WHERE false;"
                f" DELETE FROM {table.name} WHERE false;"
                f" INSERT INTO {table.name} SELECT * FROM {table.name} WHERE false"
            )

    def version(self) -> int:
        existing = self.existing("schema_version", "records")
        if "schema_version" not in existing:
            return -1 if existing else 0
        ((version,),) = self.select("SELECT version FROM schema_version")
        return int(version)

    def existing(self, *names: str) -> set[str]:
        """Return which of these tables there are."""
        # Not to_regclass, which may answer from a cache that lacks the tables that another process
        # has made while this one waited.
        query = "SELECT relname FROM pg_class WHERE relname {ids} AND pg_table_is_visible(oid)"
        return {name for (name,) in self.select(query, names)}

    def set_version(self, version: int) -> None:
        self._cursor.execute("DELETE FROM schema_version")
        self._cursor.execute("INSERT INTO schema_version VALUES (%s)", (version,))

    def run(self, script: str) -> None:
        self._cursor.execute(script)

    def drop_views(self) -> None:
        for name in reversed(VIEWS):
            self._cursor.execute(f"DROP VIEW IF EXISTS {name}")


def update_postgres(connection: Connection, is_ending: Callable[[], bool] = lambda: False) -> None:
    """Update a database to this version's schema, in one transaction per step.

    Of processes that start together, each does what the others have not done yet.

    Raises ConfigurationError when the database is not in UTF-8 or has a schema that this version
    doesn't know, TransientStoreError when this process is shutting down while it waits for others.
    """
    began = time.monotonic()
    reminded = began
    while True:
        try:
            with connection, connection.cursor() as cursor:
                if _update(cursor):
                    return
            continue
        except (psycopg2.errors.LockNotAvailable, psycopg2.errors.DeadlockDetected) as error:
            reason = fold(str(error))
        if is_ending():
            raise TransientStoreError(
                f"other processes use the tables whose schema is to be changed: {reason}"
            )
        if time.monotonic() - reminded >= INTERVAL_SECONDS:
            reminded = time.monotonic()
            logger.warning(
                "Waiting %.0f s to change the database's schema, which is in use: %s",
                reminded - began,
                reason,
            )
        time.sleep(_PAUSE_SECONDS)


def _update(cursor: Cursor) -> bool:
    """Do the next step, and return whether there is none left."""
    tables = PostgresTables(cursor)
    if is_up_to_date(tables):
        return True
    ((encoding,),) = tables.select("SHOW server_encoding")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"the database that DATABASE_URL names is in {encoding}; create one with"
            " ENCODING 'UTF8' TEMPLATE template0"
        )
    # Readers lock tables in another order: in a deadlock this change must give way, so its timeout
    # is below `deadlock_timeout` (1 s).
    cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '500ms'")
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    if is_up_to_date(tables):  # another process has done it meanwhile
        return True
    if tables.version():
        cursor.execute("SELECT lock_titles()")  # writers wait until the schema is changed
    with Progress(logger.warning, f"changing the schema of {tables.name}"):
        is_done = update_schema(tables)
        if is_done and tables.existing(_STALE_KEYS):
            from moviecrawler.database.titles import renew_keys  # noqa: PLC0415 - it needs this one

            renew_keys(cursor)
            cursor.execute(f"DROP TABLE {_STALE_KEYS}")
    return is_done


def is_part(movie: Movie) -> bool:
    """Return whether a movie is a part of a series, like the database's function of that name."""
    return movie.series_id is not None or movie.kind in {"season", "episode"}


def match_hashes(keys: Iterable[str], sites: Collection[str]) -> set[int]:
    """Return the hashes of keys on sites.

    They differ by site so that a search skips the asking record's own site.
    """
    return {
        int.from_bytes(blake2b(f"{site} {key}".encode(), digest_size=8).digest(), signed=True)
        for site in sites
        for key in keys
    }


def copy_rows(cursor: Cursor, table: str, rows: Iterable[Iterable[object]]) -> None:
    """Write rows to a table, named with its columns, by COPY.

    No value is an empty text, which would be taken for null.
    """
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows(rows)
    text = file.getvalue().replace("\0", "")  # Postgres can't store it
    cursor.copy_expert(f"COPY {table} FROM STDIN WITH (FORMAT csv)", io.StringIO(text, newline=""))
