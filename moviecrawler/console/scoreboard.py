"""`scrapy scoreboard`: one row a title with every site's scores."""

from __future__ import annotations

import csv
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.scoreboard import PART_FIELDS, ScoreboardRow, scoreboard
from moviecrawler.catalogue.tables import read_movies, write_row
from moviecrawler.console.output import Console, check_no_arguments, print_json, printing, table_lines
from moviecrawler.errors import ConfigurationError
from moviecrawler.texts import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from moviecrawler.items import TitleKind

_NARROWEST, _WIDEST = 80, 120
_MISSING = "–"  # noqa: RUF001 - the dash of tables
_ID_FROM = 110
"""Columns of a terminal from which IMDb's ids are shown as well."""
_FULL_NAMES_FROM = 96
_WHOLE = frozenset({"metascore", "tomatometer", "popcornmeter"})
"""Scores that are whole numbers, though they are stored as floats."""
_PARTS = frozenset({"season", "episode"})
_SERIES = "rottentomatoes -a list=tv_series_browse -a limit=20"
_CRAWLS: dict[TitleKind, str] = {"series": _SERIES, "season": _SERIES, "episode": "imdb -a ids=ID_OF_AN_EPISODE"}
"""What gets titles of a kind, where it is not what gets films."""
_CSV_COLUMNS = tuple(field.name for field in fields(ScoreboardRow) if field.name not in {"matched_by", *PART_FIELDS})


class Scoreboard(Console):
    """The scores of the database that DATABASE_URL names, else of `movies.csv`, joined over the sites."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the rows; exit code 1 when there are none."""
        check_no_arguments(args)
        if opts.limit is not None and opts.limit < 1:
            raise ConfigurationError(f"--limit is {opts.limit}; give a number of at least 1")
        try:
            rows, place = self._read(opts.limit, opts.kind)
        except FileNotFoundError as error:
            demo = Path(error.filename).parent / "demo"
            hint = f"; the demo's movies are shown by: scrapy scoreboard -s DATA_DIR={demo}"
            self.fail(
                f"there is no {error.filename} yet; {_crawl_first(opts.kind)}"
                + (hint if (demo / "movies.csv").exists() else "")
            )
            return
        if not rows:
            self.fail(f"{place} holds no {opts.kind or 'title'} yet; {_crawl_first(opts.kind)}")
            return
        # CSV is written as in the files. A terminal may lack some letters.
        form = {"encoding": "utf-8", "newline": ""} if opts.format == "csv" else {"errors": "replace"}
        with printing(**form):
            _print(rows[: opts.limit], opts.format, with_parts=opts.kind in _PARTS)

    def _read(self, limit: int | None, kind: TitleKind | None) -> tuple[list[ScoreboardRow], str]:
        """Return the rows, and where they were read."""
        url = self.settings.get("DATABASE_URL")
        if url:
            from moviecrawler.pipelines.postgres import read_scoreboard  # noqa: PLC0415 - imports Postgres' client

            return read_scoreboard(url, limit, kind), "the database that DATABASE_URL names"
        path = Path(self.settings.get("DATA_DIR", "data")) / "movies.csv"
        return scoreboard(read_movies(path), kind), str(path)


def _print(rows: Sequence[ScoreboardRow], form: str, *, with_parts: bool) -> None:
    more = PART_FIELDS if with_parts else ()
    if form == "json":
        shown = [
            {
                name: int(value) if name in _WHOLE and value is not None else value
                for name in (*_CSV_COLUMNS, "matched_by", *more)
                for value in [getattr(row, name)]
            }
            for row in rows
        ]
        print_json(shown, indent=2)
    elif form == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow([*_CSV_COLUMNS, *more])
        for row in rows:
            write_row(writer, [_cell(getattr(row, column)) for column in (*_CSV_COLUMNS, *more)])
    else:
        width = shutil.get_terminal_size(fallback=(100, 24)).columns
        print(render_table(rows, min(_WIDEST, max(_NARROWEST, width))))


def _crawl_first(kind: TitleKind | None) -> str:
    """Say how to get titles of a kind."""
    return f"crawl first, such as with: scrapy crawl {_CRAWLS.get(kind or 'movie', 'imdb -a list=top')}"


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


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
