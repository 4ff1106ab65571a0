"""Series in IMDb's data: of a series its seasons and episodes, of an episode which one it is. IMDb has no page of a season, and no season 0."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, attempt
from moviecrawler.urls import IMDB_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moviecrawler.extract.imdb_props import TitleData
    from moviecrawler.items import TitleKind

_Paths = tuple[tuple[str, ...], ...]
_SEASON: Final[_Paths] = (
    ("series", "episodeNumber", "seasonNumber"),
    ("series", "displayableEpisodeNumber", "displayableSeason", "season"),
    ("series", "displayableEpisodeNumber", "displayableSeason", "text"),
)
_EPISODE: Final[_Paths] = (
    ("series", "episodeNumber", "episodeNumber"),
    ("series", "displayableEpisodeNumber", "episodeNumber", "episodeNumber"),
    ("series", "displayableEpisodeNumber", "episodeNumber", "text"),
)
_EPISODES: Final[_Paths] = (("episodes", "totalEpisodes", "total"), ("episodes", "episodes", "total"))
_LONGEST_NUMBER: Final = 9
"""Digits."""
_UNKNOWN: Final = "Unknown"
"""The season of episodes of which IMDb doesn't know the season."""


def series_places(sources: list[TitleData], kind: TitleKind) -> dict[str, list[Callable[[], Any]]]:
    """Return where in the objects of a page stands what only a series or an episode has."""

    def at(read: Callable[[Any], Any], paths: _Paths) -> list[Callable[[], Any]]:
        return [partial(dig.read, read, source, *path) for path in paths for source in sources]

    if kind == "episode":
        return {
            "series_id": at(_series_id, (("series", "series", "id"),)),
            "series_title": at(dig.text, (("series", "series", "titleText", "text"),)),
            "season": at(number_in_series, _SEASON),
            "episode": at(number_in_series, _EPISODE),
        }
    if kind == "series":
        return {
            "season_count": [
                *at(partial(_numbered, "number"), (("episodes", "seasons"),)),
                *at(_displayed_seasons, (("episodes", "displayableSeasons"),)),
            ],
            "episode_count": at(_positive, _EPISODES),
        }
    return {}


def _series_id(value: Any) -> str | None:
    series_id = dig.text(value)
    if series_id is not None and not IMDB_ID.fullmatch(series_id):
        raise ShapeError("series_id", f"{series_id!r} is not an id of a series")
    return series_id


def seasons_shown(section: Any) -> int | NoValue:
    """Return how many seasons a page of episodes offers to choose from."""
    return dig.read(partial(_numbered, "value"), section, "seasons")


def number_in_series(number: Any) -> int | NoValue:
    """Return the number of an episode or of its season: a number, or since 2023 a text to be displayed."""
    if isinstance(number, str):
        return int(number) if _is_number(number) else ABSENT if number == _UNKNOWN else None
    value = dig.integer(number)
    if value is not None and value < 0:
        raise ShapeError("episode", f"{value} is not a number of a season or an episode")
    return value


def numbers_of_row(row: Any) -> tuple[int | None, int | None]:
    """Return season and episode of a row of a list; None for each that it doesn't tell."""
    return attempt(lambda: _number_at(row, "season")), attempt(lambda: _number_at(row, "episode"))


def _number_at(row: Any, key: str) -> int | None:
    number = number_in_series(dig.at(row, key))
    return number if isinstance(number, int) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER


def _count(numbers: Iterable[Any]) -> int | NoValue:
    """Return how many seasons have a number. Raises ShapeError when one says neither that nor that it is unknown."""
    read = [number_in_series(number) for number in numbers]
    if None in read:
        raise ShapeError("season_count", "a season without a number")
    return len({number for number in read if isinstance(number, int)}) or ABSENT


def _numbered(key: str, seasons: Any) -> int | NoValue:
    return _count(dig.at(season, key) for season in dig.items(seasons))


def _displayed_seasons(seasons: Any) -> int | NoValue:
    """Return the number of seasons, if all of them stand there: one can be that of no number."""
    edges = dig.items(seasons, "edges")
    return (
        _count(dig.text(edge, "node", "season") for edge in edges) if len(edges) == dig.size(seasons, "total") else None
    )


def _positive(total: Any) -> int | NoValue:
    return dig.size(total) or ABSENT
