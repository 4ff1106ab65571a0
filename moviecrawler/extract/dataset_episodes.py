"""Episodes from IMDb's datasets: where each stands in its series, its title, and its rating. Pure.

Each of the three is in a file of its own, and none tells what another does: whoever joins them knows what each lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.extract.datasets import integer, rating_of, text_or_none, title_id_of
from moviecrawler.extract.values import check_year
from moviecrawler.texts import on_one_line

if TYPE_CHECKING:
    from moviecrawler.extract.datasets import Row

_LONGEST_TITLE = 500
_MOST = 10**9
"""The largest number that a season or episode may have."""


class Place(NamedTuple):
    """A row of `title.episode`."""

    imdb_id: str
    series_imdb_id: str
    season: int | None
    """None: of no season."""
    episode: int | None


class Name(NamedTuple):
    """What is read of an episode's row in `title.basics`."""

    imdb_id: str
    title: str | None
    year: int | None


class Rating(NamedTuple):
    """An episode's row in `title.ratings`."""

    imdb_id: str
    rating: float
    votes: int


def place_of_row(row: Row) -> Place:
    """Return a row of `title.episode`. Raises ValueError, as the others do."""
    season, episode = integer(row[2]), integer(row[3])
    if max(season or 0, episode or 0) > _MOST:
        raise ValueError(f"season {season}, episode {episode}")
    return Place(title_id_of(row[0]), title_id_of(row[1]), season, episode)


def name_of_row(row: Row) -> Name:
    """Return what a row of `title.basics` says of an episode."""
    title, year = text_or_none(row[2]), integer(row[4])
    if title is not None and not title.isprintable():
        title = on_one_line(title)
    if title is not None and len(title) > _LONGEST_TITLE:
        raise ValueError(f"a title of {len(title)} characters")
    return Name(title_id_of(row[0]), title or None, None if year is None else check_year(year))


def rating_of_row(row: Row) -> Rating:
    """Return a row of `title.ratings`."""
    tenths, votes = rating_of(row)
    if votes > _MOST:
        raise ValueError(f"{votes} votes")
    return Rating(title_id_of(row[0]), tenths / 10, votes)
