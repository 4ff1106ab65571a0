"""Metacritic's seasons, of which the page of a series, and those of its seasons, have a list: the component `seasons`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.findings import NoValue, attempt, scores_of
from moviecrawler.extract.metacritic_traits import add_facts, is_own
from moviecrawler.extract.metacritic_values import id_in, read_score, without_season
from moviecrawler.extract.series import listed_season, one_of_each_season
from moviecrawler.extract.values import check_year

if TYPE_CHECKING:
    from moviecrawler.items import Movie, Score, ScoreKind

SEASONS: Final = "seasons"
_SUMMARIES: Final[dict[ScoreKind, str]] = {"metascore": "criticScoreSummary", "metacritic_user": "userScore"}


def season_row(components: dict[str | None, Any], site_id: str) -> Any:
    """Return what a page's list of seasons says of one of them; None when it doesn't list that."""
    return next((row for row in _rows(components) if attempt(partial(_id_of, row)) == site_id), None)


def seasons_of(series: Movie, components: dict[str | None, Any]) -> list[Movie]:
    """Return the seasons that a series' page lists, with what it says of each. A row that can't be read is passed by."""
    return one_of_each_season(attempt(partial(_season, series, row)) for row in _rows(components))


def score_in_row(kind: ScoreKind, site_id: str, row: Any) -> Score | NoValue:
    """Return a season's score in its row; None where the address of the score is its series' or another season's."""
    name = _SUMMARIES[kind]
    if not is_own(site_id, attempt(lambda: dig.at(row, name))):
        return None
    return dig.read(partial(read_score, kind), row, name)


def read_premiere(year: Any) -> int | None:
    """Return the year of a season."""
    number = dig.integer(year)
    return check_year(number) if number else None


def _rows(components: dict[str | None, Any]) -> list[Any]:
    data = attempt(partial(dig.at, components.get(SEASONS), "data"))
    return next(
        (rows for path in (("items",), ("item", "seasons")) if (rows := attempt(partial(dig.items, data, *path)))),
        [],
    )


def _id_of(row: Any) -> str | None:
    """Return a season's id, by its own address or by that of its scores."""
    addresses = (attempt(partial(dig.text, row, *path)) for path in (("url",), ("criticScoreSummary", "url")))
    return next(filter(None, map(id_in, addresses)), None)


def _season(series: Movie, row: Any) -> Movie | None:
    site_id, title = _id_of(row), attempt(lambda: dig.text(row, "title"))
    scores = scores_of(*(partial(score_in_row, kind, site_id or "", row) for kind in _SUMMARIES))
    for score in scores:
        add_facts(score, row[_SUMMARIES[score.kind]])
    return listed_season(
        series,
        site_id,
        without_season(site_id, title) if site_id and title else None,
        scores,
        year=attempt(lambda: read_premiere(row["releaseYear"])),
    )
