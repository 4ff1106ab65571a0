"""Says which titles of a site were stored lately, for `skip_newer_than`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import TransientStoreError
from moviecrawler.database.records import text_of
from moviecrawler.database.sqlite import SqliteTables, read_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from scrapy.settings import BaseSettings

    from moviecrawler.database.records import Tables
    from moviecrawler.sites import Site

_NEWER = """
SELECT site_id FROM records
WHERE site = {mark} AND scraped_at > {mark} AND source <> 'list' AND site_id {ids}
"""


def fresh_ids(settings: BaseSettings, site: Site, ids: Iterable[str], since: datetime) -> set[str]:
    """Return those of the ids whose title's page was stored after a time.

    It is so in each of the embedded database and Postgres that the settings name. This blocks: call
    it in a thread. Raises MovieCrawlerError.
    """
    fresh = set(ids)
    if settings.getbool("SQLITE_ENABLED"):
        try:
            with closing(read_sqlite(Path(settings["DATA_DIR"]))) as connection:
                fresh = _newer(SqliteTables(connection), site, fresh, since)
        except FileNotFoundError:
            return set()
        except sqlite3.Error as error:
            raise TransientStoreError(f"the embedded database can't be read: {error}") from error
    url = settings.get("DATABASE_URL")
    if url and fresh:
        # Import Postgres' client.
        from moviecrawler.database.connection import Database  # noqa: PLC0415
        from moviecrawler.database.postgres import PostgresTables  # noqa: PLC0415

        with closing(Database(url)) as database, database.transaction() as cursor:
            fresh = _newer(PostgresTables(cursor), site, fresh, since)
    return fresh


def _newer(tables: Tables, site: Site, ids: set[str], since: datetime) -> set[str]:
    return {site_id for (site_id,) in tables.select(_NEWER, ids, site, text_of(since))}
