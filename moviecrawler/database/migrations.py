"""The schema of the Postgres store, brought up to date by plain SQL files that are applied in order, once each."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import psycopg2

from moviecrawler.database.sql import is_additive, migrations
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 writes its classes in small letters

logger = logging.getLogger(__name__)

_LOCK = 7_303_170_117_561_344_000
"""Held while a database is migrated; any number that no other program takes."""
_PAUSE_SECONDS = 1.0
"""Seconds for which a migration lets others read before it is tried again."""


def migrate(connection: Connection) -> list[int]:
    """Apply what is missing in one transaction, and return its versions; of processes that start together, one does it.

    Raises ConfigurationError when the database can't hold every text, or belongs to a newer version of this
    project that this one can't work with.
    """
    told = False
    while True:
        try:
            return _migrate(connection)
        except (psycopg2.errors.LockNotAvailable, psycopg2.errors.DeadlockDetected) as error:
            if not told:
                reason = " ".join(str(error).split())
                logger.warning("The database is in use; its migration is tried until it gets its tables: %s", reason)
            told = True
        time.sleep(_PAUSE_SECONDS)


def _migrate(connection: Connection) -> list[int]:
    known = migrations()
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW server_encoding")
        encoding = cursor.fetchall()[0][0]
        if encoding != "UTF8":
            raise ConfigurationError(
                f"the database that DATABASE_URL names is in {encoding}; create one with ENCODING 'UTF8' TEMPLATE template0"
            )
        # A migration of large tables takes its time, and so does waiting for one that another process makes.
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        # IF NOT EXISTS would ask for the right to create tables even when there is nothing left to do.
        cursor.execute("SELECT to_regclass('schema_migrations') IS NULL")
        if cursor.fetchall()[0][0]:
            cursor.execute(
                "CREATE TABLE schema_migrations"
                " (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
            )
        # The column came later.
        cursor.execute("SELECT version, coalesce(to_jsonb(m) ->> 'additive', 'false') FROM schema_migrations m")
        applied = dict(cursor.fetchall())
        _check_newer(
            {version: additive == "true" for version, additive in applied.items() if version not in known}, known
        )
        missing = [version for version in known if version not in applied]
        if missing:
            # Processes of the version before write meanwhile. They wait for this lock as long as it takes, whereas a batch that waited
            # for a table would be taken for one that is too slow, or lock it in another order.
            cursor.execute("SELECT to_regproc('lock_titles') IS NOT NULL")
            if cursor.fetchall()[0][0]:
                cursor.execute("SELECT lock_titles()")
            # Readers take no such lock, and lock tables in an order of their own. This is shorter than the server's `deadlock_timeout` (1 s),
            # so that the migration gives way, and no reader fails.
            cursor.execute("SET LOCAL lock_timeout = '500ms'")
            cursor.execute(
                "ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS additive boolean NOT NULL DEFAULT false"
            )
        for version in missing:
            cursor.execute(known[version])
            cursor.execute(
                "INSERT INTO schema_migrations (version, additive) VALUES (%s, %s)",
                (version, is_additive(known[version])),
            )
    return missing


def _check_newer(newer: Mapping[int, bool], known: Collection[int]) -> None:
    """Go on with a schema of a later version when all that came is additive; else raise ConfigurationError."""
    if not newer:
        return
    if not all(newer.values()):
        first = min(version for version, additive in newer.items() if not additive)
        raise ConfigurationError(
            f"the database that DATABASE_URL names has schema version {max(newer)}, of which this version of moviecrawler"
            f" knows {max(known)}, and it can't work with version {first}; update moviecrawler, or go back as"
            " moviecrawler/pipelines/README.md says"
        )
    message = "The database has schema version %d, of which this version of moviecrawler knows %d; it works with what came since"
    logger.warning(message, max(newer), max(known))
