"""Says which titles of a site were stored lately, for `skip_newer_than`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import TransientStoreError
from moviecrawler.database.sqlite import read_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from scrapy.settings import BaseSettings

    from moviecrawler.sites import Site

_NEWER = """
SELECT 1 FROM records
WHERE site = {0} AND site_id = {0} AND scraped_at > {0} AND source <> 'list'
"""


def fresh_ids(settings: BaseSettings, site: Site, ids: Iterable[str], since: datetime) -> set[str]:
    """Return those of the ids whose title's page was stored after a time.

    It is so in each of the embedded database and Postgres that the settings name. This blocks: call
    it in a thread. Raises MovieCrawlerError.
    """
    fresh = set(ids)
    if settings.getbool("SQLITE_ENABLED"):
        fresh = _of_sqlite(Path(settings["DATA_DIR"]), site, fresh, since)
    url = settings.get("DATABASE_URL")
    if url and fresh:
        # Imports Postgres' client.
        from moviecrawler.database.connection import Database  # noqa: PLC0415

        query = _NEWER.format("%s")
        with closing(Database(url)) as database, database.transaction() as cursor:

            def is_fresh(site_id: str) -> bool:
                cursor.execute(query, (site, site_id, since))
                return cursor.fetchone() is not None

            fresh = set(filter(is_fresh, fresh))
    return fresh


def _of_sqlite(folder: Path, site: Site, ids: set[str], since: datetime) -> set[str]:
    query = _NEWER.format("?")
    time = since.astimezone(UTC).isoformat()
    try:
        with closing(read_sqlite(folder)) as connection:
            return {i for i in ids if connection.execute(query, (site, i, time)).fetchone()}
    except FileNotFoundError:
        return set()
    except sqlite3.Error as error:
        raise TransientStoreError(f"the embedded database can't be read: {error}") from error
