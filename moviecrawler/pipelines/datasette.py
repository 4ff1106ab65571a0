"""What Datasette needs to show the embedded database: `metadata.json`, and an index for searching.

Both are brought up to date with the CSV files.
"""

from __future__ import annotations

import json
import re
import sqlite3
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moviecrawler.database.csv_files import SEARCH, changed_titles
from moviecrawler.database.dictionary import describe
from moviecrawler.database.sql import read_sql
from moviecrawler.database.sqlite import transaction
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.database.dictionary import Entry

"""The index of titles and people, which `rowid` joins with `title_id`."""
_MOST_SORTED: Final = 5_000
"""Titles above which the scoreboard is not sorted at first: Datasette waits for a second alone."""
_TITLES_AT_ONCE: Final = 5_000
"""Titles of a transaction, so that other processes can write between two."""
_SEARCHABLE: Final = {"fts_table": SEARCH, "fts_pk": "title_id"}
_STYLE: Final = """<style>
section.content {display: flex; flex-direction: column}
section.content > * {max-width: 100%}
.column-descriptions, .suggested-facets {order: 1}
.facet-info {margin-bottom: 0}
.facet-info li {display: inline-block; margin-right: 1em}
body.table .rows-and-columns {font-size: 0.8em}
body.table .rows-and-columns td {white-space: nowrap; max-width: 19em}
body.table .rows-and-columns td {overflow: hidden; text-overflow: ellipsis}
</style>"""
"""Without it, the table would begin below what all columns are, and scores would be out of
sight."""
_TABLES: Final[dict[str, dict[str, Any]]] = {
    "scoreboard": {"facets": ["kind", "scores_known"], **_SEARCHABLE},
    "titles": {"label_column": "title", "sort": "title", "facets": ["kind"], **_SEARCHABLE},
    "records": {
        "label_column": "title",
        "sort_desc": "updated_at",
        "facets": ["site", "kind", "source"],
        **_SEARCHABLE,
    },
    "movies": {"sort_desc": "updated_at", "facets": ["site", "kind"], **_SEARCHABLE},
    "season_scores": {"facets": ["series_title"]},
    "episode_scores": {"facets": ["series_title", "season"]},
    "scores": {"sort_desc": "count", "facets": ["kind"]},
    "score_history": {"sort_desc": "since", "facets": ["kind"]},
    "title_scores": {"facets": ["kind", "site"], **_SEARCHABLE},
    "credits": {"facets": ["role"]},
    "people": {"label_column": "name", "sort": "name", "facets": ["site"]},
    "offers": {"sort_desc": "since", "facets": ["provider", "kind", "country"]},
    "ended_offers": {"sort_desc": "ended_at", "facets": ["provider", "kind", "country"]},
    "related": {"facets": ["relation"]},
    "awards": {"sort_desc": "wins", "facets": ["event"]},
    "amounts": {"sort_desc": "value", "facets": ["kind", "currency"]},
    "other_titles": {"facets": ["country", "language"]},
    "aliases": {"sort_desc": "since", "facets": ["site"]},
    "misses": {"sort_desc": "checked_at", "facets": ["site", "outcome"]},
    "list_ranks": {"sort": "rank", "facets": ["site", "list_name"]},
    "lists": {"label_column": "list_name", "facets": ["site"]},
    "sites": {"label_column": "name"},
    "score_kinds": {"label_column": "name", "facets": ["site"]},
    **{name: {"hidden": True} for name in ("list_pages", "list_entries", "imdb_episodes", "state")},
    SEARCH: {"hidden": True},
}
"""How each table is shown at first, by Datasette's own names."""
_PARAMETERS: Final = {
    "'tt0111161'": ":imdb_id",
    "'Salt Harbour'": ":series",
    "'2026-03-01'": ":since",
    "'Odile Farrow'": ":name",
}
"""What is asked for in a canned query, where the documents have an example."""
_INDEX: Final = (
    f"CREATE VIRTUAL TABLE {SEARCH}"
    " USING fts5(title, people, columnsize = 0, tokenize = 'unicode61 remove_diacritics 2')"
)
_THESE: Final = "IN (SELECT value FROM json_each(?))"
_INDEXED: Final = f"""
INSERT INTO {SEARCH} (rowid, title, people)
SELECT r.title_id,
    group_concat(DISTINCT r.title || ' ' || coalesce(r.original_title, '')),
    (SELECT group_concat(c.name)
     FROM records o JOIN credits c ON c.record_id = o.record_id
     WHERE o.title_id = r.title_id)
FROM records r WHERE r.title_id {_THESE} GROUP BY r.title_id
"""  # noqa: S608 - the names are ours


