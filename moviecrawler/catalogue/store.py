"""The catalogue in Postgres: what lists name, what is boosted, and which sites have refused us.

Everything here waits for the database: call it in a thread, never in the event loop. A database belongs to one thread at a time.
Claims are in `claims.py`, outcomes in `outcomes.py`. Every function raises TransientStoreError when the database can't be used now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.catalogue.rows import Sighting
from moviecrawler.catalogue.slugs import slug_key
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.connection import Database, as_json, open_database, storable
from moviecrawler.errors import ConfigurationError
from moviecrawler.urls import part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from scrapy.settings import BaseSettings

    from moviecrawler.catalogue.rows import IdSource
    from moviecrawler.items import Site

_SIGHT, _TRENDING, _FETCHED = (read_sql(f"{name}.sql") for name in ("sight", "trending", "fetched_since"))
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


def hasten_series(database: Database, now: datetime) -> int:
    """Have series that run fetched every week, as episodes that were imported may say that they do; return on how many sites."""
    with database.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        cursor.execute("SELECT hasten_series(NULL, %s)", (now,))
        return int(cursor.fetchone()[0])


def fetched_since(database: Database, site: Site, since: datetime) -> int:
    """Return of how many titles the site was asked since then, and gave the page or said that it has none."""
    with database.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        cursor.execute(_FETCHED, {"site": site, "since": since})
        return int(cursor.fetchone()[0])


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
    """Keep what a list page names.

    The titles of a list of what is popular today are boosted, the first ones most. IMDb's are added when they are not
    known; which titles the other sites' are is found out when these are looked for there.
    A season or an episode stands for its series: where that is says its own place.
    """
    seen = {each.site_id: each for each in (_of_whole_title(site, sighting) for sighting in sightings)}
    rows = [
        {
            "n": n,
            "site_id": storable(each.site_id),
            "key": slug_key(storable(each.site_id)),
            "title": storable(each.title or "") or None,
            "year": each.year,
            "kind": each.kind,
        }
        for n, each in enumerate(seen.values())
    ]
    values = {"site": site, "rows": as_json(rows), "source": source, "now": now, "count": len(rows)}
    with database.transaction() as cursor:
        if trending:
            cursor.execute("SELECT lock_titles()")
            cursor.execute(_TRENDING, values)
        if site != "imdb":
            cursor.execute(_SIGHT, values)
        if source == "sitemap":
            cursor.execute(_READ, (f"{site} sitemap", now))


def _of_whole_title(site: Site, sighting: Sighting) -> Sighting:
    part = part_of_series(site, sighting.site_id)
    return sighting if part is None else Sighting(part.series_id)
