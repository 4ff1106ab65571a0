"""Prepares titles for comparison, and makes the keys by which candidates are found among many.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moviecrawler.matching.normalise import names, short_forms, similar_key
from moviecrawler.matching.people import Name, name_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.items import TitleKind
    from moviecrawler.matching.facts import TitleFacts


@dataclass(slots=True, eq=False)
class Title:
    """A title in the form that is compared; fields without a docstring are as in `TitleFacts`."""

    site: str
    imdb_id: str | None
    names: frozenset[str]
    """Normalised title, original title, and second titles in brackets behind them."""
    further: frozenset[str]
    """Other normalised titles under which it is known."""
    short_forms: frozenset[str]
    """Normalised short forms of its titles, such as those without a subtitle."""
    year: int | None
    dated: int | None
    """Year of its release date; None when that is more than a year from `year`."""
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
        """The title's year and that of its release date, as far as they are known."""
        return {year for year in (self.year, self.dated) if year is not None}


def prepare(site: str, facts: TitleFacts) -> Title:
    """Return a title of a site in the form that is compared.

    A release date more than a year from the title's year is that of a re-release or a stream, and
    is ignored.
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
        short_forms=frozenset(form for title in titles for form in short_forms(title)) - own,
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
    """Yield keys; two titles share one whenever `compare` may find them similar."""
    if title.imdb_id:
        yield title.imdb_id
    yield from name_keys(title)


def maker_keys(title: Title) -> Iterator[str]:
    """Yield keys; two films share one if `compare` may put them under review by all but titles."""
    if title.year is not None and title.runtime is not None:
        runtimes = {(title.runtime + apart) // 5 for apart in (-2, 2)}
        for person in title.directors:
            yield from (f"@{person[-1]} {title.year} {runtime}" for runtime in runtimes)


def name_keys(title: Title) -> Iterator[str]:
    """Yield keys; two titles share one whenever they have equal or similar names."""
    yield from title.names
    yield from title.further
    yield from title.short_forms
    for name in title.names:
        yield f"={name.replace(' ', '')}"
        yield f"~{similar_key(name)}"
