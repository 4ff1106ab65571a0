"""`scrapy scoreboard`: print one row a title with every site's scores."""

from __future__ import annotations

import csv
import io
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy.commands import ScrapyCommand

from moviecrawler.basics.errors import ConfigurationError, OutputError
from moviecrawler.basics.progress import Progress
from moviecrawler.basics.texts import printable
from moviecrawler.commands.base import (
    NONE,
    BaseCommand,
    option,
    print_csv,
    program,
    table_lines,
    whole_number,
)
from moviecrawler.sites import BY_AUTHORITY, ID_SITE, SCOREBOARD_KINDS, SCORES, SITES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from scrapy.settings import BaseSettings

    from moviecrawler.database.scoreboard import ScoreboardRow
    from moviecrawler.items import ScoreKind, TitleKind

_MIN_WIDTH = 80
_MAX_WIDTH = 120
_COLUMNS = {
    "title": "VARCHAR",
    "year": "INTEGER",
    "kind": "VARCHAR",
    "imdb_rating": "DOUBLE",
    "imdb_votes": "INTEGER",
    **{score.columns[0]: "DOUBLE" for score in SCORES.values() if score.columns},
    **{f"{site}_id": "VARCHAR" for site in SITES},
    "tmdb_id": "INTEGER",
}
"""Columns of CSV, JSON and Parquet, with their types in Parquet."""
_PART_COLUMNS = {
    "series_title": "VARCHAR",
    "series_imdb_id": "VARCHAR",
    "season": "INTEGER",
    "episode": "INTEGER",
    "imdb_rating_derived": "BOOLEAN",
}
"""Further columns of seasons and episodes."""
_MAX_TABLE_ROWS = 100_000
"""Rows of a table: all of them are in memory, as their widths are measured before the first is
printed."""
_WHOLE = tuple(score.columns[0] for score in SCORES.values() if score.columns and score.form == "g")
"""Columns of scores that are whole numbers."""
_SERIES = next(
    f"{site} -a list={name} -a limit=20"
    for site in BY_AUTHORITY
    if SITES[site].ids.parts  # it has pages of seasons
    for name, found in SITES[site].lists.items()
    if found.kind == "series"
)
_CRAWLS: dict[TitleKind, str] = {
    "series": _SERIES,
    "season": _SERIES,
    "episode": f"{ID_SITE} -a ids=ID_OF_AN_EPISODE",
}
"""Arguments of `scrapy crawl` that get titles of a kind other than films."""
_ID_MIN_WIDTH = 110
"""A table with so many columns shows IMDb's ids, too."""
_FULL_NAMES_MIN_WIDTH = 96


