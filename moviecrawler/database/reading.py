"""Opens the database that holds what is stored, to read it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.database.schema import is_up_to_date
from moviecrawler.database.sqlite import FILE, SqliteTables, open_sqlite, read_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.settings import BaseSettings

    from moviecrawler.database.schema import SchemaTables


@contextmanager
def reading(settings: BaseSettings) -> Iterator[SchemaTables]:
    """Give the tables that DATABASE_URL names, or those of the embedded database.

    One of an older version is brought up to date. Raises FileNotFoundError when there is no
    embedded one, ConfigurationError, and the same as `Database`.
    """
    if url := settings.get("DATABASE_URL"):
        # Postgres' client takes long to import.
        from moviecrawler.database.connection import Database  # noqa: PLC0415
        from moviecrawler.database.postgres import PostgresTables  # noqa: PLC0415

        with closing(Database(url)) as database, database.transaction() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            yield PostgresTables(cursor)
        return
    if not settings.getbool("SQLITE_ENABLED", True):
        raise ConfigurationError(
            "SQLITE_ENABLED is 0, so there is no embedded database; set DATABASE_URL"
        )
    with reading_sqlite(Path(settings.get("DATA_DIR", "data"))) as tables:
        yield tables


@contextmanager
def reading_sqlite(folder: Path) -> Iterator[SqliteTables]:
    """Give the tables of a folder's embedded database; see `reading`."""
    name = str(folder / FILE)
    try:
        with closing(read_sqlite(folder)) as connection:
            is_old = not is_up_to_date(SqliteTables(connection, name))
        if is_old:
            open_sqlite(folder).close()
        with closing(read_sqlite(folder)) as connection:
            yield SqliteTables(connection, name)
    except sqlite3.DatabaseError as error:
        raise ConfigurationError(
            f"the database in {folder} can't be read ({error}); if it is damaged, move it away"
        ) from error
