"""The catalogue in Postgres: listed titles and boosts.

`due.py` and `outcomes.py` have the rest.

Every function blocks on the database: call it in a thread, and use a `Database` in one thread at a
time. Every function raises TransientStoreError when the database can't be used now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.connection import Cursor, Database, as_json, storable
from moviecrawler.matching.slugs import slug_key
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.ids import part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from scrapy.settings import BaseSettings

    from moviecrawler.catalogue.rows import Listed
    from moviecrawler.sites import Site

_RECORD_LISTED = read_sql("record_listed.sql")
_TRENDING = (
    "SELECT boost_title_ids(array_agg(s.title_id), (1 - n / %(count)s)::real, %(now)s)"
    " FROM unnest(%(ids)s::text[]) WITH ORDINALITY AS r (site_id, n)"
    " JOIN title_sites s USING (site_id)"
    " WHERE s.site = %(site)s GROUP BY n"
)
"""Boosts the titles of a list of popular titles, the first one most."""
_NAMED = (
    "SELECT s.site, s.site_id, s.title_id FROM title_sites s"
    " JOIN unnest(%s::text[], %s::text[]) AS named (site, site_id) USING (site, site_id)"
)
_READ = (
    "INSERT INTO imports (source, version, rows_done, finished_at) VALUES (%s, '', 0, %s)"
    " ON CONFLICT (source) DO UPDATE SET finished_at = excluded.finished_at"
)
"""Notes that a sitemap was read, so that titles without an id are searched again."""


def open_catalogue(settings: BaseSettings) -> Database:
    """Return the database that DATABASE_URL names; it connects on first use.

    Raises ConfigurationError when DATABASE_URL is not set.
    """
    url = settings.get("DATABASE_URL")
    if not url:
        raise ConfigurationError(
            "DATABASE_URL is not set, and the catalogue is in Postgres; set it to one such as"
            " postgresql://user:password@localhost:5432/movies"
        )
    return Database(url)


def boost(cursor: Cursor, title_ids: Iterable[int], weight: float, now: datetime) -> int:
    """Boost titles, so that all sites' pages of them are fetched first.

    Return how many of them there are.
    """
    cursor.execute("SELECT lock_titles()")  # stores lock the same rows in another order
    ids = sorted(set(title_ids))
    cursor.execute("SELECT boost_title_ids(%s::bigint[], %s, %s)", (ids, weight, now))
    ((known,),) = cursor.fetchall()
    return int(known)


def boost_named(
    cursor: Cursor, titles: Sequence[tuple[Site, str]], weight: float, now: datetime
) -> list[tuple[Site, str]]:
    """Boost titles that are named by ids of sites. Return the unknown ones."""
    cursor.execute("SELECT lock_titles()")  # else another process could merge titles meanwhile
    cursor.execute(_NAMED, ([site for site, _ in titles], [site_id for _, site_id in titles]))
    known = {(site, site_id): title_id for site, site_id, title_id in cursor.fetchall()}
    boost(cursor, known.values(), weight, now)
    return [title for title in titles if title not in known]


def write_listed(cursor: Cursor, listed: Listed) -> None:
    """Store the ids that a list page names as candidates, in a transaction under `lock_titles`.

    The titles of a list of popular ones are boosted. Which titles the ids belong to is decided when
    these are searched. A season or an episode counts as its series.
    """
    site = listed.site
    years: dict[str, int | None] = {}
    for title in listed.titles:
        part = part_of_series(site, title.site_id)
        if part is None:
            years[storable(title.site_id)] = title.year
        else:
            years[storable(part.series_id)] = None
    if listed.trending:
        count = len(years) + 1.0
        terms = {"site": site, "ids": list(years), "count": count, "now": listed.at}
        cursor.execute(_TRENDING, terms)
    if site != ID_SITE:
        rows = [
            {"site_id": site_id, "key": slug_key(site, site_id), "year": year}
            for site_id, year in years.items()
        ]
        values = {"site": site, "rows": as_json(rows), "source": listed.source}
        cursor.execute(_RECORD_LISTED, values)
    if listed.source == "sitemap":
        cursor.execute(_READ, (f"{site} sitemap", listed.at))
