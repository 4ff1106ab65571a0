"""Writes the CSV files and `metadata.json`.

Each CSV file is a view of the embedded database; `metadata.json` describes the database for
Datasette. The files are as in RFC 4180, in UTF-8 without a byte order mark, and hold each text as
it is. Those for Excel have the mark, and an apostrophe before a text that would run as a formula.

A file is replaced whole, but only what has changed is written anew. Its parts are the rows of each
record or title: those of the others are copied from the file before.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock

from moviecrawler.basics.progress import Progress, log
from moviecrawler.database.board import Board, BoardQuery, converted_columns, json_value, read_board
from moviecrawler.database.csv_files import (
    changed_records,
    changed_titles,
    forget_changes,
    forget_files,
    intact_files,
    is_changed,
    note_file,
    parts_of,
    track_changes,
)
from moviecrawler.database.sqlite import SqliteTables, transaction
from moviecrawler.database.tables import CHILDREN
from moviecrawler.database.views import csv_parts
from moviecrawler.pipelines.csv_parts import Encoder, PartsFile
from moviecrawler.pipelines.datasette import index_titles, metadata_of
from moviecrawler.pipelines.files import replacing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

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
_NEW_PARTS = "SELECT part_id FROM temp.new_parts"
"""The records or titles that are read."""


def is_outdated(connection: sqlite3.Connection, folder: Path) -> bool:
    """Return whether the CSV files of a folder are not what its database has."""
    ((written, exported),) = connection.execute("SELECT written, exported FROM state")
    if written == 0:
        return False
    if written != exported or is_changed(connection):
        return True
    return not intact_files(connection, folder).issuperset(FILES)


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


def _replace_files(
    connection: sqlite3.Connection,
    folder: Path,
    is_late: Callable[[], bool],
    *,
    excel: bool,
    report: Callable[[str], object],
) -> None:
    last_change = track_changes(connection)
    with Progress(report, "indexing titles and people for Datasette"):
        index_titles(connection, is_late)
    encoder = Encoder(excel=excel)
    written_files = []
    with ExitStack() as stack:
        # One transaction, so that all files show the same moment. Rows that are written from here
        # on are exported next time.
        stack.enter_context(transaction(connection, "DEFERRED"))
        ((written,),) = connection.execute("SELECT written FROM state")
        progress = stack.enter_context(
            Progress(report, f"writing CSV files in {folder}", _count_rows(connection))
        )

        def count(rows: int) -> None:
            progress.done += rows
            if is_late():
                raise TimeoutError

        intact = set() if excel else intact_files(connection, folder)
        records = changed_records(connection)
        titles = changed_titles(connection)
        # The stack closes them in reverse order: `movies.csv` is replaced before the files that
        # refer to it.
        for name in FILES:
            file = PartsFile(
                folder / name,
                _parts_of(connection, name.removesuffix(".csv")),
                parts_of(connection, name) if name in intact else None,
                titles if name == f"{_SCOREBOARD}.csv" else records,
            )
            if not file.is_as_before:
                header, rows = _read(connection, file)
                target = stack.enter_context(replacing(folder / name)).buffer
                with closing(rows):
                    head = encoder.header(header)
                    written_files.append(file.write(target, head, rows, encoder, count))
        metadata = stack.enter_context(replacing(folder / "metadata.json"))
        metadata.write(metadata_of(connection))
    with transaction(connection, "IMMEDIATE"):
        if excel:
            forget_files(connection)
            connection.execute("UPDATE state SET exported = 0")
            return
        for written_file in written_files:
            note_file(connection, written_file)
        forget_changes(connection, last_change)
        statement = "UPDATE state SET exported = ? WHERE exported < ?"
        connection.execute(statement, (written, written))


def _count_rows(connection: sqlite3.Connection) -> int:
    """Return about how many rows all files have."""
    names = {"lists": "list_entries", "movies": "records", _SCOREBOARD: "titles"}
    tables = (name.removesuffix(".csv") for name in FILES)
    rows = 0
    for table in tables:
        query = f"SELECT count(*) FROM {names.get(table, table)}"  # noqa: S608 - its name is ours
        rows += connection.execute(query).fetchone()[0]
    return rows


def _parts_of(connection: sqlite3.Connection, name: str) -> Iterator[tuple[int, int]]:
    """Yield the id of each part of a file, and how many rows it has, in their order."""
    if name == _SCOREBOARD:
        for row in read_board(SqliteTables(connection), BoardQuery(columns=["title_id"])).rows:
            yield row["title_id"], 1
    else:
        yield from connection.execute(csv_parts(name))


def _read(
    connection: sqlite3.Connection, file: PartsFile
) -> tuple[list[str], Generator[Iterable[Any]]]:
    """Return the header of a file, and the rows of its new parts."""
    name = file.path.stem
    is_whole = len(file.new) == len(file.ids)
    if not is_whole:
        connection.execute("DROP TABLE IF EXISTS temp.new_parts")
        connection.execute("CREATE TEMPORARY TABLE new_parts (part_id INTEGER PRIMARY KEY)")
        ids = ((part,) for part in file.new)
        connection.executemany("INSERT INTO temp.new_parts VALUES (?)", ids)
    if name == _SCOREBOARD:
        where = None if is_whole else f"title_id IN ({_NEW_PARTS})"
        board = read_board(SqliteTables(connection), BoardQuery(where=where))
        return list(board.columns), csv_rows(board)
    query = f"SELECT * FROM {_VIEW}{name}"  # noqa: S608 - its name is ours
    if not is_whole:
        records = f"FROM records WHERE record_id IN ({_NEW_PARTS})"
        query += f" WHERE (site, site_id) IN (SELECT site, site_id {records})"
    found = connection.execute(query)
    return [column for column, *_ in found.description], (row for row in found)


def csv_rows(board: Board) -> Generator[list[Any]]:
    """Yield the rows of a board as the files have them."""
    converted = converted_columns(board.columns)
    for row in board.cells:
        cells = list(row)
        for place, kind in converted.items():
            if cells[place] is not None:
                cells[place] = csv_cell(json_value(kind, cells[place]))
        yield cells


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