def metadata_of(connection: sqlite3.Connection) -> str:
    """Return `metadata.json` of a database."""
    ((titles,),) = connection.execute("SELECT count(*) FROM titles")
    tables: dict[str, dict[str, Any]] = {}
    for relation in describe(connection):
        if not relation.is_in_sqlite:
            continue
        tables[relation.name] = {
            "description_html": relation.meaning + _STYLE,
            "columns": {entry.name: _describe(entry) for entry in relation.columns},
            **_TABLES.get(relation.name, {}),
        }
        if relation.name.startswith("csv_"):  # the views of the files, which others show as well
            tables[relation.name]["allow"] = False
    if titles <= _MOST_SORTED:
        tables["scoreboard"]["sort_desc"] = "imdb_votes"
    names = ", ".join(profile.name for profile in SITES.values())
    metadata = {
        "title": "Movies and their scores",
        "description": f"What {names} say of each title, as moviecrawler has read it.",
        "source": names,
        "license": "Each site's own terms: for personal use, not to be published",
        "databases": {"movies": {"tables": tables, "queries": _canned()}},
    }
    return msgspec.json.format(msgspec.json.encode(metadata), indent=1).decode()


def _describe(entry: Entry) -> str:
    """Return what a column is, in a line."""
    facts = [entry.unit, f"null: {entry.null}" if entry.null else ""]
    known = "; ".join(filter(None, facts))
    return f"{entry.meaning} ({known})" if known else entry.meaning


def queries() -> dict[str, str]:
    """Return the ten queries of the documents by what they find."""
    found = re.findall(r"^-- (.+)\n([^;]+);$", read_sql("queries.sql"), re.MULTILINE)
    return {title: " ".join(query.split()) for title, query in found}


def _canned() -> dict[str, dict[str, str]]:
    """Return these queries for Datasette, which asks for what the documents have examples of."""
    canned = {}
    for title, query in queries().items():
        sql = query
        for example, parameter in _PARAMETERS.items():
            sql = sql.replace(example, parameter)
        canned[query_name(title)] = {"title": title, "sql": sql}
    return canned


def query_name(title: str) -> str:
    """Return the name of a query in its address.

    >>> query_name("How a score went")
    'how_a_score_went'
    """
    return re.sub(r"\W+", "_", title.lower())


def index_titles(connection: sqlite3.Connection, is_late: Callable[[], bool]) -> None:
    """Update the index in which Datasette searches titles and people.

    Raises TimeoutError when it `is_late`, and sqlite3.Error.
    """
    found = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (SEARCH,))
    query = f"SELECT title_id FROM titles EXCEPT SELECT rowid FROM {SEARCH}"  # noqa: S608
    try:
        if found.fetchone() != (_INDEX,):
            connection.execute(f"DROP TABLE IF EXISTS {SEARCH}")
            connection.execute(_INDEX)
        missing = {title_id for (title_id,) in connection.execute(query)}
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise
        return  # a SQLite without FTS5
    ids = sorted(missing | changed_titles(connection))
    for first in range(0, len(ids), _TITLES_AT_ONCE):
        if first and is_late():
            raise TimeoutError
        these = (json.dumps(ids[first : first + _TITLES_AT_ONCE]),)
        with transaction(connection, "IMMEDIATE"):
            connection.execute(f"DELETE FROM {SEARCH} WHERE rowid {_THESE}", these)  # noqa: S608
            connection.execute(_INDEXED, these)
