"""The facts by which titles are compared. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

# Msgspec resolves annotations when it decodes what requests carry.
from moviecrawler.items import TitleKind  # noqa: TC001

IdSource = Literal["list", "sitemap", "joined", "wikidata", "page", "given"]
"""Where a title's id on a site comes from; a later one in this list replaces an earlier one.

`list`, `sitemap`: the site lists it, and the title fits. `joined`: its record was matched
(`matching.titles.match_titles`). `page`: its page names the IMDb id. `given`: by hand.
"""


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