class Command(BaseCommand, ScrapyCommand):
    """Print one row a title with every site's scores: by the rank in IMDb's list, then by votes.

    The scores are those of the database that DATABASE_URL names, or of the embedded one.
    """

    options = (
        option(
            "--kind",
            choices=["movie", "series", "season", "episode"],
            help="print these only; default: all but seasons and episodes. "
            "IMDb's rating of a season is the mean of its episodes",
        ),
        option(
            "--format",
            choices=["table", "csv", "json", "parquet"],
            default="table",
            help="default: table",
        ),
        option("--limit", type=whole_number, metavar="N", help="print the first N rows only"),
        option(
            "--export",
            action="store_true",
            help="print nothing, and write the CSV files in DATA_DIR, as the end of a crawl does",
        ),
        option(
            "--excel",
            action="store_true",
            help="write CSV for Excel: with a byte order mark, and an apostrophe before what would"
            " run as a formula",
        ),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        """Print the rows; exit code 1 when there are none."""
        crawl = _CRAWLS.get(opts.kind, f"{ID_SITE} -a list=top")
        crawl_first = f"crawl first, such as with: {program()} crawl {crawl}"
        try:
            if opts.excel and not opts.export and opts.format != "csv":
                raise ConfigurationError("--excel is for CSV; add --format csv, or --export")
            if opts.export:
                _export_files(Path(self.settings.get("DATA_DIR", "data")), excel=opts.excel)
                return
            with _opened(self.settings, opts.kind, opts.limit) as (rows, source):
                first = list(islice(rows, 1))
                if not first:
                    self.fail(f"{source} holds no {opts.kind or 'title'} yet; {crawl_first}")
                    return
                if isinstance(sys.stdout, io.TextIOWrapper):
                    sys.stdout.reconfigure(errors="replace")  # a terminal may lack some letters
                _print(chain(first, rows), opts.format, opts.kind, excel=opts.excel)
        except FileNotFoundError as error:
            demo = Path(error.filename).parent / "demo"
            if (demo / "movies.sqlite3").exists():
                crawl_first += (
                    f"; the demo's movies are shown by: {program()} scoreboard -s DATA_DIR={demo}"
                )
            self.fail(f"there is no {error.filename} yet; {crawl_first}")
        except sqlite3.DatabaseError as error:
            folder = Path(self.settings.get("DATA_DIR", "data"))
            raise ConfigurationError(
                f"the database in {folder} can't be read ({error}); if it is damaged, move it away"
            ) from error


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _export_files(folder: Path, *, excel: bool) -> None:
    """Write the CSV files of the embedded database. Raises FileNotFoundError when it is missing."""
    from moviecrawler.database.sqlite import open_sqlite, read_sqlite
    from moviecrawler.pipelines.csv_export import export

    read_sqlite(folder).close()
    with closing(open_sqlite(folder)) as writing:
        try:
            export(writing, folder, excel=excel, report=_report)
        except (OSError, sqlite3.DatabaseError) as error:
            raise OutputError(f"the CSV files in {folder} can't be replaced: {error}") from error


@contextmanager
def _opened(
    settings: BaseSettings, kind: TitleKind | None, limit: int | None
) -> Iterator[tuple[Iterator[ScoreboardRow], str]]:
    """Open the scoreboard, and give its rows and the name of the database."""
    from moviecrawler.database.schema import is_up_to_date
    from moviecrawler.database.scoreboard import match_embedded, scoreboard_rows
    from moviecrawler.database.sqlite import FILE, SqliteTables, open_sqlite, read_sqlite

    if url := settings.get("DATABASE_URL"):
        from moviecrawler.pipelines.postgres import read_scoreboard

        yield read_scoreboard(url, limit, kind), "the database that DATABASE_URL names"
        return
    if not settings.getbool("SQLITE_ENABLED", True):
        raise ConfigurationError(
            "SQLITE_ENABLED is 0, so there is no embedded database; set DATABASE_URL"
        )
    folder = Path(settings.get("DATA_DIR", "data"))
    with closing(read_sqlite(folder)) as reading:
        is_ready = is_up_to_date(SqliteTables(reading, str(folder / FILE)))
        if is_ready:
            ((is_ready,),) = reading.execute("SELECT written = matched FROM state")
    if not is_ready:
        with closing(open_sqlite(folder)) as writing:
            match_embedded(writing, _report)
    with closing(read_sqlite(folder)) as reading, Progress(_report, "reading the scoreboard"):
        yield scoreboard_rows(reading, kind, limit), str(folder / FILE)


def _print(
    rows: Iterator[ScoreboardRow], form: str, kind: TitleKind | None, *, excel: bool
) -> None:
    parts = _PART_COLUMNS if kind in {"season", "episode"} else {}
    columns = _COLUMNS | parts
    if form == "json":
        _print_json(_records(rows, [*_COLUMNS, "matched_by", *parts]))
    elif form == "csv":
        records = _records(rows, columns)
        cells = (map(_cell, record.values()) for record in records)
        print_csv(columns, cells, excel=excel)
    elif form == "parquet":
        _print_parquet(_records(rows, columns), columns)
    else:
        width = shutil.get_terminal_size(fallback=(100, 24)).columns
        print(
            render_table(
                list(islice(rows, _MAX_TABLE_ROWS)), min(_MAX_WIDTH, max(_MIN_WIDTH, width))
            )
        )


def _records(rows: Iterator[ScoreboardRow], names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the values of each row by name.

    A row has scores that are whole numbers as floats, too.
    """
    for row in rows:
        values = {name: row.value(name) for name in names}
        whole = {name: values[name] for name in _WHOLE}
        yield values | {name: int(value) for name, value in whole.items() if value is not None}


def _print_json(records: Iterator[dict[str, Any]]) -> None:
    for number, record in enumerate(records):
        text = msgspec.json.format(msgspec.json.encode(record), indent=2).decode()
        sys.stdout.write((",\n" if number else "[\n") + "  " + text.replace("\n", "\n  "))
    sys.stdout.write("\n]\n")


def _print_parquet(records: Iterator[dict[str, Any]], columns: dict[str, str]) -> None:
    """Print a Parquet file, which DuckDB makes of a CSV file in bounded memory."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "scoreboard.csv")
        target = Path(folder, "scoreboard.parquet")
        with source.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(map(_cell, record.values()) for record in records)
        with duckdb.connect(
            config={"threads": 1, "memory_limit": "256MB", "temp_directory": folder}
        ) as connection:
            table = connection.read_csv(
                str(source), header=False, columns=columns, auto_detect=False
            )
            table.write_parquet(str(target))
        with target.open("rb") as made:
            shutil.copyfileobj(made, sys.stdout.buffer)


def _cell(value: Any) -> Any:
    value = str(value).lower() if isinstance(value, bool) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value  # 9.0 as 9


def render_table(rows: Sequence[ScoreboardRow], width: int = 100) -> str:
    """Return the rows as lines under a header, without a newline at the end.

    A line has at most `width` columns (80 at least).
    """
    full = width >= _FULL_NAMES_MIN_WIDTH
    others = [kind for kind in SCOREBOARD_KINDS if kind != ID_SITE]
    headings = [_heading(kind, full=full) for kind in (ID_SITE, *others)]
    headings.insert(1, "Votes")
    kinds = {row.kind for row in rows}
    header = ["Title", "Year", *(["Kind"] if len(kinds) > 1 else []), *headings]
    body = [
        [
            printable(_full_title(row)),
            _shown(row.year),
            *([row.kind] if len(kinds) > 1 else []),
            _score(row, ID_SITE) + ("*" if row.imdb_rating_derived else ""),
            _shown(row.imdb_votes, ","),
            *(_score(row, kind) for kind in others),
        ]
        for row in rows
    ]
    if width >= _ID_MIN_WIDTH:
        header.append("IMDb id")
        for cells, row in zip(body, rows, strict=True):
            cells.append(row.imdb_id or NONE)
    lines = table_lines([header, *body], right=True, width=width)
    if any(row.imdb_rating_derived for row in rows):
        lines.append("* derived: the mean of the season's episodes, weighted by votes")
    return "\n".join(lines)


def _heading(kind: ScoreKind, *, full: bool) -> str:
    score = SCORES[kind]
    heading = score.heading or score.name
    return heading if full else score.short_heading or heading


def _score(row: ScoreboardRow, kind: ScoreKind) -> str:
    return _shown(row.scores[kind], SCORES[kind].form, SCORES[kind].unit)


def _full_title(row: ScoreboardRow) -> str:
    """Return a title; of a season or an episode with its series and number."""
    if row.kind == "season" and row.season is not None:
        own = "" if row.title in {row.series_title, f"Season {row.season}"} else f": {row.title}"
        return f"{row.series_title or 'Unknown series'}, season {row.season}{own}"
    if row.kind == "episode" and row.series_title:
        number = (
            "" if row.season is None or row.episode is None else f" {row.season}x{row.episode:02}"
        )
        return f"{row.series_title}{number}: {row.title}"
    return row.title


def _shown(value: float | None, form: str = "g", unit: str = "") -> str:
    return NONE if value is None else f"{value:{form}}{unit}"
