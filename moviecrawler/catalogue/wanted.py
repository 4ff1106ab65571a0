"""What is known of titles that pages are compared with, and of their rivals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.lanes import votes_of_popularity
from moviecrawler.catalogue.rows import Wanted
from moviecrawler.catalogue.sql import read_sql

if TYPE_CHECKING:
    from collections.abc import Collection

    from moviecrawler.items import Site

_WANTED = read_sql("wanted.sql")
_RIVALS = read_sql("rivals.sql")
_MOST_RIVALS = 10
"""Titles of one name that a page is compared with."""


def wanted_titles(cursor: Any, site: Site, titles: Collection[int]) -> dict[int, Wanted]:
    """Return what a page of the site is compared with, by the ids of those titles that have a name.

    Among it are the titles of the same name that the page may be of as well.
    """
    if not titles:
        return {}
    cursor.execute(_RIVALS, {"titles": list(titles), "site": site, "most": _MOST_RIVALS})
    rivals: dict[int, list[int]] = {}
    for row in cursor.fetchall():
        rivals.setdefault(row.of_title, []).append(row.title_id)
    known = {title for others in rivals.values() for title in others}
    cursor.execute(_WANTED, {"titles": sorted(known.union(titles))})
    rows = {row.title_id: row for row in cursor.fetchall()}
    return {
        title: _wanted(rows[title], [_wanted(rows[other], []) for other in rivals.get(title, [])])
        for title in titles
        if title in rows
    }


def votes_of(row: Any) -> int | None:
    """Return how many people voted on a title on IMDb, by its page or else about as many as the datasets' votes make of its popularity."""
    if row.votes is not None:
        return int(row.votes)
    return None if row.votes_popularity is None else votes_of_popularity(row.votes_popularity)


def _wanted(row: Any, rivals: list[Wanted]) -> Wanted:
    return Wanted(
        imdb_id=row.imdb_id,
        title=row.title,
        original_title=row.original_title,
        kind=row.kind,
        year=row.year,
        end_year=row.end_year,
        season_count=row.season_count,
        runtime_minutes=row.runtime_minutes,
        directors=row.directors,
        other_titles=row.other_titles,
        votes=votes_of(row),
        rivals=rivals,
    )
