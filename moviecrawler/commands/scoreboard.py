"""`scrapy scoreboard`: print one row per title with every site's scores, or all of one title."""

from __future__ import annotations

import csv
import io
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from dataclasses import astuple
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from scrapy.commands import ScrapyCommand

from moviecrawler.basics.errors import ConfigurationError, OutputError, TransientStoreError
from moviecrawler.basics.progress import Progress
from moviecrawler.basics.texts import printable
from moviecrawler.commands.base import (
    LEAST_TITLE,
    NONE,
    BaseCommand,
    columns_of,
    option,
    print_csv,
    print_json,
    program,
    score_text,
    table,
    whole_number,
)
from moviecrawler.sites import BY_AUTHORITY, ID_SITE, SCOREBOARD_KINDS, SCORES, SITES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from moviecrawler.database.board import Board, Row
    from moviecrawler.database.lookup import ScorePoint, Watching, WholeTitle
    from moviecrawler.database.schema import SchemaTables
    from moviecrawler.items import ScoreKind, TitleKind

_MAX_WIDTH = 120
_MAX_TABLE_ROWS = 100_000
"""Rows of a table: all of them are in memory, as their widths are measured before the first is
printed."""
_MAX_FOUND = 20
"""Titles that are listed where words are those of several."""
_SERIES = next(
    f"{site} -a list={name} -a limit=20"
    for site in BY_AUTHORITY
    if SITES[site].ids.series  # it has pages of seasons
    for name, listing in SITES[site].lists.items()
    if listing.kind == "series"
)
_CRAWLS: dict[TitleKind | None, str] = {
    "series": _SERIES,
    "season": _SERIES,
    "episode": f"{ID_SITE} -a ids=ID_OF_AN_EPISODE",
}
"""Arguments of `scrapy crawl` that get titles of a kind other than films."""
_ID_MIN_WIDTH = 110
"""A table with so many columns shows IMDb's ids, too."""
_FULL_NAMES_MIN_WIDTH = 96
_PARQUET_TYPES = {
    "id": "BIGINT",
    "integer": "INTEGER",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "time": "TIMESTAMPTZ",
}
"""By the types of `tables.py`; the others are texts."""


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


