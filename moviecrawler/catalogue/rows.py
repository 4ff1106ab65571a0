"""The data types of the catalogue: imported rows, facts of titles, and titles on lists. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

# Msgspec resolves annotations when it decodes what requests carry.
from moviecrawler.items import Site, TitleKind  # noqa: TC001

State = Literal["never", "ok", "absent", "error", "blocked"]
"""The last outcome of a title on a site; `never` while there was none."""

Outcome = Literal["ok", "absent", "error", "blocked"]
"""How fetching a title from a site ended."""

PopularitySource = Literal["votes", "tmdb", "given"]
"""Where a popularity comes from: IMDb's votes, TMDB, or a person. A later one in this list replaces
an earlier one."""

IdSource = Literal["list", "sitemap", "joined", "wikidata", "page", "given"]
"""Where a title's id on a site comes from; a later one in this list replaces an earlier one.

`list`, `sitemap`: the site lists it, and the title fits. `joined`: its record was matched
(`catalogue.matching.match_titles`). `page`: its page names the IMDb id. `given`: by hand.
"""


LARGEST_ID = 2**31 - 1
"""The largest integer in the catalogue's tables."""


@dataclass(slots=True, kw_only=True)
class ImportRow:
    """A row of a source: one title, identified by `imdb_id` or by one of TMDB's ids.

    A row with `imdb_id`, `title` and `kind` adds an unknown title; any other row only completes a
    known one.
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
    """Points of `catalogue.comparing` for that source, such as 2 for Wikidata and 4 for an id given
    by hand."""


@dataclass(slots=True, kw_only=True)
class TitleFacts:
    """The facts by which titles are compared. A request carries them as plain data."""

    imdb_id: str | None = None
    title: str
    original_title: str | None = None
    kind: TitleKind | None = None
    """None when unknown; it then fits every kind."""
    year: int | None = None
    release_date: str | None = None
    """Begins with its year."""
    runtime_minutes: int | None = None
    end_year: int | None = None
    """Last year of a series; None while it runs, and where it is not known."""
    season: int | None = None
    episode: int | None = None
    season_count: int | None = None
    """Seasons of a series."""
    directors: list[str] = field(default_factory=list)
    """Of a series, its creators."""
    other_titles: list[str] = field(default_factory=list)
    """Other titles under which it is known."""
    votes: int | None = None
    """On IMDb."""
    rivals: list[TitleFacts] = field(default_factory=list)
    """Titles of the same name that the page may be of instead; they have no rivals of their own."""


class ListedTitle(NamedTuple):
    """A title that a list or sitemap of a site names."""

    site_id: str
    year: int | None = None


SITEMAP = "sitemap"
"""The beginning of the names of a site's sitemaps among its lists."""
