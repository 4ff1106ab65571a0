"""The schema of the Postgres store, brought up to date by plain SQL files that are applied in order, once each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.errors import ConfigurationError
from moviecrawler.pipelines.sql import migrations

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 writes its classes in small letters

_LOCK = 7_303_170_117_561_344_000
"""Held while a database is migrated; any number that no other program takes."""


def migrate(connection: Connection) -> list[int]:
    """Apply what is missing in one transaction, and return its versions; of processes that start together, one does it.

    Raises ConfigurationError when the database can't hold every text, or belongs to a newer version of this project.
    """
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
        cursor.execute("SELECT version FROM schema_migrations")
        applied = {version for (version,) in cursor.fetchall()}
        if not applied <= known.keys():
            raise ConfigurationError(
                f"the database that DATABASE_URL names has schema version {max(applied)}, of which this version of"
                f" moviecrawler knows {max(known)}; update moviecrawler"
            )
        missing = [version for version in known if version not in applied]
        for version in missing:
            cursor.execute(known[version])
            cursor.execute("INSERT INTO schema_migrations (version) VALUES (%s)", (version,))
    return missing
