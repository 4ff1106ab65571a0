"""The table of scores that `scrapy scoreboard` and `scrapy demo` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.commands.base import table_lines
from moviecrawler.texts import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.catalogue.scoreboard import ScoreboardRow

_MISSING = "–"  # noqa: RUF001 - the dash of tables
_ID_FROM = 110
"""Columns of a terminal from which IMDb's ids are shown as well."""
_FULL_NAMES_FROM = 96


def render_table(rows: Sequence[ScoreboardRow], width: int = 100) -> str:
    """Return the rows as lines of at most `width` columns (80 at least), under a header; without a newline at the end."""
    full = width >= _FULL_NAMES_FROM
    names = ["Metascore", "User", "Tomatometer", "Popcornmeter"] if full else ["Meta", "User", "Tomato", "Popcorn"]
    kinds = {row.kind for row in rows}
    header = ["Title", "Year", *(["Kind"] if len(kinds) > 1 else []), "IMDb", "Votes", *names]
    body = [
        [
            printable(_full_title(row)),
            _shown(row.year),
            *([row.kind] if len(kinds) > 1 else []),
            _shown(row.imdb_rating, ".1f") + ("*" if row.imdb_rating_derived else ""),
            _shown(row.imdb_votes, ","),
            _shown(row.metascore),
            _shown(row.metacritic_user_score, ".1f"),
            _shown(row.tomatometer, unit="%"),
            _shown(row.popcornmeter, unit="%"),
        ]
        for row in rows
    ]
    if width >= _ID_FROM:
        header.append("IMDb id")
        for cells, row in zip(body, rows, strict=True):
            cells.append(row.imdb_id or _MISSING)
    lines = table_lines([header, *body], right=True, width=width)
    if any(row.imdb_rating_derived for row in rows):
        lines.append("* derived: the mean of the season's episodes, weighted by votes")
    return "\n".join(lines)


def _full_title(row: ScoreboardRow) -> str:
    """Return a title; of a season or an episode with its series and number."""
    if row.kind == "season" and row.season is not None:
        own = "" if row.title in {row.series_title, f"Season {row.season}"} else f": {row.title}"
        return f"{row.series_title or 'Unknown series'}, season {row.season}{own}"
    if row.kind == "episode" and row.series_title:
        place = "" if row.season is None or row.episode is None else f" {row.season}x{row.episode:02}"
        return f"{row.series_title}{place}: {row.title}"
    return row.title


def _shown(value: float | None, form: str = "g", unit: str = "") -> str:
    return _MISSING if value is None else f"{value:{form}}{unit}"
