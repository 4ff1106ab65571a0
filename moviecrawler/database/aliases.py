"""Reads aliases: ids that sites have given up for others. The stores write them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import TransientStoreError
from moviecrawler.database.records import text_of
from moviecrawler.database.sqlite import SqliteTables, read_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from scrapy.settings import BaseSettings

    from moviecrawler.sites import Site

_VALID_FOR = timedelta(days=90)
"""Time after which an old id is requested once more: its site may have given it to another
title."""
_VALID = "SELECT old_id, new_id FROM aliases WHERE site = {mark} AND since > {mark}"
_NO_TABLE = "no such table"
"""In SQLite's message about a database that no crawl of this version has opened yet."""


def valid_aliases(settings: BaseSettings, site: Site, now: datetime) -> dict[str, str]:
    """Return the current id of a site's titles by each former id of the last 90 days.

    They are in the database that DATABASE_URL names, or without one in the embedded database. This
    blocks: call it in a thread. Raises TransientStoreError.
    """
    since = text_of(now - _VALID_FOR)
    if url := settings.get("DATABASE_URL"):
        # Import Postgres' client.
        from moviecrawler.database.connection import Database  # noqa: PLC0415
        from moviecrawler.database.postgres import PostgresTables  # noqa: PLC0415

        with closing(Database(url)) as database, database.transaction() as cursor:
            return dict(PostgresTables(cursor).select(_VALID, (), site, since))
    try:
        with closing(read_sqlite(Path(settings["DATA_DIR"]))) as connection:
            return dict(SqliteTables(connection).select(_VALID, (), site, since))
    except FileNotFoundError:
        return {}
    except sqlite3.Error as error:
        if _NO_TABLE in str(error):
            return {}
        raise TransientStoreError(str(error)) from error


def embedded_aliases(connection: sqlite3.Connection) -> dict[Site, dict[str, str]]:
    """Return all aliases of the embedded database, by site."""
    return by_site(connection.execute("SELECT site, old_id, new_id FROM aliases"))


def by_site(rows: Iterable[tuple[Site, str, str]]) -> dict[Site, dict[str, str]]:
    """Return aliases by site: the current id by each former one."""
    aliases: dict[Site, dict[str, str]] = defaultdict(dict)
    for site, old_id, new_id in rows:
        aliases[site][old_id] = new_id
    return aliases
