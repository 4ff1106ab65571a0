"""The data dictionary: what every table, view and column is, from their declarations.

A column of a record is described by the docstring of its field in `items.py`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, get_args, get_type_hints

from moviecrawler.basics.files import read_package_file
from moviecrawler.database.records import ATTRIBUTES, ITEMS
from moviecrawler.database.tables import (
    CATALOGUE,
    CSV_TABLES,
    LIST_ENTRIES,
    LISTS,
    RECORDS,
    SCORES,
    TABLES,
    TITLES,
    Column,
    Table,
)
from moviecrawler.database.views import MAKERS, VIEWS, csv_views
from moviecrawler.items import ListEntry, ListPage, Miss, Movie
from moviecrawler.sites import SITES
from moviecrawler.sites.fields import AMOUNT_COLUMNS, ONLY_IN_DATASETS, SCORE_DETAILS, datasets_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_ITEMS = ITEMS | {
    "ended_offers": ITEMS["offers"],
    "records": Movie,
    "misses": Miss,
    "lists": ListPage,
    "list_pages": ListPage,
    "list_entries": ListEntry,
}
"""The items that the rows of a table are made of."""
_OURS = ("site", "source", "unknown_fields", "scraped_at", "fetch")
"""Fields of `Movie` that no page states."""
_UNKNOWN = "where the site has none, or unknown_fields names it"
_SHARED = "0 to 100"
_DERIVED = {
    "average_scale": Column("integer", "As score_kinds.average_highest.", "as there"),
    "best_list_rank": Column("integer", "Its best rank in any list.", "where it is in no list"),
    "critics_mean": Column("number", "Average of critics' scores.", "where none is known", _SHARED),
    "episodes": Column("integer NOT NULL", "Its episodes that are stored.", unit="episodes"),
    "normalised": Column("number NOT NULL", "The value on one scale.", unit=_SHARED),
    "nth": Column("integer NOT NULL", "Its place among those of one site with these numbers."),
    "overall": Column(
        "number",
        "Average of critics_mean and users_mean, which count the same.",
        "unless both are known",
        _SHARED,
    ),
    "scale": Column("integer NOT NULL", "As score_kinds.highest."),
    "scores_known": Column("integer NOT NULL", "How many of its scores are known.", unit="scores"),
    "series": Column("text", "The series by its site and id.", "where its series is stored"),
    "series_imdb_id": Column("text", "The series' id on IMDb.", "where it is not known"),
    "series_title": Column("text", "The title of the series.", "where it is not known"),
    "tmdb_id": Column(
        "integer",
        "TMDB's number: of a series at themoviedb.org/tv/, of all else at themoviedb.org/movie/.",
        "where no import has named it",
    ),
    "users_mean": Column("number", "Average of users' scores.", "where none is known", _SHARED),
}
"""The columns that views alone have."""
_BASES = {
    "list_ranks": (LIST_ENTRIES, LISTS),
    "title_scores": (SCORES, RECORDS),
    "csv_lists": (LIST_ENTRIES, LISTS),
    "csv_movies": (RECORDS,),
    "movies": (RECORDS,),
}
"""The tables whose columns a view has; that of a CSV file has those of its table, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one column is."""

    name: str
    type: str
    meaning: str
    null: str
    """When it is null; empty: never."""
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """What one table or view is."""

    name: str
    meaning: str
    columns: list[Entry]
    is_view: bool = False
    is_in_sqlite: bool = True


def describe(connection: sqlite3.Connection) -> Iterator[Relation]:
    """Yield what each table and view of a database is, and what Postgres has beside these."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    exported = [table for table in CSV_TABLES if (table.name,) in found]
    for table in (*TABLES, *exported, *CATALOGUE):
        yield Relation(
            name=table.name,
            meaning=table.meaning,
            columns=[_of_table(table, name) for name in table.columns],
            is_in_sqlite=table not in CATALOGUE,
        )
    derived = _derived(connection)
    files = {name: f"What {name.removeprefix('csv_')}.csv has." for name in csv_views(())}
    for view, meaning in (VIEWS | files).items():
        columns = _columns_of(connection, view, derived)
        yield Relation(name=view, meaning=meaning, columns=columns, is_view=True)


def describe_view(connection: sqlite3.Connection, view: str) -> list[Entry]:
    """Return what each column of a view is, in their order."""
    return _columns_of(connection, view, _derived(connection))


def _columns_of(
    connection: sqlite3.Connection, view: str, derived: dict[str, Entry]
) -> list[Entry]:
    # To prepare a query of the view would take three times as long.
    names = connection.execute("SELECT name FROM pragma_table_info(?)", (view,))
    return [_of_view(view, name, derived) for (name,) in names]


@cache
def _of_table(table: Table, name: str) -> Entry:
    column = table.columns[name]
    attribute = ATTRIBUTES.get(name, name)
    item = _ITEMS.get(table.name, object)
    unit = column.unit or _unit_of(item, attribute)
    null = column.null
    may_be_unknown = table in {RECORDS, SCORES} and not column.meaning and name not in _OURS
    if not null and name not in table.key and "NOT NULL" not in column.definition:
        null = _UNKNOWN if may_be_unknown else "where the page states none"
    elif may_be_unknown and "DEFAULT '[]'" in column.definition:
        null = f"never, but empty {_UNKNOWN}"
    return Entry(
        name=name,
        type=table.type_of(name),
        meaning=column.meaning or _docstrings()[item.__name__].get(attribute, ""),
        null=null,
        unit=unit or ("UTC" if table.type_of(name) == "time" else ""),
        source=_source_of(table, name) if table.name in ITEMS or item is Movie else table.source,
    )


