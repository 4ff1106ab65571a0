"""Writes the CSV files and `metadata.json`.

Each CSV file is a view of the embedded database; `metadata.json` describes the database for
Datasette. The files are as in RFC 4180, in UTF-8 without a byte order mark, and hold each text as
it is. Those for Excel have the mark, and an apostrophe before a text that would run as a formula.
"""

from __future__ import annotations

import csv
from contextlib import ExitStack, closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock

from moviecrawler.basics.progress import Progress, log
from moviecrawler.basics.texts import neutralise
from moviecrawler.database.board import Wanted, read_board
from moviecrawler.database.sqlite import SqliteTables, transaction
from moviecrawler.database.tables import CHILDREN
from moviecrawler.pipelines.datasette import index_titles, metadata_of
from moviecrawler.pipelines.files import replacing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import TextIO

_BATCH_ROWS = 500
"""Rows that are written before the time is checked again."""
_LOCK_TIMEOUT_SECONDS = 600.0
"""Seconds to wait for another process's export."""
_SCOREBOARD = "scoreboard"
_VIEW = "csv_"
"""What the name of a file's view begins with."""
FILES: Final = tuple(
    f"{name}.csv"
    for name in (
        "misses",
        "lists",
        *(table.name for table in CHILDREN),
        "people",
        _SCOREBOARD,
        "movies",
    )
)
"""A file is `SELECT * FROM` its view, but for the scoreboard. `movies.csv` comes last."""


def is_outdated(connection: sqlite3.Connection, folder: Path) -> bool:
    """Return whether the CSV files of a folder lack what its database has."""
    ((written, exported),) = connection.execute("SELECT written, exported FROM state")
    if written == 0:
        return False
    return bool(written != exported) or not all((folder / name).is_file() for name in FILES)


def export(
    connection: sqlite3.Connection,
    folder: Path,
    is_late: Callable[[], bool] = lambda: False,
    *,
    excel: bool = False,
    report: Callable[[str], object] = log,
) -> None:
    """Replace the CSV files of a folder if they are outdated, or are wanted for Excel.

    Files for Excel stay outdated, so that the next export replaces them with plain ones.
    One process does so at a time. `is_late` is asked while waiting for another one, and between
    batches; `report` gets lines of progress. Raises TimeoutError when it is late, and then
    the files are as before; OSError or sqlite3.DatabaseError.
    """
    lock = FileLock(folder / "export.lock", timeout=_LOCK_TIMEOUT_SECONDS)
    with lock.acquire(cancel_check=is_late):
        # Another process may have exported our rows while we waited.
        if excel or is_outdated(connection, folder):
            _replace_files(connection, folder, is_late, excel=excel, report=report)


def write_csv(
    file: TextIO, header: Iterable[str], rows: Iterable[Iterable[Any]], *, excel: bool = False
) -> None:
    """Write rows to a file, for programs or for Excel."""
    writer = csv.writer(file)
    if excel:
        file.write("\ufeff")
        rows = map(_neutralised, rows)
    writer.writerow(header)
    writer.writerows(rows)


def _replace_files(
    connection: sqlite3.Connection,
    folder: Path,
    is_late: Callable[[], bool],
    *,
    excel: bool,
    report: Callable[[str], object],
) -> None:
    with Progress(report, "indexing titles and people for Datasette"):
        index_titles(connection, is_late)
    with ExitStack() as stack:
        # One transaction, so that all files show the same moment. Rows that are written from here
        # on are exported next time.
        stack.enter_context(transaction(connection, "DEFERRED"))
        ((written,),) = connection.execute("SELECT written FROM state")
        progress = stack.enter_context(
            Progress(report, f"writing CSV files in {folder}", _count_rows(connection))
        )
        # The stack closes them in reverse order: `movies.csv` is replaced before the files that
        # refer to it.
        for name in FILES:
            header, rows = _content_of(connection, name.removesuffix(".csv"))
            stack.enter_context(closing(rows))
            file = stack.enter_context(replacing(folder / name))
            write_csv(file, header, _in_time(rows, is_late, progress), excel=excel)
        metadata = stack.enter_context(replacing(folder / "metadata.json"))
        metadata.write(metadata_of(connection))
    if excel:
        connection.execute("UPDATE state SET exported = 0")
    else:
        connection.execute("UPDATE state SET exported = ? WHERE exported < ?", (written, written))


def _count_rows(connection: sqlite3.Connection) -> int:
    """Return about how many rows all files have."""
    names = {"lists": "list_entries", "movies": "records", _SCOREBOARD: "titles"}
    tables = (name.removesuffix(".csv") for name in FILES)
    rows = 0
    for table in tables:
        query = f"SELECT count(*) FROM {names.get(table, table)}"  # noqa: S608 - its name is ours
        rows += connection.execute(query).fetchone()[0]
    return rows


def _content_of(
    connection: sqlite3.Connection, name: str
) -> tuple[list[str], Generator[Iterable[Any]]]:
    """Return the header and the rows of a file."""
    if name == _SCOREBOARD:
        board = read_board(SqliteTables(connection), Wanted())
        return list(board.columns), csv_rows(board.rows)
    found = connection.execute(f"SELECT * FROM {_VIEW}{name}")  # noqa: S608 - its name is ours
    return [column for column, *_ in found.description], (row for row in found)


def csv_rows(rows: Iterable[Mapping[str, Any]]) -> Generator[list[Any]]:
    """Yield the cells of rows with values as JSON has them, as the files have these."""
    for row in rows:
        yield [csv_cell(value) for value in row.values()]


def csv_cell(value: Any) -> Any:
    """Return the cell of a value.

    >>> csv_cell(9.0), csv_cell(True), csv_cell(["same title", "same year"])
    (9, 'true', 'same title; same year')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _in_time(
    rows: Iterator[Iterable[Any]], is_late: Callable[[], bool], progress: Progress
) -> Iterator[Iterable[Any]]:
    while part := list(islice(rows, _BATCH_ROWS)):
        yield from part
        progress.done += len(part)
        if is_late():
            raise TimeoutError


def _neutralised(row: Iterable[Any]) -> list[Any]:
    """Return a row whose texts no spreadsheet takes for formulas."""
    return [neutralise(cell) if isinstance(cell, str) else cell for cell in row]
