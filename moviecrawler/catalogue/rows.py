"""What sources of titles yield, what is known of a title, and which lists say what is popular. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from moviecrawler.items import Site, TitleKind  # noqa: TC001 - msgspec resolves annotations when it decodes what requests carry

State = Literal["never", "ok", "absent", "error", "blocked"]
"""How the last try to fetch a title from a site ended; `never` while there was none."""

Outcome = Literal["ok", "absent", "error", "blocked"]
"""How a try ends."""

PopularitySource = Literal["votes", "tmdb", "given"]
"""Where a popularity comes from: IMDb's votes, what TMDB says is watched now, or a person. A later one in this list takes the place of an
earlier one."""

IdSource = Literal["list", "sitemap", "joined", "wikidata", "page", "given"]
"""Where a title's id on a site comes from; a later one in this list takes the place of an earlier one.

`list`, `sitemap`: the site lists it, and the title fits. `joined`: its record is taken for this title's (`catalogue.matching.match_titles`). `page`:
its own page names the IMDb id. `given`: by hand.
"""


LARGEST_ID = 2**31 - 1
"""What the catalogue's numbers hold."""


@dataclass(slots=True, kw_only=True)
class ImportRow:
    """What a source knows of one title. Found by `imdb_id`, or by one of TMDB's ids where the source has no IMDb ids.

    A row with `imdb_id`, `title` and `kind` adds a title that is not known yet; any other only completes a known one.
    """

    imdb_id: str | None = None
    tmdb_id: int | None = None
    """Of a film. TMDB numbers films and series each from 1."""
    tmdb_series_id: int | None = None
    title: str | None = None
    original_title: str | None = None
    kind: TitleKind | None = None
    year: int | None = None
    end_year: int | None = None
    """Last year of a series."""
    tells_end_year: bool = False
    """Whether a series without `end_year` still runs, as IMDb's datasets say; else the source just doesn't tell."""
    runtime_minutes: int | None = None
    votes: int | None = None
    """On IMDb."""
    popularity: float | None = None
    """0 to 100, from `popularity_of_votes` or `popularity_of_tmdb`, or given; one decimal."""
    popularity_source: PopularitySource = "votes"
    site_ids: dict[Site, str] = field(default_factory=dict)
    """Ids on the sites beside IMDb."""
    id_source: IdSource = "given"
    """Where these come from."""
    id_confidence: float = 0.0
    """What `catalogue.matching` counts for that evidence, such as 2 for Wikidata and 4 for an id given by hand."""


@dataclass(slots=True, kw_only=True)
class TitleFacts:
    """What is known of a title, as far as titles are compared by it. A request carries it as plain data."""

    imdb_id: str | None = None
    title: str
    original_title: str | None = None
    kind: TitleKind | None = None
    """None for one that fits every kind."""
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
    """Under which it is known too."""
    votes: int | None = None
    """On IMDb."""
    rivals: list[TitleFacts] = field(default_factory=list)
    """Titles of the same name that the site's page may be of as well; without rivals of their own."""


class Sighting(NamedTuple):
    """A title that a list or sitemap of a site names."""

    site_id: str
    year: int | None = None


SITEMAP = "sitemap"
"""What the names of a site's sitemaps begin with among its lists."""
