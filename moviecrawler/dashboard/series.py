"""A series' seasons and episodes as its page shows them, and which series a season or an episode is of.

They are read from the views of `scrapy scoreboard --kind season` and `--kind episode`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.sql import read_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.database.short_transactions import ShortTransactions

_SEASONS = read_sql("series_seasons.sql")
_EPISODES = read_sql("series_episodes.sql")
_SERIES_OF = read_sql("series_of_titles.sql")
_MAX_SEASONS, _MAX_EPISODES = 200, 5_000
"""That are read; some daily shows have more."""
_MAX_COLUMNS = 60
"""Episodes of a season that are shown."""
_BANDS = (9.0, 8.0, 7.0, 6.0, 5.0)
"""Ratings from which on a cell has the next colour."""


@dataclass(slots=True, kw_only=True)
class Row:
    """A season in the grid."""

    season: int
    title_id: int | None
    cells: list[Any]
    """Its episodes by their columns, rows of `series_episodes.sql`; None where no site has one of that number."""
    further: int = 0
    """Episodes that have no column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesGrid:
    """The seasons of a series, and its episodes by season and number."""

    seasons: list[Any]
    """Rows of `series_seasons.sql`."""
    columns: list[int]
    """Numbers of episodes, in ascending order."""
    rows: list[Row]


def read_series(database: ShortTransactions, title_id: int) -> SeriesGrid:
    """Return the seasons and episodes of a series; none of a title that has none. Raises AwayError."""
    with database.transaction() as cursor:
        cursor.execute(_SEASONS, {"id": title_id, "seasons": _MAX_SEASONS})
        seasons = cursor.fetchall()
        cursor.execute(_EPISODES, {"id": title_id, "episodes": _MAX_EPISODES})
        return grid_of(seasons, cursor.fetchall())


def grid_of(seasons: list[Any], episodes: Sequence[Any]) -> SeriesGrid:
    """Return the grid. Of two episodes with one number, the first is shown."""
    columns = sorted({episode.episode for episode in episodes})[:_MAX_COLUMNS]
    place = {number: column for column, number in enumerate(columns)}
    title_ids = {season.season: season.title_id for season in seasons}
    rows: dict[int, Row] = {}
    for episode in episodes:
        number = episode.season
        if number not in rows:
            rows[number] = Row(season=number, title_id=title_ids.get(number), cells=[None] * len(columns))
        row, column = rows[number], place.get(episode.episode)
        if column is None:
            row.further += 1
        elif row.cells[column] is None:
            row.cells[column] = episode
    return SeriesGrid(seasons=seasons, columns=columns, rows=list(rows.values()))


def series_of(database: ShortTransactions, title_ids: Sequence[int]) -> dict[int, Any]:
    """Return of which series titles are, rows of `series_of_titles.sql` by title_id; only those of seasons and episodes. Raises AwayError."""
    with database.transaction() as cursor:
        cursor.execute(_SERIES_OF, {"ids": list(title_ids)})
        return {row.title_id: row for row in cursor.fetchall()}


def colour_of(rating: float) -> str:
    """Return the class of a rating's colour, which only repeats the number.

    >>> colour_of(9.0), colour_of(8.99), colour_of(1.0)
    ('rated-9', 'rated-8', 'rated-4')
    """
    return f"rated-{next((int(band) for band in _BANDS if rating >= band), 4)}"
