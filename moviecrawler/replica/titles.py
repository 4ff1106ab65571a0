"""What the replica's pages say of a title, and what its catalogues of movies and of series have in common."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeVar

from moviecrawler.replica import words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")

TODAY = date(2026, 11, 1)
"""The replica's date: titles without a release before it are upcoming and unrated."""

SlugSite = Literal["metacritic", "rottentomatoes"]
"""The sites that name titles by slugs, and that don't have all of them."""

PAIRS = len(words.ADJECTIVES) * len(words.NOUNS)
"""Pairs of words that titles are made of."""


class Country(NamedTuple):
    """Where a title is from and what is spoken in it, each with its two letters."""

    name: str
    language: str
    code: str
    language_code: str


@dataclass(slots=True, frozen=True)
class Person:
    """Somebody with credits, shared by neighbouring titles. Names are unique."""

    imdb_id: str
    name: str

    @property
    def slug(self) -> str:
        """The name in Metacritic's URLs."""
        return slugify(self.name, "-")

    @property
    def celebrity(self) -> str:
        """The id on Rotten Tomatoes: "celebrity/ada_lund"."""
        return f"celebrity/{slugify(self.name, '_')}"


@dataclass(slots=True, frozen=True)
class Basics:
    """What the datasets know of a title, and what its names are."""

    title: str
    title_type: Literal["movie", "tvMovie", "tvSeries", "tvMiniSeries", "tvSeason", "tvEpisode"]
    """IMDb's; it has no pages of seasons."""
    year: int
    runtime_minutes: int | None
    genres: tuple[str, ...]
    country: Country
    upcoming: bool
    original_title: str | None = None
    english_title: str = ""
    """What a movie's slugs are made of; the title itself unless that is in another script."""
    end_year: int | None = None
    """The last year of a series that has ended."""


@dataclass(slots=True, frozen=True)
class Credits:
    """Who made a title, in billing order."""

    directors: tuple[Person, ...]
    writers: tuple[Person, ...]
    cast: tuple[tuple[Person, str | None], ...]
    """Everybody with the characters played: " / " between several, None when the part has no name."""
    creators: tuple[Person, ...] = ()
    """The creators of a series."""


@dataclass(slots=True, frozen=True)
class Release:
    """When a title came out; `day` is None where a site only knows the month."""

    year: int
    month: int
    day: int | None

    @classmethod
    def on(cls, day: date) -> Release:
        """Return the release on a day."""
        return cls(day.year, day.month, day.day)

    @property
    def iso(self) -> str:
        """`YYYY-MM-DD`, or `YYYY-MM`."""
        return f"{self.year:04}-{self.month:02}" + ("" if self.day is None else f"-{self.day:02}")


@dataclass(slots=True, frozen=True)
class Facts:
    """What a site has of a title."""

    slug: str
    """Of a season "the-amber-files/season-2" or "the_amber_files/s02", of an episode "the_amber_files/s02/e05"."""
    release: Release
    """Its year may be one off IMDb's."""


@dataclass(slots=True, frozen=True)
class MetacriticFacts(Facts):
    """What Metacritic has of a title."""

    names_imdb_id: bool
    metascore: int | None
    critic_reviews: int
    user_score: float | None
    user_ratings: int


@dataclass(slots=True, frozen=True)
class RottenTomatoesFacts(Facts):
    """What Rotten Tomatoes has of a title."""

    tomatometer: int | None
    critic_reviews: int
    popcornmeter: int | None
    audience_ratings: int
    """How many have rated; the site says it in bands only, such as "2,500+ Ratings"."""
    streaming_only: bool = False
    """Whether a movie never was in theaters."""


@dataclass(slots=True, frozen=True)
class Episode:
    """One episode."""

    imdb_id: str
    ordinal: int
    """Its place among all of the series, from 1."""
    season: int | None
    """None for a special."""
    number: int | None
    title: str
    air_date: date
    rating: tuple[float, int] | None
    """IMDb's; None when unrated."""


@dataclass(slots=True, frozen=True)
class Season:
    """One season; number 0 has the specials."""

    number: int
    name: str | None
    """None where it is called by its number."""
    air_date: date
    episodes: tuple[Episode, ...]
    metacritic: MetacriticFacts | None
    rottentomatoes: RottenTomatoesFacts | None

    def facts(self, site: SlugSite) -> Facts | None:
        """Return what a site has of it; None when it does not have it."""
        return self.metacritic if site == "metacritic" else self.rottentomatoes

    @property
    def title(self) -> str:
        """What Rotten Tomatoes calls it."""
        return self.name or (f"Season {self.number}" if self.number else "Specials")


@dataclass(slots=True, frozen=True)
class Title:
    """Everything that the replica's pages say of one movie, series, season or episode."""

    index: int
    """The number of the movie or the series."""
    imdb_id: str
    """Of a season its series'."""
    basics: Basics
    credits: Credits
    release: Release
    rating: tuple[float, int] | None
    """IMDb's mean and number of votes; None when unrated."""
    certificate: str | None
    plot: str | None
    has_poster: bool
    metacritic: MetacriticFacts | None
    """None when the site does not have it."""
    rottentomatoes: RottenTomatoesFacts | None
    budget: int | None = None
    opening_weekend: int | None = None
    domestic_gross: int | None = None
    worldwide_gross: int | None = None
    """All four in US dollars."""
    seasons: tuple[Season, ...] = ()
    """Of a series, those that have begun, the specials first."""
    split: int | None = None
    """The season of a series that was shown in two parts."""
    part_of: Title | None = None
    """The series of a season or an episode."""
    season: Season | None = None
    """What a season's page is about, or the one that an episode is of."""
    episode: Episode | None = None

    def facts(self, site: SlugSite) -> Facts | None:
        """Return what a site has of it; None when it does not have it."""
        return self.metacritic if site == "metacritic" else self.rottentomatoes

    @property
    def is_series(self) -> bool:
        """Whether it is a series or a part of one."""
        return self.basics.title_type not in {"movie", "tvMovie"}

    @property
    def metascore(self) -> int | None:
        """The Metascore, which IMDb shows too."""
        return self.metacritic.metascore if self.metacritic else None

    @property
    def numbered(self) -> tuple[Season, ...]:
        """The seasons without the specials."""
        return tuple(season for season in self.seasons if season.number)

    @property
    def episodes(self) -> list[Episode]:
        """All episodes of a series in the order of their ids."""
        found = [episode for season in self.seasons for episode in season.episodes]
        return sorted(found, key=lambda episode: episode.ordinal)


