"""The CSV files, each a SELECT of the embedded database, and `metadata.json`, which describes that for Datasette.

RFC 4180: commas, quotes doubled, lines ended by CRLF. UTF-8 without a byte order mark. A cell that a spreadsheet would run as a formula begins
with an apostrophe.
"""

from __future__ import annotations

import csv
from contextlib import ExitStack
from typing import TYPE_CHECKING

from moviecrawler.database.embedded import transaction
from moviecrawler.options import read_package_file
from moviecrawler.pipelines.files import replacing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

_AT_ONCE = 500
"""Rows that are written between two looks at the time."""
_IN_ORDER = "site, list_name IS NULL, list_name, list_rank IS NULL, list_rank, id"
"""Chart order where a list led to the title; an index gives it without sorting."""
_NEUTRAL = """CASE WHEN substr(ltrim({0}, ''''), 1, 1) IN ('=', '+', '-', '@', char(9), char(13), char(10), '＝', '＋', '－', '＠')
    THEN '''' || {0} ELSE {0} END"""  # noqa: RUF001 - full-width forms are run as well
_LIST = "(SELECT group_concat(value, '; ') FROM json_each(m.{0}))"
_OBJECT = "(SELECT group_concat(key || '=' || value, '; ') FROM json_each(m.{0}))"
_BOOLEAN = "CASE m.{0} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
_LISTS = (
    *("genres", "countries", "languages", "directors", "writers", "creators"),
    *("unknown_fields", "keywords", "interests", "taglines", "histogram"),
)
_BOOLEANS = frozenset({"list_computed", "certified"})

FILES: dict[str, tuple[str, str, str]] = {
    "misses.csv": ("misses", "site site_id url outcome reason checked_at", "site, site_id"),
    "scores.csv": (
        "(SELECT s.*, x.scraped_at FROM scores s JOIN movies x USING (site, site_id))",
        (
            "site site_id kind value scale count scraped_at average average_scale reviews liked neutral disliked certified"
            " sentiment histogram"
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
        "(SELECT o.*, x.scraped_at, coalesce(o.seen_at, x.scraped_at) AS seen FROM offers o JOIN movies x USING (site, site_id))",
        "site site_id provider kind country quality price currency url source scraped_at seen:seen_at",
        "site, site_id",
    ),
    "related.csv": ("related", "site site_id relation position related_id title connection", "site, site_id, position"),
    "awards.csv": ("awards", "site site_id event wins nominations", "site, site_id"),
    "people.csv": ("people", "site person_id name", "site, person_id, name"),
    "movies.csv": (
        "movies",
        (
            "site site_id imdb_id url title original_title kind title_type year end_year release_date runtime_minutes genres countries"
            " languages certificate directors writers creators plot poster_url imdb_rating imdb_votes metascore metascore_reviews"
            " metacritic_user_score metacritic_user_ratings tomatometer tomatometer_reviews popcornmeter popcornmeter_ratings"
            " imdb_top250_rank imdb_top250_tv_rank popularity_rank budget budget_currency opening_weekend opening_weekend_currency"
            " domestic_gross domestic_gross_currency worldwide_gross worldwide_gross_currency series_id series_title season episode"
            " list_name list_rank list_computed source scraped_at unknown_fields poster_width poster_height consensus keywords interests"
            " taglines external_ids season_count episode_count critic_review_count"
        ),
        _IN_ORDER,
    ),
}
"""Of each file: the table, its columns (`column:name in the file` where that is another), and their order. `movies.csv` comes last."""


class OutOfTimeError(Exception):
    """An export has taken as long as it may. Nothing is lost: the next one writes all."""


def export(connection: sqlite3.Connection, folder: Path, check_time: Callable[[], None]) -> None:
    """Replace the CSV files of a folder. One process at a time may do so.

    `check_time` is called now and then, and may raise OutOfTimeError. Raises that, OSError or sqlite3.OperationalError.
    """
    with ExitStack() as stack:
        # All reads see the same moment, while other processes go on writing. What is written from here on is exported once more.
        stack.enter_context(transaction(connection, "DEFERRED"))
        ((written,),) = connection.execute("SELECT written FROM state")
        # Replaced in reverse order, `movies.csv` before the tables that refer to it.
        for name, (table, columns, order) in FILES.items():
            file = csv.writer(stack.enter_context(replacing(folder / name)))
            file.writerow(column.rpartition(":")[2] for column in columns.split())
            rows = connection.execute(_select(connection, table, columns, order))
            while part := rows.fetchmany(_AT_ONCE):
                file.writerows(part)
                check_time()
        metadata = stack.enter_context(replacing(folder / "metadata.json"))
        metadata.write(read_package_file(__package__, "metadata.json"))
    connection.execute("UPDATE state SET exported = ? WHERE exported < ?", (written, written))


def _select(connection: sqlite3.Connection, table: str, columns: str, order: str) -> str:
    """Return the query of a file's rows."""
    cells = {name: _cell(name) for name in (column.partition(":")[0] for column in columns.split())}
    numbers = _numbers(connection, table)
    inner = ", ".join(f"{cell} AS {name}" for name, cell in cells.items())
    outer = ", ".join(name if name in numbers else _NEUTRAL.format(name) for name in cells)
    # Without the limit, SQLite would make a list's text three times for each cell.
    return f"SELECT {outer} FROM (SELECT {inner} FROM {table} m ORDER BY {order} LIMIT -1)"  # noqa: S608 - nothing but names above


def _cell(column: str) -> str:
    forms = {"external_ids": _OBJECT, **dict.fromkeys(_LISTS, _LIST), **dict.fromkeys(_BOOLEANS, _BOOLEAN)}
    return forms.get(column, "m.{0}").format(column)


def _numbers(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns that hold numbers, which need no apostrophe."""
    name = next((word for word in table.split() if word in {"scores", "offers"}), table)
    return {
        column
        for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({name})")
        if kind in {"INTEGER", "NUMERIC"} and column not in _BOOLEANS
    }
