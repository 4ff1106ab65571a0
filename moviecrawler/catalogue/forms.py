"""What is compared of a title, and the keys by which titles that may be one are found among many. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moviecrawler.catalogue.normalise import names, parts, similar_key
from moviecrawler.catalogue.people import name_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.catalogue.people import Name
    from moviecrawler.catalogue.rows import TitleFacts
    from moviecrawler.items import TitleKind


@dataclass(slots=True, eq=False)
class Title:
    """What is compared of a title; what has no docstring is as in `TitleFacts`."""

    site: str
    imdb_id: str | None
    names: frozenset[str]
    """Normalised title, original title, and the second titles that stand in brackets behind them."""
    further: frozenset[str]
    """Normalised titles under which it is known too."""
    parts: frozenset[str]
    """What is left of its titles without a subtitle, and the like."""
    year: int | None
    dated: int | None
    """Year of its date of release; None when that is of a release long before or after the title's year."""
    runtime: int | None
    directors: list[Name]
    votes: int | None
    kind: TitleKind | None
    season: int | None
    episode: int | None
    end_year: int | None
    seasons: int | None

    @property
    def years(self) -> set[int]:
        """The years under which it may be found."""
        return {year for year in (self.year, self.dated) if year is not None}


def prepare(site: str, facts: TitleFacts) -> Title:
    """Return what is compared of a title of a site.

    A date of release more than a year from the title's year is that of another release, or of a stream, and says nothing.
    """
    titles = [title for title in (facts.title, facts.original_title) if title]
    own = frozenset(name for title in titles for name in names(title))
    dated = int(facts.release_date[:4]) if facts.release_date else None
    if dated is not None and facts.year is not None and abs(dated - facts.year) > 1:
        dated = None
    return Title(
        site=site,
        imdb_id=facts.imdb_id,
        names=own,
        further=frozenset(name for title in facts.other_titles for name in names(title)) - own,
        parts=frozenset(part for title in titles for part in parts(title)) - own,
        year=facts.year,
        dated=dated,
        runtime=facts.runtime_minutes,
        directors=[words for director in facts.directors if (words := name_words(director))],
        votes=facts.votes,
        kind=facts.kind,
        season=facts.season,
        episode=facts.episode,
        end_year=facts.end_year,
        seasons=facts.season_count,
    )


def block_keys(title: Title) -> Iterator[str]:
    """Yield keys of which two titles share one when `compare` may find anything in common."""
    if title.imdb_id:
        yield title.imdb_id
    yield from name_keys(title)


def name_keys(title: Title) -> Iterator[str]:
    """Yield keys of which two titles share one when they have a name in common, or similar ones."""
    yield from title.names
    yield from title.further
    yield from title.parts
    for name in title.names:
        yield f"={name.replace(' ', '')}"
        yield f"~{similar_key(name)}"
