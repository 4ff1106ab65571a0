"""Titles as pages name them, and the seasons that a series' page lists."""

from collections.abc import Iterable
from typing import NamedTuple, get_args

from moviecrawler.extract import linked_data
from moviecrawler.extract.dig import JsonObject, get_text
from moviecrawler.extract.embedded import stated_addresses
from moviecrawler.extract.findings import Findings, ShapeError, attempt, first_of_each
from moviecrawler.items import Entry, Movie, Role, Site, TitleKind
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.fields import unknown_fields_of
from moviecrawler.sites.ids import (
    id_in_url,
    imdb_id_of,
    kind_of_id,
    part_of_series,
    site_of,
    title_url,
)

MOST_SEASONS = 500
"""The most seasons of one series; the longest known has about a hundred."""
_ROLES = get_args(Role)
LONGEST_TITLE = 500
"""The most characters of a title; a longer one comes of an element that was never closed."""


def new_title(
    site: Site,
    site_id: str,
    title: str,
    kind: TitleKind | None = None,
    series_title: str | None = None,
) -> Movie:
    """Return a title with what its id says of it; `kind` is given where ids don't state it."""
    movie = Movie(
        site=site,
        site_id=site_id,
        url=title_url(site, site_id),
        title=title,
        kind=kind or kind_of_id(site, site_id) or "other",
        imdb_id=site_id if site == ID_SITE else None,
    )
    if part := part_of_series(site, site_id):
        movie.series_id = part.series_id
        movie.series_title = series_title
        movie.season = part.season
        movie.episode = part.episode
    return movie


def stated_title(data: object, *path: str) -> str | None:
    """Return the title at `path`. Raises ShapeError for a text that is too long for one."""
    title = get_text(data, *path)
    if title is not None and len(title) > LONGEST_TITLE:
        raise ShapeError("title", f"one of {len(title)} characters")
    return title


def new_entry(site: Site, site_id: str | None, title: str | None) -> Entry:
    """Return a row of a list, with what its id says of it.

    Raises ShapeError when it has no id or title.
    """
    if site_id is None or not title:
        raise ShapeError("entries", f"a row with the id {site_id!r} and the title {title!r}")
    part = part_of_series(site, site_id)
    return Entry(
        site_id=site_id,
        title=title,
        kind=kind_of_id(site, site_id),
        season=part.season if part else None,
        episode=part.episode if part else None,
    )


def parse_imdb_id(value: object, *path: str) -> str | None:
    """Return an id of IMDb. Raises ShapeError for another text."""
    text = get_text(value, *path)
    imdb_id = imdb_id_of(text or "")
    if text is not None and imdb_id is None:
        raise ShapeError("site_id", f"{text!r} is not an id of IMDb")
    return imdb_id


class LinkedTitle(NamedTuple):
    """The title that a page is about, by what other programs read in it."""

    site_id: str
    name: str
    linked: JsonObject
    """Its JSON-LD."""


def title_in(site: Site, body: bytes) -> LinkedTitle:
    """Return the title that a page is about.

    Raises ShapeError when it names none, or several.
    """
    linked = linked_data.title_of(body)
    if not linked:
        raise ShapeError(
            "page", "neither the data nor the JSON-LD of a title is there in a form that is known"
        )
    own = (address for address in stated_addresses(body) if site_of(address) == site)
    address = attempt(get_text, linked, "url")
    ids = {id_in_url(site, address) for address in (*own, address)} - {None}
    name = stated_title(linked, "name")
    if len(ids) != 1 or name is None:
        raise ShapeError(
            "title" if ids else "site_id", f"JSON-LD of {len(ids)} titles, named {name!r}"
        )
    return LinkedTitle(str(ids.pop()), name, linked)


def finished(findings: Findings) -> Movie:
    """Return the movie of a title's page, with its unknown fields named."""
    movie = findings.movie
    movie.credits.sort(key=lambda credit: _ROLES.index(credit.role))
    if movie.kind in {"movie", "series"}:
        # JSON-LD of a series on Rotten Tomatoes names the series itself as `partOfSeries`.
        movie.series_title = None
    movie.unknown_fields = unknown_fields_of(movie, findings.absent)
    return movie


def listed_seasons(series: Movie, rows: Iterable[Movie | None]) -> list[Movie]:
    """Return the seasons that a series' page lists in order, and only the first row of each.

    Rows that name no season of that series are left out. A list states no absence.
    """
    seasons = first_of_each(
        (
            row
            for row in rows
            if row is not None and row.kind == "season" and row.series_id == series.site_id
            if len(row.title) <= LONGEST_TITLE
        ),
        lambda season: season.site_id,
    )
    if len(seasons) > MOST_SEASONS:
        raise ShapeError("seasons", f"{len(seasons):,} seasons; {MOST_SEASONS} are the most")
    for season in seasons:
        season.series_title = series.title
        season.source = "list"
        season.unknown_fields = unknown_fields_of(season)
    return seasons