def _of_view(view: str, name: str, derived: dict[str, Entry]) -> Entry:
    of_file = [table for table in TABLES if view == f"csv_{table.name}"]
    bases = (*_BASES.get(view, ()), *of_file)
    for table in bases:
        if name in table.columns:
            return _of_table(table, name)
    if name in derived:
        return derived[name]
    return _of_table(TITLES if name in TITLES.columns else RECORDS, name)


def _derived(connection: sqlite3.Connection) -> dict[str, Entry]:
    """Return the columns that only views have."""
    found = [_entry(name, column) for name, column in _DERIVED.items()]
    for role in MAKERS:
        column = Column("json NOT NULL", f"Names of its {role}s, in page order.")
        found.append(_entry(f"{role}s", column, _names_of(f"credits.{role}")))
    for kind, name in AMOUNT_COLUMNS.items():
        source = _names_of(f"amounts.{kind}")
        meaning = "Budget." if kind == "budget" else f"Box office: {kind.replace('_', ' ')}."
        money = Column("id", meaning, _UNKNOWN, f"whole units of {name}_currency")
        found.append(_entry(name, money, source))
        currency = Column("text", f"Currency of {name}, by ISO 4217, such as USD.", f"as {name}")
        found.append(_entry(f"{name}_currency", currency, source))
    for site, site_name in connection.execute("SELECT site, name FROM sites"):
        lacks = f"where {site_name}'s record is not stored"
        for name, column in {
            f"{site}_id": Column("text", f"Its id on {site_name}.", f"where {site_name} lacks it"),
            f"{site}_url": Column("text", f"Its page on {site_name}.", lacks),
            f"{site}_fetched_at": Column("time", f"When {site_name} was read.", lacks, "UTC"),
            f"{site}_list_rank": Column(
                "integer", f"Its rank in {site_name}'s main list.", "where it is not in that list"
            ),
        }.items():
            found.append(_entry(name, column, site_name))
    kinds = connection.execute(
        "SELECT k.name, k.lowest, k.highest, k.audience, k.value_column, k.count_column, s.name"
        " FROM score_kinds k JOIN sites s USING (site) WHERE k.shown IS NOT NULL"
    )
    for title, lowest, highest, is_of_users, value, count, site_name in kinds:
        people = "users" if is_of_users else "critics"
        unit = count.rpartition("_")[2]
        missing = "where it is not rated, or a record's unknown_fields names it"
        for name, column in {
            value: Column("number", f"{title} ({people}).", missing, f"{lowest} to {highest}"),
            count: Column(
                "integer",
                f"{unit.capitalize()} behind {value}.",
                f"{missing}, or the page does not show it",
                unit,
            ),
            f"{value}_100": Column("number", f"{value} on one scale.", f"as {value}", _SHARED),
            f"{value}_derived": Column(
                "boolean NOT NULL", f"Whether {value} is the average of the season's episodes."
            ),
            f"{value}_episodes": Column(
                "integer NOT NULL", f"The episodes that {value} is the average of.", unit="episodes"
            ),
        }.items():
            found.append(_entry(name, column, site_name))
    return {entry.name: entry for entry in found}


def _entry(name: str, column: Column, source: str = "moviecrawler") -> Entry:
    return Entry(
        name=name,
        type=column.definition.partition(" ")[0],
        meaning=column.meaning,
        null=column.null,
        unit=column.unit,
        source=source,
    )


def _source_of(table: Table, column: str) -> str:
    """Return whose pages, or which of IMDb's datasets, state a column of a record."""
    is_own = column in table.columns and table.columns[column].meaning and not table.of_record
    if (
        is_own
        or column in {"record_id", "since", "seen_at"}
        or (table is RECORDS and column in _OURS)
    ):
        return "moviecrawler"
    if table is SCORES and column in SCORE_DETAILS:
        names = [
            profile.name
            for profile in SITES.values()
            if any(column in score.facts for score in profile.scores.values())
        ]
        return ", ".join(names)
    return _names_of(table.of_record or column)


@cache
def _names_of(field: str) -> str:
    """Return the sites' names, and IMDb's datasets, that have a field or a subfield of it."""
    names = [
        profile.name
        for profile in SITES.values()
        if any(
            f"{name}.".startswith(f"{field}.")
            for name in profile.published.union(*profile.published_of_kind.values())
        )
        or field == f"{profile.id}_id"
    ]
    if not names and field not in ONLY_IN_DATASETS:  # identity, and the place in a series
        return "every site"
    return ", ".join([*names, *datasets_of(field)])


@cache
def _docstrings() -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of all items."""
    tree = ast.parse(read_package_file("moviecrawler", "items.py"))
    found: dict[str, dict[str, str]] = {}
    for item in tree.body:
        if isinstance(item, ast.ClassDef):
            found[item.name] = {
                node.target.id: " ".join(ast.literal_eval(doc.value).split()).replace(
                    "None", "Null"
                )
                for node, doc in pairwise(item.body)
                if isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and isinstance(doc, ast.Expr)
            }
    return found


_hints_of = cache(get_type_hints)  # the end of a crawl reads hundreds of columns


def _unit_of(item: type, attribute: str) -> str:
    """Return the unit of a field of an item, which is metadata of its type."""
    hint = _hints_of(item, include_extras=True).get(attribute)
    for part in (hint, *get_args(hint)):
        for meta in getattr(part, "__metadata__", ()):
            if meta.extra:
                return str(meta.extra["unit"])
    return ""
