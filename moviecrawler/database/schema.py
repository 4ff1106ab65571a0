"""The schema of the Postgres store, and its versions.

Version 1 is `sql/schema.sql` with the views that follow it, and each file of `sql/migrations/`
makes the next. The latest version's functions, in `sql/functions.sql`, replace those of before.
"""

from __future__ import annotations

import logging
import time
from importlib.resources import files
from typing import TYPE_CHECKING

import psycopg2

from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.database.sql import read_sql

if TYPE_CHECKING:
    from collections.abc import Callable

    # Psycopg2 writes its classes in small letters.
    from psycopg2.extensions import connection as Connection  # noqa: N812

logger = logging.getLogger(__name__)

_LOCK = 7_303_170_117_561_344_000
"""The advisory lock that is held while a schema is changed: a number that no other program uses."""
_PAUSE_SECONDS = 0.5
"""Seconds between two tries to change a schema that others use."""
_REMIND_SECONDS = 10.0


def schema_versions() -> list[str]:
    """Return the SQL of each version of the schema, from an empty database on."""
    folder = files("moviecrawler.database.sql").joinpath("migrations")
    later = sorted(folder.iterdir(), key=lambda script: script.name)
    scoreboard = f"CREATE VIEW scoreboard AS {read_sql('scoreboard.sql')};"
    first = [
        read_sql("schema.sql"),
        scoreboard,
        read_sql("part_scores.sql"),
        read_sql("analysis.sql"),
    ]
    scripts = ["\n".join(first), *(script.read_text("utf-8") for script in later)]
    scripts[-1] += read_sql("functions.sql")
    return scripts


def update_schema(connection: Connection, is_ending: Callable[[], bool] = lambda: False) -> None:
    """Update a database to this version's schema in one transaction.

    Of processes that start together, one does it.

    Raises ConfigurationError when the database is not in UTF-8 or has a schema that this version
    doesn't know, TransientStoreError when this process is shutting down while it waits for others.
    """
    began = time.monotonic()
    reminded = began
    while True:
        try:
            with connection, connection.cursor() as cursor:
                return _update(cursor)
        except (psycopg2.errors.LockNotAvailable, psycopg2.errors.DeadlockDetected) as error:
            reason = " ".join(str(error).split())
        if is_ending():
            raise TransientStoreError(
                f"other processes use the tables whose schema is to be changed: {reason}"
            )
        if time.monotonic() - reminded >= _REMIND_SECONDS:
            reminded = time.monotonic()
            logger.warning(
                "Waiting %.0f s to change the database's schema, which is in use: %s",
                reminded - began,
                reason,
            )
        time.sleep(_PAUSE_SECONDS)


def _update(cursor: psycopg2.extensions.cursor) -> None:
    versions = schema_versions()
    if _current_version(cursor) == len(versions):
        return
    cursor.execute("SHOW server_encoding")
    ((encoding,),) = cursor.fetchall()
    if encoding != "UTF8":
        raise ConfigurationError(
            f"the database that DATABASE_URL names is in {encoding}; create one with"
            " ENCODING 'UTF8' TEMPLATE template0"
        )
    # Readers lock tables in another order: in a deadlock this change must give way, so its timeout
    # is below `deadlock_timeout` (1 s).
    cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '500ms'")
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    current = _current_version(cursor)
    if not 0 <= current <= len(versions):
        raise ConfigurationError(
            f"the database that DATABASE_URL names has another schema (version {max(current, 0)})"
            f" than this version of moviecrawler ({len(versions)}); dump it, name a new database,"
            " and fill that from the dump or by scrapy replay"
        )
    if current:
        cursor.execute("SELECT lock_titles()")  # writers wait until the schema is changed
    for version, script in enumerate(versions[current:], current + 1):
        cursor.execute(script)
        cursor.execute("UPDATE schema_version SET version = %s", (version,))


def _current_version(cursor: psycopg2.extensions.cursor) -> int:
    """Return the version of the database's schema.

    It is 0 for an empty database, and -1 for another program's.
    """
    # Not to_regclass, which may answer from a cache that lacks the tables that another process has
    # made while this one waited.
    cursor.execute(
        "SELECT relname FROM pg_class"
        " WHERE relname IN ('schema_version', 'records') AND pg_table_is_visible(oid)"
    )
    found = {name for (name,) in cursor.fetchall()}
    if "schema_version" not in found:
        return -1 if found else 0
    cursor.execute("SELECT version FROM schema_version")
    ((version,),) = cursor.fetchall()
    return int(version)
