"""What the replica's pages say of a movie: plain data, made by the catalogue in `movies.py`."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple

from moviecrawler.replica import words

TODAY = date(2026, 11, 1)
"""The replica's date: titles without a release before it are upcoming and unrated."""

GROUP = 20
"""Of every 20 titles the last but one is a sequel and the last a remake of one of the 18 before them."""


def is_remake(index: int) -> bool:
    """Return whether a movie is a remake of another."""
    return index % GROUP == GROUP - 1


class Country(NamedTuple):
    """Where a movie is from and what is spoken in it, each with its two letters."""

    name: str
    language: str
    code: str
    language_code: str


@dataclass(slots=True, frozen=True)
class Person:
    """Somebody with credits, shared by neighbouring movies. Names are unique."""

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
    """What the datasets know of a movie, and what its names are."""

    title: str
    original_title: str | None
    english_title: str
    """What slugs are made of; the title itself unless that is in another script."""
    title_type: Literal["movie", "tvMovie", "tvSeries", "tvMiniSeries", "tvEpisode"]
    year: int
    runtime_minutes: int | None
    genres: tuple[str, ...]
    country: Country
    upcoming: bool
    end_year: int | None = None
    """Of a series that has ended."""


@dataclass(slots=True, frozen=True)
class Credits:
    """Who made a movie, in billing order."""

    directors: tuple[Person, ...]
    writers: tuple[Person, ...]
    cast: tuple[tuple[Person, str | None], ...]
    """Everybody with the characters played: " / " between several, None when the part has no name."""
    creators: tuple[Person, ...] = ()
    """Of a series."""


@dataclass(slots=True, frozen=True)
class Release:
    """When a movie came out; `day` is None where a site only knows the month."""

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
class MetacriticFacts:
    """What Metacritic has of a movie."""

    slug: str
    year: int
    """May be one off IMDb's."""
    release: Release
    names_imdb_id: bool
    metascore: int | None
    critic_reviews: int
    user_score: float | None
    user_ratings: int


@dataclass(slots=True, frozen=True)
class RottenTomatoesFacts:
    """What Rotten Tomatoes has of a movie."""

    slug: str
    release: Release
    """Its year may be one off IMDb's."""
    streaming_only: bool
    """Whether the movie never was in theaters."""
    tomatometer: int | None
    critic_reviews: int
    popcornmeter: int | None
    audience_ratings: int
    """How many have rated; the site says it in bands only, such as "2,500+ Ratings"."""


@dataclass(slots=True, frozen=True)
class ReplicaMovie:
    """Everything that the replica's pages say of one movie."""

    index: int
    imdb_id: str
    basics: Basics
    credits: Credits
    release: Release
    rating: tuple[float, int] | None
    """IMDb's mean and number of votes; None when unrated."""
    certificate: str | None
    plot: str | None
    has_poster: bool
    budget: int | None
    opening_weekend: int | None
    domestic_gross: int | None
    worldwide_gross: int | None
    """All four in US dollars."""
    metacritic: MetacriticFacts | None
    """None when the site does not have the movie."""
    rottentomatoes: RottenTomatoesFacts | None
    """None when the site does not have the movie."""

    @property
    def metascore(self) -> int | None:
        """The Metascore, which IMDb shows too."""
        return self.metacritic.metascore if self.metacritic else None


def slugify(text: str, separator: str) -> str:
    """Return a text as the sites' slugs have it: ASCII, lower case, punctuation dropped, words joined."""
    plain = unicodedata.normalize("NFKD", text.replace("ø", "o").replace("Ø", "O")).encode("ascii", "ignore").decode()
    return separator.join(re.sub(r"[^a-z0-9\s-]", "", plain.lower()).replace("-", " ").split())


@functools.cache
def vocabulary() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return the place of every adjective and noun in its list, and of every place from 1, by their slugs."""

    def places(terms: tuple[str, ...], start: int = 0) -> dict[str, int]:
        return {slugify(term, "-"): place for place, term in enumerate(terms, start)}

    return places(words.ADJECTIVES), places(words.NOUNS), places(words.PLACES, 1)