def known(facts: _T | None) -> _T:
    """Return what can't be None here, such as the facts of a title on a site that has it."""
    assert facts is not None  # noqa: S101 - the caller knows, and the type does not say so
    return facts


class Listed:
    """The indexes of the titles that a site has: it lacks one of each group, so that nothing has to be listed to be counted."""

    def __init__(self, titles: int, group: int, lacked: Callable[[int], int]) -> None:
        """Take the number of titles, the size of a group, and a function that returns which title of a group is lacking."""
        self._titles, self._group, self._lacked = titles, group, lacked

    def __contains__(self, index: int) -> bool:
        group, place = divmod(index, self._group)
        return place != self._lacked(group)

    def __len__(self) -> int:
        groups, rest = divmod(self._titles, self._group)
        return self._titles - groups - (self._lacked(groups) < rest)

    def part(self, start: int, end: int) -> list[int]:
        """Return the indexes at the places from `start` up to `end`, the most popular first; fewer where there are fewer."""
        found = []
        for place in range(start, min(end, len(self))):
            group, within = divmod(place, self._group - 1)
            found.append(group * self._group + within + (within >= self._lacked(group)))
        return found


class Titles(ABC):
    """The titles of one kind, 0 to `count` - 1, of one seed: an index is a title's place in popularity.

    Titles are made when they are asked for, the same each time. Ids and slugs lead back to the index by arithmetic and by the
    words in them, so that a million titles need no memory.
    """

    pair_step: ClassVar[int]
    """Between the pairs of words of neighbours; coprime to PAIRS."""
    pair_shift: ClassVar[int]
    listed: dict[SlugSite, Listed]
    seed: int
    count: int

    @abstractmethod
    def imdb_id(self, index: int) -> str:
        """Return a title's id on IMDb."""

    @abstractmethod
    def title(self, index: int) -> Title:
        """Return everything about a title. Raises IndexError when there is no such index."""

    @abstractmethod
    def metacritic(self, index: int) -> MetacriticFacts | None:
        """Return what Metacritic has of a title, or None when it does not have it."""

    @abstractmethod
    def slug(self, site: SlugSite, index: int) -> str:
        """Return what a site that has a title calls it in its addresses."""

    @abstractmethod
    def namesakes(self, index: int) -> Sequence[int]:
        """Return the indexes that share the words of the title at an index."""

    @property
    @abstractmethod
    def top(self) -> list[int]:
        """The indexes of the chart of the best rated, in its order; fewer than 250 when there are fewer."""

    @functools.cached_property
    def top_ranks(self) -> dict[int, int]:
        """The rank, from 1, of each index in that chart."""
        return {index: rank for rank, index in enumerate(self.top, start=1)}

    def of_slug(self, site: SlugSite, slug: str) -> Title | None:
        """Return the title with exactly this slug, of a part of a series "the-amber-files/season-2"; None when there is none."""
        index = self.index_of_slug(site, slug)
        return None if index is None or self.slug(site, index) != slug else self.title(index)

    def words_of(self, index: int) -> tuple[int, int]:
        """Return the places of a title's adjective and noun."""
        return divmod((index * self.pair_step + self.seed + self.pair_shift) % PAIRS, len(words.NOUNS))

    def index_of_slug(self, site: SlugSite, slug: str) -> int | None:
        """Return the index of the title with this slug on a site, hyphens and underscores being the same.

        None when the site has no such title.
        """
        wanted = slug.replace("-", "_")
        tokens = wanted.split("_")
        adjectives, nouns, places = _vocabulary()
        for position, (first, second) in enumerate(itertools.pairwise(tokens)):
            if first in adjectives and second in nouns:
                pair = adjectives[first] * len(words.NOUNS) + nouns[second]
                base = (pair - self.seed - self.pair_shift) * pow(self.pair_step, -1, PAIRS) % PAIRS
                base += PAIRS * places.get("".join(tokens[position + 3 : position + 4]), 0)
                for index in self.namesakes(base):
                    is_there = index < self.count and index in self.listed[site]
                    if is_there and self.slug(site, index).replace("-", "_") == wanted:
                        return index
        return None


def slugify(text: str, separator: str) -> str:
    """Return a text as the sites' slugs have it: ASCII, lower case, punctuation dropped, words joined."""
    plain = unicodedata.normalize("NFKD", text.replace("ø", "o").replace("Ø", "O")).encode("ascii", "ignore").decode()
    return separator.join(re.sub(r"[^a-z0-9\s-]", "", plain.lower()).replace("-", " ").split())


@functools.cache
def _vocabulary() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return the place of every adjective and noun in its list, and of every place from 1, by their slugs."""

    def places(terms: tuple[str, ...], start: int = 0) -> dict[str, int]:
        return {slugify(term, "-"): place for place, term in enumerate(terms, start)}

    return places(words.ADJECTIVES), places(words.NOUNS), places(words.PLACES, 1)
