"""Bringing what a source knows of titles into the catalogue: in parts, each of them one transaction.

A part may be brought again and changes nothing then. Which version of a source is in the catalogue, and how far, is kept
there, so that an import goes on where it was broken off, and an unchanged source costs nothing.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, fields
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING

from moviecrawler.catalogue.matching import DAYS_REMEMBERED
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.sql import read_sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from typing import Self

    from moviecrawler.database.connection import Database

_LOAD = read_sql("load.sql")
_INCOMING = read_sql("incoming.sql")
_COLUMNS = tuple(field.name for field in fields(ImportRow) if field.name != "site_ids")
_CELLS = attrgetter(*_COLUMNS)
_COPY = f"COPY incoming (n, site_ids, {', '.join(_COLUMNS)}) FROM STDIN"
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": None})
"""For COPY; a NUL is one thing that no text in Postgres holds."""


@dataclass(slots=True)
class Imported:
    """What an import has done."""

    added: int = 0
    changed: int = 0
    ids: int = 0
    """New ids on the sites beside IMDb."""

    def __iadd__(self, other: Imported) -> Self:
        """Add what another part did."""
        self.added += other.added
        self.changed += other.changed
        self.ids += other.ids
        return self


def begin_import(database: Database, source: str, version: str) -> int | None:
    """Return how many rows of that version are in the catalogue; None when all are."""
    with database.transaction() as cursor:
        cursor.execute(
            "SELECT rows_done, finished_at FROM imports WHERE source = %s AND version = %s", (source, version)
        )
        found = cursor.fetchone()
    if found is None:
        return 0
    return None if found.finished_at is not None else int(found.rows_done)


def imported_rows(database: Database, source: str) -> int | None:
    """Return how many rows a source had when all of it was imported last; None when it never was."""
    with database.transaction() as cursor:
        cursor.execute("SELECT finished_rows FROM imports WHERE source = %s", (source,))
        found = cursor.fetchone()
    return None if found is None else found.finished_rows


def load(
    database: Database, source: str, version: str, rows: Sequence[ImportRow], rows_done: int, now: datetime
) -> Imported:
    """Bring a part of a source into the catalogue, in one transaction; `rows_done` are those of it with this part."""
    text = io.StringIO()
    for n, row in enumerate(rows):
        text.write(copy_line((n, json.dumps(row.site_ids) if row.site_ids else None, *_CELLS(row))))
    text.seek(0)
    with database.transaction() as cursor:
        cursor.execute(_INCOMING)
        cursor.copy_expert(_COPY, text)
        cursor.execute("SELECT lock_titles()")
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        since = now - timedelta(days=DAYS_REMEMBERED)
        cursor.execute(_LOAD, {"since": since, "source": source, "version": version, "rows_done": rows_done})
        added, changed, ids = cursor.fetchone()
    return Imported(added, changed, ids)


def end_import(database: Database, source: str, version: str, now: datetime) -> None:
    """Note that all of a version is in the catalogue."""
    with database.transaction() as cursor:
        cursor.execute(
            "INSERT INTO imports AS i (source, version, rows_done, finished_at) VALUES (%s, %s, 0, %s)"
            " ON CONFLICT (source) DO UPDATE SET version = excluded.version, finished_at = excluded.finished_at,"
            " finished_rows = i.rows_done",
            (source, version, now),
        )
    analyse(database)


def analyse(database: Database) -> None:
    """Let the planner know how large the tables have become."""
    with database.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        cursor.execute("ANALYZE titles, title_sites")


def copy_line(cells: Iterable[object]) -> str:
    """Return a line of COPY's text format."""
    written = ["\\N" if cell is None else _escaped(cell) if isinstance(cell, str) else str(cell) for cell in cells]
    return "\t".join(written) + "\n"


def _escaped(text: str) -> str:
    # Few titles hold such a sign.
    return text.translate(_ESCAPES) if "\\" in text or not text.isprintable() else text
