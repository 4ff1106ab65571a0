"""What the CSV files and Datasette's index lack of the embedded database.

Triggers note which records and titles change. The first export creates them: a first load does
without. Each file is known by its size and its time, so that one which somebody else has written
is never taken for ours.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from moviecrawler.database.sqlite import transaction
from moviecrawler.database.tables import CSV_FILES, CSV_TABLES

if TYPE_CHECKING:
    import os
    import sqlite3
    from pathlib import Path

WHOLE: Final = 0
"""The id of the only part of a file that is not of records or titles."""
_OF_LIST: Final = (
    "SELECT r.record_id, r.title_id FROM list_entries e JOIN records r USING (site, site_id)"
    " WHERE e.site = {row}.site AND e.list_name = {row}.list_name"
)
_OF_ENTRY: Final = (
    "SELECT record_id, title_id FROM records WHERE site = old.site AND site_id = old.site_id"
)
_CHANGES: Final = {
    ("records", "insert"): "VALUES (new.record_id, new.title_id)",
    ("records", "update"): "VALUES (old.record_id, old.title_id), (new.record_id, new.title_id)",
    ("records", "delete"): "VALUES (old.record_id, old.title_id)",
    ("titles", "update"): "VALUES (NULL, new.title_id)",
    # A pass that is complete changes ranks; those of the pass before are deleted afterwards.
    ("lists", "insert"): _OF_LIST.format(row="new"),
    ("lists", "update"): _OF_LIST.format(row="new"),
    ("lists", "delete"): _OF_LIST.format(row="old"),
    ("list_entries", "update"): _OF_ENTRY,
    ("list_entries", "delete"): _OF_ENTRY,
}
"""What is noted when a row of a table changes."""
_TRIGGERS: Final = {
    f"csv_{table}_{event}": f"CREATE TRIGGER csv_{table}_{event} AFTER {event} ON {table} BEGIN"
    f" INSERT INTO csv_changes (record_id, title_id) {changed}; END"
    for (table, event), changed in _CHANGES.items()
}


class Parts(NamedTuple):
    """The parts of a file, in its order."""

    ids: array[int]
    lengths: array[int]
    """In bytes."""


def track_changes(connection: sqlite3.Connection) -> int:
    """Have changes noted from now on, and return the number of the last one that is.

    Where they were not, no file is known any more.
    """
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'csv_*'"
    with transaction(connection, "IMMEDIATE"):
        found = dict(connection.execute(query).fetchall())
        if found != _TRIGGERS:
            for name in found:
                connection.execute(f"DROP TRIGGER {name}")
            for table in CSV_TABLES:
                connection.execute(f"DROP TABLE IF EXISTS {table.name}")
                connection.execute(table.statements("sqlite")[0])
            for statement in _TRIGGERS.values():
                connection.execute(statement)
        ((last,),) = connection.execute("SELECT coalesce(max(change_id), 0) FROM csv_changes")
    return int(last)


def forget_changes(connection: sqlite3.Connection, last: int) -> None:
    """Delete the changes up to one, as all files have them."""
    connection.execute("DELETE FROM csv_changes WHERE change_id <= ?", (last,))


def forget_files(connection: sqlite3.Connection) -> None:
    """Have all files written anew at the next export."""
    connection.execute("DELETE FROM csv_files")


def is_changed(connection: sqlite3.Connection) -> bool:
    """Return whether there are changes, or these are not noted."""
    query = "SELECT count(*) FROM sqlite_master WHERE name = 'csv_changes'"
    if connection.execute(query).fetchone() == (0,):
        return True
    query = "SELECT EXISTS (SELECT 1 FROM csv_changes)"
    return bool(connection.execute(query).fetchone()[0])


def changed_records(connection: sqlite3.Connection) -> set[int]:
    """Return the records that have changed."""
    return {record_id for (record_id,) in connection.execute("SELECT record_id FROM csv_changes")}


def changed_titles(connection: sqlite3.Connection) -> set[int]:
    """Return the titles that have changed, or had or have a record that has."""
    query = (
        "SELECT title_id FROM csv_changes UNION"
        " SELECT r.title_id FROM csv_changes JOIN records r USING (record_id)"
    )
    return {title_id for (title_id,) in connection.execute(query) if title_id is not None}


def intact_files(connection: sqlite3.Connection, folder: Path) -> set[str]:
    """Return the names of those files of a folder that are as they were written."""
    intact = set()
    query = "SELECT name, size, modified_ns FROM csv_files JOIN state USING (views)"
    for name, size, modified_ns in connection.execute(query):
        try:
            status = (folder / name).stat()
        except OSError:
            continue
        if (status.st_size, status.st_mtime_ns) == (size, modified_ns):
            intact.add(name)
    return intact


def parts_of(connection: sqlite3.Connection, name: str) -> Parts:
    """Return the parts of a file as it was written."""
    query = "SELECT part_ids, part_lengths FROM csv_files WHERE name = ?"
    (blobs,) = connection.execute(query, (name,))
    return Parts(*(array("q", blob) for blob in blobs))


def note_file(
    connection: sqlite3.Connection, name: str, status: os.stat_result, views: str, parts: Parts
) -> None:
    """Note a file as it was written, and `state.views` of then."""
    statement = CSV_FILES.upsert("VALUES (?, ?, ?, ?, ?, ?)")
    ids = parts.ids.tobytes()
    lengths = parts.lengths.tobytes()
    row = (name, status.st_size, status.st_mtime_ns, views, ids, lengths)
    connection.execute(statement, row)
