"""What the CSV files and Datasette's index lack of the embedded database.

Triggers note which records and titles change. The first export creates them: a first load does
without. Each file is known by its size and its time, so that one which somebody else has written
is never taken for ours.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from moviecrawler.database.schema import VERSION
from moviecrawler.database.sqlite import transaction
from moviecrawler.database.tables import CSV_FILES, CSV_TABLES

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

SEARCH: Final = "title_search"
"""Datasette's index of titles and people."""
WHOLE: Final = 0
"""The id of the only part of a file that is not of records or titles."""
_OF_RECORD: Final = "VALUES ({row}.record_id, coalesce({row}.title_id, 0))"
_OF_RECORDS: Final = "SELECT r.record_id, coalesce(r.title_id, 0) FROM records r"
_OF_ENTRY: Final = f"{_OF_RECORDS} WHERE r.site = old.site AND r.site_id = old.site_id"
_OF_LIST: Final = (
    f"{_OF_RECORDS} JOIN list_entries e USING (site, site_id)"
    " WHERE e.site = {row}.site AND e.list_name = {row}.list_name"
)
_CHANGES: Final = {
    ("records", "insert"): [_OF_RECORD.format(row="new")],
    ("records", "update"): [_OF_RECORD.format(row="old"), _OF_RECORD.format(row="new")],
    ("records", "delete"): [_OF_RECORD.format(row="old")],
    ("titles", "update"): ["VALUES (0, new.title_id)"],
    # A pass that is complete changes ranks; those of the pass before are deleted afterwards.
    ("lists", "insert"): [_OF_LIST.format(row="new")],
    ("lists", "update"): [_OF_LIST.format(row="new")],
    ("lists", "delete"): [_OF_LIST.format(row="old")],
    ("list_entries", "update"): [_OF_ENTRY],
    ("list_entries", "delete"): [_OF_ENTRY],
    ("score_kinds", "update"): [f"{_OF_RECORDS} WHERE true"],
}
"""What is noted when a row of a table changes."""


def _trigger(table: str, event: str, changed: list[str]) -> str:
    inserts = [
        # What has changed before gets another number: an export deletes the changes it has seen.
        f"INSERT INTO csv_changes (record_id, title_id) {rows} ON CONFLICT (record_id, title_id)"
        " DO UPDATE SET change_id = excluded.change_id;"
        for rows in changed
    ]
    name = f"csv_{table}_{event}"
    return f"CREATE TRIGGER {name} AFTER {event} ON {table} BEGIN {' '.join(inserts)} END"


_TRIGGERS: Final = {
    f"csv_{table}_{event}": _trigger(table, event, changed)
    for (table, event), changed in _CHANGES.items()
}


class Parts(NamedTuple):
    """The parts of a file, in its order."""

    ids: array[int]
    lengths: array[int]
    """In bytes."""


class WrittenFile(NamedTuple):
    """A file as it was written."""

    name: str
    size: int
    modified_ns: int
    parts: Parts


def track_changes(connection: sqlite3.Connection) -> int:
    """Have changes noted from now on, and return the number of the last one that is.

    Where they were not, no file is known any more, nor is the index.
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
            connection.execute(f"DROP TABLE IF EXISTS {SEARCH}")
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
        " SELECT coalesce(r.title_id, 0) FROM csv_changes JOIN records r USING (record_id)"
    )
    return {title_id for (title_id,) in connection.execute(query)}


def intact_files(connection: sqlite3.Connection, folder: Path) -> set[str]:
    """Return the names of those files of a folder that are as they were written."""
    intact = set()
    query = "SELECT name, size, modified_ns FROM csv_files WHERE views = ?"
    for name, size, modified_ns in connection.execute(query, (_views(connection),)):
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


def note_file(connection: sqlite3.Connection, file: WrittenFile) -> None:
    """Note a file as it was written."""
    parts = (part.tobytes() for part in file.parts)
    row = (file.name, file.size, file.modified_ns, _views(connection), *parts)
    connection.execute(CSV_FILES.upsert("VALUES (?, ?, ?, ?, ?, ?)"), row)


def _views(connection: sqlite3.Connection) -> str:
    """Return what the rows of files follow from, but for what has changed."""
    ((views,),) = connection.execute("SELECT views FROM state")
    return f"{VERSION} {views}"
