"""Seasons and episodes: what the readers of Metacritic and Rotten Tomatoes share.

These sites have pages of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.extract.findings import ShapeError, first_of_each
from moviecrawler.items import Movie
from moviecrawler.sites.fields import unknown_fields_of
from moviecrawler.sites.ids import part_of_series, title_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.items import Score, Site, TitleKind

MOST_SEASONS = 500
"""The most seasons of one series; the longest known has about a hundred."""
LONGEST_TITLE = 500
"""The most characters of a season's title; a longer one comes of an element that was never
closed."""


def new_title(
    site: Site, site_id: str, title: str, kind: TitleKind, series_title: str | None = None
) -> Movie:
    """Return a title with what its id says of it.

    `kind` is that of a whole title, and the id says which part of a series it is.
    """
    part = part_of_series(site, site_id)
    return Movie(
        site=site,
        site_id=site_id,
        url=title_url(site, site_id),
        title=title,
        kind=part.kind if part else kind,
        imdb_id=site_id if site == "imdb" else None,
        series_id=part.series_id if part else None,
        series_title=series_title if part else None,
        season=part.season if part else None,
        episode=part.episode if part else None,
    )


def listed_season(
    series: Movie,
    site_id: str | None,
    title: str | None,
    scores: Iterable[Score] = (),
    *,
    year: int | None = None,
    release_date: str | None = None,
    episode_count: int | None = None,
) -> Movie | None:
    """Return a season as its series' page lists it.

    Returns None when the row names no season of that series. A list states no absence.
    """
    part = part_of_series(series.site, site_id) if site_id else None
    if site_id is None or part is None or part.kind != "season" or part.series_id != series.site_id:
        return None
    if title and len(title) > LONGEST_TITLE:
        return None
    season = new_title(series.site, site_id, title or series.title, "season", series.title)
    season.year = year
    season.release_date = release_date
    season.episode_count = episode_count
    season.scores = list(scores)
    season.source = "list"
    season.unknown_fields = unknown_fields_of(season)
    return season


def one_of_each_season(seasons: Iterable[Movie | None]) -> list[Movie]:
    """Return the seasons that a page lists in order, and only the first row of each."""
    listed = first_of_each(filter(None, seasons), lambda season: season.site_id)
    if len(listed) > MOST_SEASONS:
        raise ShapeError("seasons", f"{len(listed):,} seasons; {MOST_SEASONS} are the most")
    return listed
