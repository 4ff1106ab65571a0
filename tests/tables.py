"""Reading back what crawls have left in files: the CSV files, and the embedded database."""

import csv
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, get_args

import msgspec

from moviecrawler.basics.values import parse_date
from moviecrawler.database.records import read_stored
from moviecrawler.database.sqlite import SqliteTables, read_sqlite
from moviecrawler.database.tables import FIELDS
from moviecrawler.items import AmountKind, Movie, Role
from moviecrawler.sites import SCORES
from moviecrawler.sites.fields import TYPES

_ROLES: dict[str, Role] = {"directors": "director", "writers": "writer", "creators": "creator"}
_SCORES = {kind: form.columns for kind, form in SCORES.items() if form.columns}
"""The columns of each score's value and count; the finer ones stand in `scores.csv` alone."""
_AMOUNTS = {"domestic": "domestic_gross", "worldwide": "worldwide_gross"}
"""The columns of amounts that are not named after their kind; that of the currency has `_currency`
behind it."""
NUMBERS = tuple(name for name, kind in TYPES.items() if kind == int | None)
_TEXTS = tuple(name for name, kind in TYPES.items() if kind == str | None)
TEXT_LISTS = tuple(
    name for name, kind in TYPES.items() if kind == list[str] and name != "unknown_fields"
)
_PLAIN = ("site", "title", "kind", "source", *NUMBERS, *_TEXTS)
"""Columns that hold the field of the same name, as it is; those of TEXT_LISTS hold several
values."""
MOVIE_COLUMNS = (
    *(name for name in FIELDS if name != "fetch"),
    *_ROLES,
    *(column for columns in _SCORES.values() for column in columns),
    *(
        name
        for kind in get_args(AmountKind)
        for name in (_AMOUNTS.get(kind, kind), f"{_AMOUNTS.get(kind, kind)}_currency")
    ),
)

_BETWEEN = "; "
"""Stands between the values of a list in one cell."""
_BEFORE_ID = re.compile(r"; (?=[a-z_]{1,30}=)")
"""Stands between external ids in one cell. An id may have a semicolon of its own."""

FILES = ("movies.csv", "people.csv", "credits.csv", "scores.csv", "misses.csv")
_LONGEST_CELL = 2**31 - 1


def read_movies(path: Path) -> Iterator[Movie]:
    """Yield the movies of a `movies.csv`, with what that table holds of them.

    It has no cast, and people without ids.
    """
    csv.field_size_limit(_LONGEST_CELL)
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        assert set(MOVIE_COLUMNS) == set(reader.fieldnames or ()), path
        for row in reader:
            assert None not in row, path
            yield msgspec.convert(_fields(row), Movie, strict=False)


def rows(path: Path, encoding: str = "utf-8") -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding=encoding, newline="") as file:
        return list(csv.DictReader(file, strict=True))


def check_readable(folder: Path) -> dict[str | None, Movie]:
    """Return the titles in `movies.csv`, after checking that all files are whole."""
    for name in FILES:
        text = (folder / name).read_bytes()
        assert text.endswith(b"\r\n")
        for row in rows(folder / name):
            assert None not in row
            assert None not in row.values()
    movies = list(read_movies(folder / "movies.csv"))
    assert len({movie.site_id for movie in movies}) == len(movies)
    return {movie.site_id: movie for movie in movies}


def sqlite_movies(folder: Path) -> list[Movie]:
    """Return the movies of an embedded database; none while it is not there, or being made."""
    with (
        suppress(FileNotFoundError, sqlite3.OperationalError),
        closing(read_sqlite(folder)) as connection,
    ):
        return [stored.movie for stored in read_stored(SqliteTables(connection), "true", ())]
    return []


def _fields(row: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a Movie as plain data, from the cells of MOVIE_COLUMNS."""
    cells = {column: cell or None for column, cell in row.items()}
    found: dict[str, Any] = {column: cells.get(column) for column in (*_PLAIN, "scraped_at")}
    if cells["release_date"] is not None:
        # A spreadsheet that saved the file wrote dates in its own way.
        parse_date(cells["release_date"])
    for column in (*TEXT_LISTS, "unknown_fields"):
        found[column] = _split(cells.get(column))
    ids = _BEFORE_ID.split(cells.get("external_ids") or "")
    found["external_ids"] = dict(part.split("=", 1) for part in ids if part)
    found["credits"] = [
        {"name": name, "role": role, "position": position}
        for column, role in _ROLES.items()
        for position, name in enumerate(_split(cells[column]), 1)
    ]
    found["scores"] = [
        {"kind": kind, "value": cells[value], "count": cells[count]}
        for kind, (value, count) in _SCORES.items()
        if cells[value] is not None
    ]
    found["amounts"] = [
        {"kind": kind, "value": cells[value], "currency": cells[f"{value}_currency"]}
        for kind in get_args(AmountKind)
        if cells[value := _AMOUNTS.get(kind, kind)] is not None
    ]
    return found


def _split(cell: str | None) -> list[str]:
    return cell.split(_BETWEEN) if cell else []
