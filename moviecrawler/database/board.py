"""Reads rows of the scoreboard and of the views of seasons and episodes, filtered and sorted."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.database.dictionary import describe_view
from moviecrawler.database.records import text_of
from moviecrawler.database.sqlite import SqliteTables, tables_in_memory
from moviecrawler.sites import BY_AUTHORITY, ID_SITE, SCORES

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from moviecrawler.database.records import Row as Cells
    from moviecrawler.database.schema import SchemaTables
    from moviecrawler.items import Site, TitleKind

Row = dict[str, Any]
"""The cells of a row by their columns, which views declare."""

RANK = "rank"
"""The column that a list adds."""
_VIEWS: dict[TitleKind | None, str] = {
    "season": "season_scores",
    "episode": "episode_scores",
}
_WHOLE = {score.columns[0] for score in SCORES.values() if score.columns and score.form == "g"}
"""Columns of scores that are whole numbers."""
_OTHER_IDS = [f"{site}_id" for site in BY_AUTHORITY if site != ID_SITE]
_BY_TITLE = ("imdb_list_rank", "imdb_votes DESC", "best_list_rank", "title", "imdb_id")
_BY_PART = ("imdb_votes DESC", "series_title", "season")
_TEXTS = {"title", "imdb_id", "series_title", *_OTHER_IDS}
"""Columns of these that are ordered byte by byte, as otherwise two databases would differ."""
_SAME = {"text", "integer", "id"}
"""Types whose values are the same in both databases, and in JSON."""
_COLLATIONS = {"sqlite": "BINARY", "postgres": '"C"'}
_SECONDS = 120.0
"""Longest time without a row of a condition."""
_STEPS = 100_000
"""Steps of SQLite after which the time is looked at."""
_MAX_TEXT_BYTES = 10_000_000
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
"""What a condition may do in SQLite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardQuery:
    """Which rows are wanted, and in what order."""

    kind: TitleKind | None = None
    """None: all but seasons and episodes."""
    list_name: str | None = None
    """A list, as its site's spider names it, or as `site:list`. Its ranks come first."""
    where: str | None = None
    """A condition in SQL, over the columns."""
    sort: Sequence[str] = ()
    """Columns, to which `:asc` or `:desc` may be added."""
    limit: int | None = None
    columns: Sequence[str] = ()
    """The columns of the rows; empty: all."""

    @property
    def view(self) -> str:
        """The view that has the rows."""
        return _VIEWS.get(self.kind, "scoreboard")


@dataclass(slots=True, kw_only=True)
class Board:
    """Rows, with the types of their columns as `tables.py` names them."""

    columns: dict[str, str]
    cells: Generator[Cells]
    """The rows as the database has them; to be closed before it is."""

    @property
    def rows(self) -> Iterator[Row]:
        """The rows with values as both databases have them in JSON."""
        converted = converted_columns(self.columns)
        for row in self.cells:
            values = list(row)
            for place, kind in converted.items():
                values[place] = json_value(kind, values[place])
            yield dict(zip(self.columns, values, strict=True))


def read_board(tables: SchemaTables, query: BoardQuery) -> Board:
    """Return the rows of a database that a query selects.

    By default, IMDb's main list comes first, then the other titles by votes. Raises
    ConfigurationError for a column, a list or a condition that can't be, and while rows are read
    for a condition that takes too long.
    """
    columns = _columns_of(tables, query)
    source = f"SELECT b.* FROM {query.view} b"
    values: list[str] = []
    if query.list_name is not None:
        if query.kind in _VIEWS:
            raise ConfigurationError(f"--list: lists have no ranks of {query.kind}s")
        site, name = _list_of(tables, query.list_name)
        columns = {RANK: "integer", **columns}
        source = (
            f"SELECT l.rank, b.* FROM {query.view} b JOIN list_ranks l"
            f" ON l.site_id = b.{site}_id AND l.site = {{mark}} AND l.list_name = {{mark}}"
        )
        values = [site, name]
    conditions = []
    if query.kind is not None and query.kind not in _VIEWS:
        conditions.append(f"kind = '{query.kind}'")
    if query.where is not None:
        _check(tables, source, query.where, columns)
        conditions.append(f"(\n{query.where}\n)")
    order = _order(query, columns)
    by = ", ".join(_in_order(column, _COLLATIONS[tables.dialect]) for column in order)
    if query.columns:
        check_columns("--columns", query.columns, list(columns))
        columns = {name: columns[name] for name in query.columns}
    names = ", ".join(f'"{name}"' for name in columns)
    statement = (
        f"SELECT {names} FROM ({source}) board"
        + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
        + f" ORDER BY {by}"
        + (f" LIMIT {query.limit:d}" if query.limit is not None else "")
    )
    return Board(
        columns=columns,
        cells=_cells(tables, statement, values, is_checked=query.where is not None),
    )


def _columns_of(tables: SchemaTables, query: BoardQuery) -> dict[str, str]:
    """Return the columns of the view, in its order, with their types."""
    if isinstance(tables, SqliteTables):
        return _described(tables.connection, query.view)
    with closing(tables_in_memory().connection) as connection:
        return _described(connection, query.view)


def _described(connection: sqlite3.Connection, view: str) -> dict[str, str]:
    return {entry.name: entry.type for entry in describe_view(connection, view)}


