"""The data types of the catalogue: imported rows, and titles on lists. Pure."""

from __future__ import annotations

# Msgspec resolves annotations when it decodes what requests and spool files hold.
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003
from typing import Literal, NamedTuple

from moviecrawler.items import Site, TitleKind  # noqa: TC001
from moviecrawler.matching.facts import IdSource  # noqa: TC001

PopularitySource = Literal["votes", "tmdb", "given"]
"""Where a popularity comes from: IMDb's votes, TMDB, or a person. A later one in this list replaces
an earlier one."""


LARGEST_ID = 2**31 - 1
"""The largest integer in the catalogue's tables."""


@dataclass(slots=True, kw_only=True)
class ImportRow:
    """A row of a source: one title, identified by `imdb_id` or by one of TMDB's ids.

    A row with `imdb_id`, `title` and `kind` adds an unknown title, and so does one of a person with
    `imdb_id` alone. All other rows only complete known ones.
    """

    imdb_id: str | None = None
    tmdb_id: int | None = None
    """The id of a film. TMDB numbers films and series each from 1."""
    tmdb_series_id: int | None = None
    title: str | None = None
    original_title: str | None = None
    kind: TitleKind | None = None
    year: int | None = None
    end_year: int | None = None
    """Last year of a series."""
    tells_end_year: bool = False
    """Whether a series without `end_year` still runs, as in IMDb's datasets; otherwise the source
    may just lack it."""
    runtime_minutes: int | None = None
    votes: int | None = None
    """On IMDb."""
    popularity: float | None = None
    """0 to 100, from `popularity_of_votes` or `popularity_of_tmdb`, or given; one decimal."""
    popularity_source: PopularitySource = "votes"
    site_ids: dict[Site, str] = field(default_factory=dict)
    """Ids on the other sites than IMDb."""
    id_source: IdSource = "given"
    """The source of these ids."""
    id_confidence: float = 0.0
    """Points of `matching.comparing` for that source, such as 2 for Wikidata and 4 for an id given
    by hand."""


class ListedTitle(NamedTuple):
    """A title that a list or sitemap of a site names."""

    site_id: str
    year: int | None = None


@dataclass(slots=True, kw_only=True)
class Listed:
    """What a list page names."""

    site: Site
    titles: list[ListedTitle]
    source: IdSource
    trending: bool
    """Whether it is a list of popular titles."""
    at: datetime
    site_id: None = None


SITEMAP = "sitemap"
"""The beginning of the names of a site's sitemaps among its lists."""
