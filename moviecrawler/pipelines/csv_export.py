"""Writes the CSV files and `metadata.json`.

Each CSV file is a SELECT of the embedded database; `metadata.json` describes the database for
Datasette. The files are as in RFC 4180, in UTF-8 without a byte order mark. A cell that a
spreadsheet would run as a formula begins with an apostrophe.
"""

from __future__ import annotations

import csv
from contextlib import ExitStack
from typing import TYPE_CHECKING

from filelock import FileLock

from moviecrawler.basics.files import read_package_file
from moviecrawler.database.embedded import transaction
from moviecrawler.pipelines.files import replacing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

_BATCH_ROWS = 500
"""Rows that are written before the time is checked again."""
_LOCK_TIMEOUT_SECONDS = 600.0
"""Seconds to wait for another process's export."""
_CHART_ORDER = "site, list_name IS NULL, list_name, list_rank IS NULL, list_rank, id"
"""The order of the list that led to a title; `movies` has an index on it."""
_FORMULA = "=+@\t\r\n＝＋－＠-"  # noqa: RUF001 - spreadsheets run full-width forms too
# The first GLOB is false of nearly all cells, and faster than a function.
_ESCAPED = f"""CASE WHEN {{0}} GLOB '[''{_FORMULA}]*' AND ltrim({{0}}, '''') GLOB '[{_FORMULA}]*'
    THEN '''' || {{0}} ELSE {{0}} END"""
_LIST = "(SELECT group_concat(value, '; ') FROM json_each(m.{0}))"
_OBJECT = "(SELECT group_concat(key || '=' || value, '; ') FROM json_each(m.{0}))"
_BOOLEAN = "CASE m.{0} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
_LISTS = (
    "genres",
    "countries",
    "languages",
    "directors",
    "writers",
    "creators",
    "unknown_fields",
    "keywords",
    "interests",
    "taglines",
    "histogram",
)
_BOOLEANS = frozenset({"list_computed", "certified"})

FILES: dict[str, tuple[str, str, str]] = {
    "misses.csv": ("misses", "site site_id url outcome reason checked_at", "site, site_id"),
    "scores.csv": (
        "(SELECT s.*, x.scraped_at FROM scores s JOIN movies x USING (site, site_id))",
        (
            "site site_id kind value scale count scraped_at average average_scale reviews"
            " liked neutral disliked certified sentiment histogram"
        ),
        "site, site_id",
    ),
    "credits.csv": (
        "credits",
        "site site_id role position person_id name character",
        "site, site_id, instr('director writer creator cast', role), position",
    ),
    "other_titles.csv": (
        "other_titles",
        "site site_id position title country language kind",
        "site, site_id, position",
    ),
    "offers.csv": (
        (
            "(SELECT o.*, x.scraped_at, coalesce(o.seen_at, x.scraped_at) AS seen"
            " FROM offers o JOIN movies x USING (site, site_id))"
        ),
        (
            "site site_id provider kind country quality price currency url source scraped_at"
            " seen:seen_at"
        ),
        "site, site_id",
    ),
    "related.csv": (
        "related",
        "site site_id relation position related_id title connection",
        "site, site_id, position",
    ),
    "awards.csv": ("awards", "site site_id event wins nominations", "site, site_id"),
    "people.csv": ("people", "site person_id name", "site, person_id, name"),
    "movies.csv": (
        "movies",
        (
            "site site_id imdb_id url title original_title kind title_type year end_year"
            " release_date runtime_minutes genres countries languages certificate directors"
            " writers creators plot poster_url imdb_rating imdb_votes metascore metascore_reviews"
            " metacritic_user_score metacritic_user_ratings tomatometer tomatometer_reviews"
            " popcornmeter popcornmeter_ratings imdb_top250_rank imdb_top250_tv_rank"
            " popularity_rank budget budget_currency opening_weekend opening_weekend_currency"
            " domestic_gross domestic_gross_currency worldwide_gross worldwide_gross_currency"
            " series_id series_title season episode list_name list_rank list_computed source"
            " scraped_at unknown_fields poster_width poster_height consensus keywords interests"
            " taglines external_ids season_count episode_count critic_review_count"
        ),
        _CHART_ORDER,
    ),
}
"""The table, the columns and the order of each file. `column:name` renames a column in the file.
`movies.csv` comes last."""


def is_outdated(connection: sqlite3.Connection, folder: Path) -> bool:
    """Return whether the CSV files of a folder lack what its database has."""
    ((written, exported),) = connection.execute("SELECT written, exported FROM state")
    if written == 0:
        return False
    return bool(written != exported) or not all((folder / name).is_file() for name in FILES)


def export(
    connection: sqlite3.Connection, folder: Path, is_late: Callable[[], bool] = lambda: False
) -> None:
    """Replace the CSV files of a folder if they are outdated.

    One process does so at a time. `is_late` is asked while waiting for another one, and between
    batches. Raises TimeoutError when it is late, and then the files are as before; OSError or
    sqlite3.DatabaseError.
    """
    lock = FileLock(folder / "export.lock", timeout=_LOCK_TIMEOUT_SECONDS)
    with lock.acquire(cancel_check=is_late):
        # Another process may have exported our rows while we waited.
        if is_outdated(connection, folder):
            _replace_files(connection, folder, is_late)


def _replace_files(
    connection: sqlite3.Connection, folder: Path, is_late: Callable[[], bool]
) -> None:
    with ExitStack() as stack:
        # One transaction, so that all files show the same moment. Rows that are written from here
        # on are exported next time.
        stack.enter_context(transaction(connection, "DEFERRED"))
        ((written,),) = connection.execute("SELECT written FROM state")
        # The stack closes them in reverse order: `movies.csv` is replaced before the files that
        # refer to it.
        for name, (table, columns, order) in FILES.items():
            file = csv.writer(stack.enter_context(replacing(folder / name)))
            file.writerow(column.rpartition(":")[2] for column in columns.split())
            rows = connection.execute(_select(connection, table, columns, order))
            while part := rows.fetchmany(_BATCH_ROWS):
                file.writerows(part)
                if is_late():
                    raise TimeoutError
        metadata = stack.enter_context(replacing(folder / "metadata.json"))
        metadata.write(read_package_file(__package__, "metadata.json"))
    connection.execute("UPDATE state SET exported = ? WHERE exported < ?", (written, written))


def _select(connection: sqlite3.Connection, table: str, columns: str, order: str) -> str:
    """Return the SELECT of a file's rows."""
    cells = {name: _cell(name) for name in (column.partition(":")[0] for column in columns.split())}
    numbers = _numbers(connection, table)
    inner = ", ".join(f"{cell} AS {name}" for name, cell in cells.items())
    outer = ", ".join(name if name in numbers else _ESCAPED.format(name) for name in cells)
    # The LIMIT keeps SQLite from merging the two SELECTs, which would build a list's text three
    # times for each cell.
    return (
        f"SELECT {outer}"  # noqa: S608 - only names from above
        f" FROM (SELECT {inner} FROM {table} m ORDER BY {order} LIMIT -1)"
    )


def _cell(column: str) -> str:
    forms = {
        "external_ids": _OBJECT,
        **dict.fromkeys(_LISTS, _LIST),
        **dict.fromkeys(_BOOLEANS, _BOOLEAN),
    }
    return forms.get(column, "m.{0}").format(column)


def _numbers(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns that hold numbers, which need no apostrophe."""
    name = next((word for word in table.split() if word in {"scores", "offers"}), table)
    return {
        column
        for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({name})")
        if kind in {"INTEGER", "NUMERIC"} and column not in _BOOLEANS
    }