class Command(BaseCommand, ScrapyCommand):
    """Print one row per title with every site's scores, or all that is known of one title.

    Rows come by the rank in IMDb's list, then by votes. The scores are those of the database that
    DATABASE_URL names, or of the embedded one. An id, a URL or words of a title print that title on
    all sites, and how its scores went.
    """

    arguments = "[options] [ID|URL|WORDS …]"
    options = (
        option("words", nargs="*", metavar="TITLE", help="this title: an id, a URL or words of it"),
        option(
            "--kind",
            choices=["movie", "series", "season", "episode"],
            help="print these only; default: all but seasons and episodes. "
            "IMDb's rating of a season is the average of its episodes",
        ),
        option(
            "--list",
            dest="list_name",
            metavar="NAME",
            help="the titles of a list by their ranks, such as top, or SITE:popular",
        ),
        option(
            "--where",
            help="rows for which it is true, in SQL, such as 'year >= 2020 AND metascore > 80'",
        ),
        option(
            "--sort",
            type=_names,
            default=[],
            help="by these columns: numbers from the highest, texts from A; or with :asc or :desc",
        ),
        option("--columns", type=_names, default=[], help="print these columns alone"),
        option("--limit", type=whole_number, help="print the first N rows only"),
        option(
            "--format",
            choices=["table", "csv", "json", "parquet"],
            default="table",
            help="default: table; the others have all columns",
        ),
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
        from moviecrawler.database.reading import reading

        if opts.excel and not opts.export and opts.format != "csv":
            raise ConfigurationError("--excel is for CSV; add --format csv, or --export")
        if opts.format == "parquet" and sys.stdout.isatty():
            raise ConfigurationError(
                "parquet is not text for a terminal; write it to a file, with > scoreboard.parquet"
            )
        folder = Path(self.settings.get("DATA_DIR", "data"))
        try:
            if opts.export:
                _export_files(folder, excel=opts.excel)
                return
            is_embedded = self.settings.getbool("SQLITE_ENABLED", True)
            if is_embedded and not self.settings.get("DATABASE_URL"):
                _match(folder)
            with reading(self.settings) as tables, Progress(_report, "reading the scoreboard"):
                if opts.words:
                    self._print_title(tables, opts)
                else:
                    self._print_rows(tables, opts)
        except FileNotFoundError as error:
            if error.filename is None:
                raise
            self.fail(f"there is no {error.filename} yet; {_crawl_first(opts.kind, folder)}")

    def _print_rows(self, tables: SchemaTables, opts: argparse.Namespace) -> None:
        from moviecrawler.database.board import Board, BoardQuery, read_board

        wanted = BoardQuery(
            kind=opts.kind,
            list_name=opts.list_name,
            where=opts.where,
            sort=opts.sort,
            limit=opts.limit,
            columns=opts.columns,
        )
        is_whole = opts.format == "csv" and not (opts.excel or any(astuple(wanted)))
        if is_whole and _print_file(tables, Path(self.settings.get("DATA_DIR", "data"))):
            return
        board = read_board(tables, wanted)
        with closing(board.cells) as cells:
            first = list(islice(cells, 1))
            if first:
                all_cells = (row for row in chain(first, cells))
                _print(Board(columns=board.columns, cells=all_cells), opts)
            elif opts.where or opts.list_name:
                self.fail(f"{tables.name} holds no such title")
            else:
                kind = opts.kind or "title"
                self.fail(f"{tables.name} holds no {kind} yet; {_crawl_first(opts.kind)}")

    def _print_title(self, tables: SchemaTables, opts: argparse.Namespace) -> None:
        """Print one title, or those of which one is meant."""
        from moviecrawler.database.lookup import find_titles, read_title

        title_ids = find_titles(tables, opts.words)
        named = " ".join(opts.words)
        if not title_ids:
            self.fail(f"{tables.name} holds no title {named!r}")
        elif len(title_ids) > 1:
            shown = [read_title(tables, title_id) for title_id in title_ids[:_MAX_FOUND]]
            lines = [[t.title, _shown(t.year), t.kind, t.sites[0].site_id] for t in shown]
            print(table([["Title", "Year", "Kind", "Id"], *lines]))
            self.fail(f"{len(title_ids):,} titles are {named!r}; give an id, or more words")
        elif opts.format in {"csv", "parquet"}:
            opts.where = f"title_id = {title_ids[0]}"
            self._print_rows(tables, opts)
        else:
            title = read_title(tables, title_ids[0])
            if opts.format == "json":
                print_json(title, indent=2)
            else:
                print(_describe(title))


def _crawl_first(kind: TitleKind | None, folder: Path | None = None) -> str:
    """Return a sentence on how to get titles; in `folder` there may be those of the demo."""
    crawl = _CRAWLS.get(kind, f"{ID_SITE} -a list=top")
    sentence = f"crawl first, such as with: {program()} crawl {crawl}"
    if folder is not None and (folder / "demo" / "movies.sqlite3").exists():
        shown = f"{program()} scoreboard -s DATA_DIR={folder / 'demo'}"
        sentence += f"; the demo's movies are shown by: {shown}"
    return sentence


def _match(folder: Path) -> None:
    """Match the records of several sites, unless that is done; who may not write goes without."""
    from moviecrawler.database.reading import reading_sqlite
    from moviecrawler.database.scoreboard import match_embedded
    from moviecrawler.database.sqlite import open_sqlite

    with reading_sqlite(folder) as tables:
        ((is_done,),) = tables.select("SELECT written = matched FROM state", ())
    if is_done:
        return
    try:
        with closing(open_sqlite(folder)) as connection:
            match_embedded(connection, _report)
    except TransientStoreError as error:
        print(printable(f"the sites' records are not matched: {error}"), file=sys.stderr)


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _export_files(folder: Path, *, excel: bool) -> None:
    """Write the CSV files of the embedded database. Raises FileNotFoundError when it is missing."""
    from moviecrawler.database.reading import reading_sqlite
    from moviecrawler.database.sqlite import leave_readable, open_sqlite
    from moviecrawler.pipelines.csv_export import export

    with reading_sqlite(folder):
        pass
    with closing(open_sqlite(folder)) as writing:
        try:
            export(writing, folder, excel=excel, report=_report)
        except (OSError, sqlite3.DatabaseError) as error:
            raise OutputError(f"the CSV files in {folder} can't be replaced: {error}") from error
    leave_readable(folder)


# --- Many titles ----------------------------------------------------------------------------------


def _print(board: Board, opts: argparse.Namespace) -> None:
    from moviecrawler.pipelines.csv_export import csv_rows

    if opts.format == "csv":
        print_csv(board.columns, csv_rows(board), excel=opts.excel)
    elif opts.format == "parquet":
        _print_parquet(board)
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal may lack some letters
        if opts.format == "json":
            _print_json(board.rows)
        else:
            width = min(_MAX_WIDTH, shutil.get_terminal_size(fallback=(100, 24)).columns)
            shown = list(islice(board.rows, _MAX_TABLE_ROWS))
            print(_plain_table(shown) if opts.columns else render_table(shown, width))


def _print_file(tables: SchemaTables, folder: Path) -> bool:
    """Print `scoreboard.csv` as it is, if it has what the database has; return whether it does."""
    from moviecrawler.database.sqlite import SqliteTables
    from moviecrawler.pipelines.csv_export import is_outdated

    if not isinstance(tables, SqliteTables) or is_outdated(tables.connection, folder):
        return False
    if tables.select("SELECT EXISTS (SELECT 1 FROM scoreboard)") == [(0,)]:
        return False
    with (folder / "scoreboard.csv").open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    return True


def _print_json(records: Iterator[Row]) -> None:
    for number, record in enumerate(records):
        text = msgspec.json.format(msgspec.json.encode(record), indent=2).decode()
        sys.stdout.write((",\n" if number else "[\n") + "  " + text.replace("\n", "\n  "))
    sys.stdout.write("\n]\n")


def _print_parquet(board: Board) -> None:
    """Print a Parquet file, which DuckDB makes of a CSV file in bounded memory."""
    import duckdb

    from moviecrawler.pipelines.csv_export import csv_rows

    types = {name: _PARQUET_TYPES.get(kind, "VARCHAR") for name, kind in board.columns.items()}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "scoreboard.csv")
        target = Path(folder, "scoreboard.parquet")
        with source.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(csv_rows(board))
        with duckdb.connect(
            config={"threads": 1, "memory_limit": "256MB", "temp_directory": folder}
        ) as connection:
            table = connection.read_csv(str(source), header=False, columns=types, auto_detect=False)
            table.write_parquet(str(target))
        with target.open("rb") as made:
            shutil.copyfileobj(made, sys.stdout.buffer)


