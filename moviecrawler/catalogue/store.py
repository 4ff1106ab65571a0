"""The catalogue in Postgres: what lists name, what is boosted, and which sites have refused us.

Everything here waits for the database: call it in a thread, never in the event loop. A database belongs to one thread at a time.
Claims are in `claims.py`, outcomes in `outcomes.py`. Every function raises TransientStoreError when the database can't be used now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.catalogue.slugs import slug_key
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.connection import Database, as_json, open_database, storable
from moviecrawler.errors import ConfigurationError
from moviecrawler.urls import part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from scrapy.settings import BaseSettings

    from moviecrawler.catalogue.rows import IdSource, Sighting
    from moviecrawler.items import Site

_SIGHT = read_sql("sight.sql")
_TRENDING = (
    "SELECT boost_title_ids(array_agg(s.title_id), (1 - n / %(count)s)::real, %(now)s)"
    " FROM unnest(%(ids)s::text[]) WITH ORDINALITY AS r (site_id, n) JOIN title_sites s USING (site_id)"
    " WHERE s.site = %(site)s GROUP BY n"
)
"""Boosts what a list of what is popular names, the first most."""
_NAMED = (
    "SELECT s.site::text, s.site_id, s.title_id FROM title_sites s"
    " JOIN unnest(%s::site[], %s::text[]) AS named (site, site_id) USING (site, site_id)"
)
_READ = (
    "INSERT INTO imports (source, version, rows_done, finished_at) VALUES (%s, '', 0, %s)"
    " ON CONFLICT (source) DO UPDATE SET finished_at = excluded.finished_at"
)
"""Notes that a sitemap was read, so that titles are looked for anew that it may name."""


def open_catalogue(settings: BaseSettings) -> Database:
    """Return the database that DATABASE_URL names; it is connected with its first use.

    Raises ConfigurationError when none is named.
    """
    url = settings.get("DATABASE_URL")
    if not url:
        raise ConfigurationError(
            "DATABASE_URL is not set, and the catalogue is in Postgres; set it to one such as"
            " postgresql://user:password@localhost:5432/movies"
        )
    return Database(lambda: open_database(url))


def boost(
    database: Database, titles: Sequence[tuple[Site, str]], weight: float, now: datetime
) -> list[tuple[Site, str]]:
    """Have titles fetched on all sites before others, named by one site's ids; return those that are not known."""
    with database.transaction() as cursor:
        cursor.execute("SELECT lock_titles()")
        cursor.execute(_NAMED, ([site for site, _ in titles], [site_id for _, site_id in titles]))
        known = {(row.site, row.site_id): row.title_id for row in cursor.fetchall()}
        cursor.execute("SELECT boost_title_ids(%s, %s, %s)", (sorted(set(known.values())), weight, now))
    return [title for title in titles if title not in known]


def pause(database: Database, site: Site, until: datetime, reason: str) -> None:
    """Have nothing claimed of a site until then."""
    with database.transaction() as cursor:
        cursor.execute(
            "INSERT INTO site_pauses AS p (site, until, reason) VALUES (%s, %s, %s) ON CONFLICT (site) DO UPDATE"
            " SET until = greatest(p.until, excluded.until), reason = excluded.reason",
            (site, until, storable(reason)),
        )


def paused(database: Database, site: Site, now: datetime) -> str | None:
    """Return why nothing may be claimed of a site, None when it may."""
    with database.transaction() as cursor:
        cursor.execute("SELECT reason FROM site_pauses WHERE site = %s AND until > %s", (site, now))
        found = cursor.fetchone()
        return None if found is None else str(found[0])


def sight(
    database: Database, site: Site, sightings: Iterable[Sighting], source: IdSource, *, trending: bool, now: datetime
) -> None:
    """Keep what a list page names, and boost what stands in a list of what is popular today.

    Which titles the other sites' are is found out when these are looked for there. A season or an episode stands for its series.
    """
    years: dict[str, int | None] = {}
    for each in sightings:
        part = part_of_series(site, each.site_id)
        years[storable(each.site_id if part is None else part.series_id)] = each.year if part is None else None
    with database.transaction() as cursor:
        if trending:
            cursor.execute("SELECT lock_titles()")
            cursor.execute(_TRENDING, {"site": site, "ids": list(years), "count": len(years) + 1.0, "now": now})
        if site != "imdb":
            rows = [{"site_id": site_id, "key": slug_key(site_id), "year": year} for site_id, year in years.items()]
            cursor.execute(_SIGHT, {"site": site, "rows": as_json(rows), "source": source})
        if source == "sitemap":
            cursor.execute(_READ, (f"{site} sitemap", now))
