"""Episodes from IMDb's datasets: where each stands in its series, its title, and its rating. Pure.

Each of the three is in a file of its own, and none tells what another does: whoever joins them knows what each lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.extract.dataset_titles import COLUMNS
from moviecrawler.extract.datasets import integer, rating_of, read_rows, text_or_none, title_id_of
from moviecrawler.extract.values import check_year
from moviecrawler.texts import on_one_line

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from moviecrawler.extract.datasets import Blocks, OnError, Row

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


def episode_places(blocks: Blocks, on_error: OnError | None = None) -> Iterator[Place]:
    """Yield the rows of `title.episode`."""
    return read_rows(blocks, "title.episode", COLUMNS["title.episode"], _place, wanted=None, on_error=on_error)


def episode_names(blocks: Blocks, wanted: Container[bytes], on_error: OnError | None = None) -> Iterator[Name]:
    """Yield the titles and years of the `wanted` ids in `title.basics`."""
    columns = ("tconst", "primaryTitle", "startYear")
    return read_rows(blocks, "title.basics", columns, _name, wanted=wanted, on_error=on_error)


def episode_ratings(blocks: Blocks, wanted: Container[bytes], on_error: OnError | None = None) -> Iterator[Rating]:
    """Yield the ratings of the `wanted` ids in `title.ratings`."""
    columns = COLUMNS["title.ratings"]
    return read_rows(blocks, "title.ratings", columns, _rating, wanted=wanted, on_error=on_error)


def _place(row: Row) -> Place:
    season, episode = integer(row[2]), integer(row[3])
    if max(season or 0, episode or 0) > _MOST:
        raise ValueError(f"season {season}, episode {episode}")
    return Place(title_id_of(row[0]), title_id_of(row[1]), season, episode)


def _name(row: Row) -> Name:
    title, year = text_or_none(row[1]), integer(row[2])
    if title is not None and not title.isprintable():
        title = on_one_line(title)
    if title is not None and len(title) > _LONGEST_TITLE:
        raise ValueError(f"a title of {len(title)} characters")
    return Name(title_id_of(row[0]), title or None, None if year is None else check_year(year))


def _rating(row: Row) -> Rating:
    tenths, votes = rating_of(row)
    if votes > _MOST:
        raise ValueError(f"{votes} votes")
    return Rating(title_id_of(row[0]), tenths / 10, votes)