def _plain_table(rows: Sequence[Row]) -> str:
    """Return the values of columns as they are stored, in lines."""
    from moviecrawler.pipelines.csv_export import csv_cell

    cells = [
        [NONE if value is None else str(csv_cell(value)) for value in row.values()] for row in rows
    ]
    return table([list(rows[0]), *cells])


def render_table(rows: Sequence[Row], width: int = 100) -> str:
    """Return the rows as lines under a header, without a newline at the end.

    Columns that do not fit into the width are left out, such as votes.
    """
    is_wide = width >= _FULL_NAMES_MIN_WIDTH
    title = ["Title", *(_full_title(row) for row in rows)]
    year = ["Year", *(_shown(row["year"]) for row in rows)]
    kind = ["Kind", *(row.get("kind", "") for row in rows)]
    votes = ["Votes", *(_shown(row["imdb_votes"], ",") for row in rows)]
    imdb_id = ["IMDb id", *(row.get("imdb_id") or NONE for row in rows)]
    first, *others = [
        [_heading(score, is_wide=is_wide), *(_score(row, score) for row in rows)]
        for score in [ID_SITE, *(score for score in SCOREBOARD_KINDS if score != ID_SITE)]
    ]
    columns = [title, year, kind, first, votes, *others, imdb_id]
    if "rank" in rows[0]:
        columns.insert(0, ["Rank", *(str(row["rank"]) for row in rows)])
    if width < _ID_MIN_WIDTH:
        columns.remove(imdb_id)
    if len(set(kind[1:])) == 1:
        columns.remove(kind)
    for column in (imdb_id, votes, kind, *reversed(others)):
        if column in columns and _min_width(columns, title) > width:
            columns.remove(column)
    lines = list(zip(*columns, strict=True))
    shown = table(lines, right=True, width=width, title=columns.index(title))
    if any(_is_derived(row) for row in rows):
        shown += "\n* derived: the average of the season's episodes, weighted by votes"
    return shown


