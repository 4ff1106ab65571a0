"""Episodes from IMDb's datasets: where each stands in its series, its title, and its rating. Pure.

Each of the three is in a file of its own, and none tells what another does: whoever joins them knows what each lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.extract.datasets import integer, rating_of, text_or_none, title_id_of
from moviecrawler.extract.values import check_year
from moviecrawler.texts import on_one_line

if TYPE_CHECKING:
    from moviecrawler.extract.datasets import Row

_LONGEST_TITLE = 500
_MOST = 10**9
"""The largest number that a season or episode may have."""


def place_of_row(row: Row) -> tuple[str, str, int | None, int | None]:
    """Return ids of episode and series, season (None: of no season) and number. Raises ValueError, as the others do."""
    season, episode = integer(row[2]), integer(row[3])
    if max(season or 0, episode or 0) > _MOST:
        raise ValueError(f"season {season}, episode {episode}")
    return title_id_of(row[0]), title_id_of(row[1]), season, episode


def name_of_row(row: Row) -> tuple[str, str | None, int | None]:
    """Return an episode's id, title and year, from a row of `title.basics`."""
    title, year = text_or_none(row[2]), integer(row[4])
    if title is not None and not title.isprintable():
        title = on_one_line(title)
    if title is not None and len(title) > _LONGEST_TITLE:
        raise ValueError(f"a title of {len(title)} characters")
    return title_id_of(row[0]), title or None, None if year is None else check_year(year)


def rating_of_row(row: Row) -> tuple[str, float, int]:
    """Return an episode's id, rating and votes."""
    tenths, votes = rating_of(row)
    if votes > _MOST:
        raise ValueError(f"{votes} votes")
    return title_id_of(row[0]), tenths / 10, votes
