"""What a site's lists and sitemaps name, and who reads them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from moviecrawler.catalogue.rows import Sighting
from moviecrawler.catalogue.slugs import slug_key
from moviecrawler.database.connection import Database, as_json, storable
from moviecrawler.urls import part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from moviecrawler.catalogue.rows import IdSource
    from moviecrawler.items import Site

Reading = Literal["lists", "sitemap"]
"""What is read of a site beside its titles."""
_READING_TAKES = timedelta(hours=1)
"""The longest that others wait for the worker that reads a site's lists."""


class Sightings(Database):
    """Keeps what lists name."""

    def sight(
        self, site: Site, sightings: Iterable[Sighting], reading: Reading, *, trending: bool, pages: int, now: datetime
    ) -> int:
        """Keep what a list page names; return how many titles are new.

        The titles of a list of what is popular today are boosted, the first ones most. IMDb's are added when they are not
        known; which titles the other sites' are is found out when these are looked for there.
        A season or an episode stands for its series: where that is says its own place.
        `pages` is by how many the list pages grow that are still to be read, -1 for the last one.
        """
        seen = list(
            {each.site_id: each for each in (_of_whole_title(site, sighting) for sighting in sightings)}.values()
        )
        with self.transaction() as cursor:
            if trending:
                cursor.execute("SELECT lock_titles()")
            source: IdSource = "sitemap" if reading == "sitemap" else "list"
            arguments = {**sighted(site, seen, source, now), "weight": len(seen)}
            if site != "imdb":
                cursor.execute(SIGHT, arguments)
            added = 0
            if trending and site == "imdb":
                cursor.execute(_ADD_TRENDING, arguments)
                added = cursor.rowcount // 3
            if trending:
                cursor.execute(_SPARE_FETCHED, arguments)
                cursor.execute(_BOOST_TRENDING, arguments)
            cursor.execute(
                "UPDATE list_readings SET pages_open = greatest(pages_open + %s, 0) WHERE site = %s AND reading = %s",
                (pages, site, reading),
            )
        return added

    def begin_reading(self, site: Site, reading: Reading, pages: int, every: timedelta, now: datetime) -> bool:
        """Return whether this worker is to read a site's lists, of so many first pages: at most one in so long is."""
        with self.transaction() as cursor:
            cursor.execute(
                "INSERT INTO list_readings AS r (site, reading, began_at, pages_open) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (site, reading) DO UPDATE SET began_at = excluded.began_at, pages_open = excluded.pages_open"
                " WHERE r.began_at <= %s RETURNING true",
                (site, reading, now, pages, now - every),
            )
            return cursor.fetchone() is not None

    def is_reading(self, site: Site, now: datetime) -> bool:
        """Return whether a worker is reading the site's lists, so that ids may still be found there."""
        with self.transaction() as cursor:
            cursor.execute(
                "SELECT FROM list_readings WHERE site = %s AND pages_open > 0 AND began_at > %s",
                (site, now - _READING_TAKES),
            )
            return bool(cursor.rowcount)


SIGHT = """
INSERT INTO sightings AS s (site, site_id, key, title, year, source, seen_at)
SELECT %(site)s, r.site_id, r.key, r.title, r.year, %(source)s, %(now)s
FROM jsonb_to_recordset(%(rows)s) AS r (site_id text, key text, title text, year integer)
ON CONFLICT (site, site_id) DO UPDATE SET key = excluded.key, title = coalesce(excluded.title, s.title), year = coalesce(excluded.year, s.year),
    seen_at = excluded.seen_at,
    -- What the site lists is no longer a guess; least() passes over nulls.
    source = coalesce(least(nullif(s.source, 'guess'), nullif(excluded.source, 'guess')), 'guess')
"""
_ADD_TRENDING = """
WITH new AS (
    SELECT nextval(pg_get_serial_sequence('titles', 'title_id')) AS title_id, r.*
    FROM jsonb_to_recordset(%(rows)s) AS r (n integer, site_id text, title text, year integer, kind title_kind)
    WHERE r.title IS NOT NULL AND r.kind IS NOT NULL
        AND NOT EXISTS (SELECT FROM titles t WHERE t.imdb_id = r.site_id)
), added AS (
    INSERT INTO titles (title_id, imdb_id, title, kind, year)
    SELECT title_id, site_id, title, kind, year FROM new
)
INSERT INTO title_sites (title_id, site, site_id, id_source, id_verified)
SELECT n.title_id, s.site, CASE WHEN s.site = 'imdb' THEN n.site_id END,
    CASE WHEN s.site = 'imdb' THEN %(source)s::id_source END, s.site = 'imdb'
FROM new n CROSS JOIN unnest(enum_range(NULL::site)) AS s (site)
"""
# What is popular stays so for some days: pages that were fetched within the last week wait until it is over. Those that a person boosted don't.
_SPARE_FETCHED = """
UPDATE title_sites o SET boost_due = least(o.boost_due, o.last_success + interval '7 days'), boost = 0.000001
FROM jsonb_to_recordset(%(rows)s) AS r (site_id text)
JOIN title_sites s ON s.site = %(site)s AND s.site_id = r.site_id
WHERE o.title_id = s.title_id AND o.boost = 0 AND o.last_success > %(now)s::timestamptz - interval '7 days'
"""
# Boosted by their place on the list: the first one's weight is 1, the last one's almost 0.
_BOOST_TRENDING = """
SELECT boost_title_ids(array_agg(s.title_id), (1 - r.n::real / %(weight)s)::real, %(now)s)
FROM jsonb_to_recordset(%(rows)s) AS r (n integer, site_id text)
JOIN title_sites s ON s.site = %(site)s AND s.site_id = r.site_id
GROUP BY r.n
"""


def sighted(site: Site, seen: Sequence[Sighting], source: IdSource, now: datetime) -> dict[str, Any]:
    """Return the arguments of SIGHT."""
    rows = [
        {**each._asdict(), "key": slug_key(each.site_id), "n": n} for n, each in enumerate(map(storable_sighting, seen))
    ]
    return {"site": site, "rows": as_json(rows), "source": source, "now": now}


def _of_whole_title(site: Site, sighting: Sighting) -> Sighting:
    part = part_of_series(site, sighting.site_id)
    return sighting if part is None else Sighting(part.series_id)


def storable_sighting(sighting: Sighting) -> Sighting:
    """Return a sighting without what the database takes nowhere."""
    title = None if sighting.title is None else storable(sighting.title)
    return sighting._replace(site_id=storable(sighting.site_id), title=title or None)