def _min_width(columns: Sequence[Sequence[str]], title: Sequence[str]) -> int:
    """Return how many columns of a terminal a table takes when its titles are cut."""
    widths = [
        LEAST_TITLE if column is title else max(map(columns_of, column)) for column in columns
    ]
    return sum(widths) + 2 * (len(columns) - 1)


def _heading(kind: ScoreKind, *, is_wide: bool) -> str:
    score = SCORES[kind]
    heading = score.heading or score.name
    return heading if is_wide else score.short_heading or heading


def _score(row: Row, kind: ScoreKind) -> str:
    columns = SCORES[kind].columns
    assert columns is not None  # noqa: S101 - it is one of the scoreboard
    mark = "*" if kind == ID_SITE and _is_derived(row) else ""
    return score_text(kind, row[columns[0]]) + mark


def _is_derived(row: Row) -> bool:
    return bool(row.get("imdb_rating_derived"))


def _full_title(row: Row) -> str:
    """Return a title; of a season or an episode with its series and number."""
    title = row["title"]
    if "series_title" not in row:
        return str(title)
    series = row["series_title"] or "Unknown series"
    if "episode" not in row:
        own = "" if title in {None, series, f"Season {row['season']}"} else f": {title}"
        return f"{series}, season {row['season']}{own}"
    number = (
        ""
        if row["season"] is None or row["episode"] is None
        else f" {row['season']}x{row['episode']:02}"
    )
    return f"{series}{number}: {title or row['imdb_id']}"


def _shown(value: float | None, form: str = "g") -> str:
    return NONE if value is None else f"{value:{form}}"


# --- One title ------------------------------------------------------------------------------------


def _describe(title: WholeTitle) -> str:
    """Return what all sites have on a title, in lines."""
    runtime = f", {title.runtime_minutes} min" if title.runtime_minutes else ""
    lines = [printable(f"{title.title} ({title.year or '?'}), {title.kind}{runtime}"), ""]
    scores = [["Site", "Score", "Value", "Count", "Read"]]
    for page in title.sites:
        cells = map(_score_cells, page.scores) if page.scores else [[NONE] * 3]
        scores += [[SITES[page.site].name, *row, page.read_at[:10]] for row in cells]
    lines += [table(scores), "", *(printable(page.url) for page in title.sites)]
    if title.matched_by:
        lines += ["", *(printable(f"one title: {reasons}") for reasons in title.matched_by)]
    if title.offers:
        lines += ["", "to watch:", *map(_offer, title.offers)]
    history = [
        [_minute(point.since or ""), SITES[point.site].name, *_score_cells(point)]
        for point in title.history
    ]
    lines += ["", table([["Since (UTC)", "Site", "Score", "Value", "Count"], *history])]
    return "\n".join(lines)


def _offer(offer: Watching) -> str:
    price = None if offer.price is None else f"{offer.price:g} {offer.currency}"
    facts = [offer.provider, offer.kind, offer.country, offer.quality, price]
    return "  " + printable(", ".join(filter(None, facts)))


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def _score_cells(score: ScorePoint) -> list[str]:
    name = SCORES[score.kind].name if score.kind in SCORES else score.kind
    return [name, score_text(score.kind, score.value), _shown(score.count, ",")]