def check_columns(option: str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Raise ConfigurationError for the first name that is not a column."""
    unknown = next((name for name in names if name not in columns), None)
    if unknown is not None:
        raise ConfigurationError(
            f"{option}: there is no column {unknown!r}; there are {', '.join(columns)}"
        )


def _list_of(tables: SchemaTables, text: str) -> tuple[Site, str]:
    """Return the site and the name of a list that is stored."""
    known: list[tuple[Site, str]] = [
        (site, name)
        for site, name in tables.select("SELECT site, list_name FROM lists ORDER BY 1, 2", ())
    ]
    found = [(site, name) for site, name in known if text in {name, f"{site}:{name}"}]
    if len(found) == 1:
        return found[0]
    named = ", ".join(f"{site}:{name}" for site, name in found or known) or "none"
    why = "names lists of several sites" if found else "is not a stored list"
    raise ConfigurationError(f"--list: {text!r} {why}; there are {named}")


def _order(query: BoardQuery, columns: dict[str, str]) -> list[str]:
    """Return the columns by which rows are ordered."""
    default = _BY_PART if query.kind in _VIEWS else _BY_TITLE
    if query.kind == "episode":
        default = (*default, "episode")
    order = [] if query.list_name is None else [RANK]
    chosen = []
    for key in query.sort:
        name, _, direction = key.partition(":")
        check_columns("--sort", [name], list(columns))
        if direction not in {"", "asc", "desc"}:
            raise ConfigurationError(f"--sort: {key!r}; give COLUMN, COLUMN:asc or COLUMN:desc")
        # The best, the most and the newest come first.
        falls = direction == "desc" or (not direction and columns[name] != "text")
        chosen.append(f"{name} DESC" if falls else name)
    return [*chosen, *order, *default, *_OTHER_IDS, "title_id"]


def _in_order(column: str, collation: str) -> str:
    name, _, direction = column.partition(" ")
    collated = f"{name} COLLATE {collation}" if name in _TEXTS else name
    return f"{collated} {direction} NULLS LAST".replace("  ", " ")


# --- Conditions -----------------------------------------------------------------------------------


def _check(tables: SchemaTables, source: str, where: str, columns: dict[str, str]) -> None:
    """Raise ConfigurationError for what is not a condition over the columns.

    SQLite parses it for both databases, and refuses what does more than read.
    """
    if forbidden := next((sign for sign in ";{" if sign in where), None):
        raise ConfigurationError(f"--where takes one condition, without {forbidden}")
    # SQLite would take a name in quotes that is not a column for a text.
    check_columns("--where", re.findall('"([^"]*)"', where), list(columns))
    # Between WHEN and THEN there can be an expression alone; in WHERE, none over several rows.
    condition = f"(\n{where}\n)"
    checked = f"SELECT CASE WHEN {condition} THEN 1 END FROM ({source}) board WHERE {condition}"
    try:
        if isinstance(tables, SqliteTables):
            _explain(tables.connection, checked)
        else:
            with closing(tables_in_memory().connection) as connection:
                _explain(connection, checked)
    except (sqlite3.Error, sqlite3.Warning) as error:
        known = ", ".join(columns)
        raise ConfigurationError(f"--where: {error}; the columns are {known}") from None


def _explain(connection: sqlite3.Connection, statement: str) -> None:
    marks = statement.count("{mark}")
    with _reading_only(connection):
        connection.execute("EXPLAIN " + statement.replace("{mark}", "?"), [""] * marks).close()


@contextmanager
def _reading_only(connection: sqlite3.Connection) -> Iterator[None]:
    """Let statements read alone, with texts of a bounded length."""

    def authorise(action: int, *_: object) -> int:
        return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY

    before = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_TEXT_BYTES)
    connection.set_authorizer(authorise)
    try:
        yield
    finally:
        connection.set_authorizer(None)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)


def _cells(
    tables: SchemaTables, statement: str, values: Sequence[str], *, is_checked: bool
) -> Generator[Cells]:
    if not isinstance(tables, SqliteTables) or not is_checked:
        yield from tables.stream(statement, *values)
        return
    last_row = time.monotonic()
    tables.connection.set_progress_handler(lambda: time.monotonic() - last_row > _SECONDS, _STEPS)
    try:
        with _reading_only(tables.connection):
            for row in tables.stream(statement, *values):
                yield row
                last_row = time.monotonic()
    except sqlite3.OperationalError as error:
        if str(error) != "interrupted":
            raise
        raise ConfigurationError(
            f"no row was found within {_SECONDS:g} s; give a simpler --where or --sort"
        ) from error
    except sqlite3.DataError as error:
        raise ConfigurationError(f"--where: {error}") from error
    finally:
        tables.connection.set_progress_handler(None, 0)


def converted_columns(columns: Mapping[str, str]) -> dict[int, str]:
    """Return the columns whose cells are not the same in both databases and in JSON.

    The types of `json_value` are by the places of these columns.
    """
    kinds = ("whole" if name in _WHOLE else kind for name, kind in columns.items())
    return {place: kind for place, kind in enumerate(kinds) if kind not in _SAME}


def json_value(kind: str, cell: Any) -> object:
    """Return a cell as both databases have it in JSON."""
    if cell is None:
        return None
    if kind == "number":
        return float(cell)
    if kind == "whole":
        return int(cell) if cell == int(cell) else float(cell)
    if kind == "json":
        return msgspec.json.decode(cell) if isinstance(cell, str) else cell
    if kind == "boolean":
        return bool(cell)
    if isinstance(cell, datetime):
        return text_of(cell)
    return float(cell) if isinstance(cell, Decimal) else cell
