"""What the replica's pages say of series: plain data, made by the catalogue in `series.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import date

    from moviecrawler.replica.facts import MetacriticFacts, ReplicaMovie, RottenTomatoesFacts


class Shape(NamedTuple):
    """What a series is like."""

    episodes: tuple[int, ...]
    """Of each season that has begun by TODAY."""
    runs: bool = False
    mini: bool = False
    names_seasons: bool = False
    """Whether it is an anthology, each of whose seasons has a name."""
    specials: int = 0
    """Episodes of no season, which other sites than IMDb have as season 0."""
    first_episode: int = 1
    """0 where a pilot stands before the first."""
    split: int | None = None
    """The season that was shown in two parts, the second of which Rotten Tomatoes has a tile for."""
    restarted: bool = False
    """Whether it ended long ago, and the next number is its new start under the same name."""
    is_restart: bool = False


SHAPES: Final = (
    Shape((10,) * 3, runs=True, specials=3),
    Shape((13,) * 5),
    Shape((6,), mini=True),
    Shape((8,) * 4, runs=True, names_seasons=True),
    Shape((22,) * 4, restarted=True),
    Shape((10, 10), runs=True, is_restart=True),
    Shape((13, 13, 13, 13, 16), split=5),
    Shape((10,) * 8, runs=True),
    Shape((10,) * 6, runs=True),
    Shape((8,) * 4),
    Shape((8,), mini=True),
    Shape((10,) * 4),
    Shape((10,) * 3, runs=True),
    Shape((12,) * 7),
    Shape((13,)),
    Shape((8,) * 5, runs=True),
    Shape((6,) * 4, names_seasons=True),
    Shape((8,) * 7),
    Shape((10, 10), runs=True, first_episode=0),
    Shape((13,) * 4),
)


def shape_of(number: int) -> Shape:
    """Return what a series is like."""
    return SHAPES[number % len(SHAPES)]


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
    """Its slug is "the-amber-files/season-2"; None when the site does not have the series."""
    rottentomatoes: RottenTomatoesFacts | None
    """Its slug is "the_amber_files/s02"."""

    @property
    def title(self) -> str:
        """What Rotten Tomatoes calls it."""
        return self.name or (f"Season {self.number}" if self.number else "Specials")


@dataclass(slots=True, frozen=True)
class Series:
    """One series with what has begun of it."""

    number: int
    shape: Shape
    about: ReplicaMovie
    """What its own pages say; `index` is the number."""
    seasons: tuple[Season, ...]
    """In order, the specials first."""

    def season(self, number: int) -> Season | None:
        """Return a season, or None when it has not begun."""
        return next((season for season in self.seasons if season.number == number), None)

    @property
    def numbered(self) -> tuple[Season, ...]:
        """Its seasons without the specials."""
        return tuple(season for season in self.seasons if season.number)

    @property
    def episodes(self) -> list[Episode]:
        """All episodes in the order of their ids."""
        found = [episode for season in self.seasons for episode in season.episodes]
        return sorted(found, key=lambda episode: episode.ordinal)
