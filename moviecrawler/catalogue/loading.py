"""Bringing what a source knows of titles into the catalogue: in parts, each of them one transaction.

A part may be brought again and changes nothing then. Which version of a source is in the catalogue, and how far, is kept
there, so that an import goes on where it was broken off, and an unchanged source costs nothing.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from moviecrawler.catalogue.matching import DAYS_REMEMBERED
from moviecrawler.catalogue.sql import read_sql

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Self

    from moviecrawler.catalogue.rows import ImportRow
    from moviecrawler.catalogue.store import CatalogueStore

_LOAD = read_sql("load.sql")
_INCOMING = read_sql("incoming.sql")
_COPY = (
    "COPY incoming (n, imdb_id, tmdb_id, tmdb_series_id, title, original_title, kind, year, end_year, tells_end_year,"
    " runtime_minutes, popularity, popularity_source, metacritic_id, rottentomatoes_id, id_source, id_confidence) FROM STDIN"
)
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": None})
"""For COPY; a NUL is one thing that no text in Postgres holds."""


@dataclass(slots=True)
class Imported:
    """What an import has done."""

    added: int = 0
    changed: int = 0
    ids: int = 0
    """New ids on the slug sites."""

    def __iadd__(self, other: Imported) -> Self:
        """Add what another part did."""
        self.added += other.added
        self.changed += other.changed
        self.ids += other.ids
        return self


def begin_import(store: CatalogueStore, source: str, version: str) -> int | None:
    """Return how many rows of that version are in the catalogue; None when all are."""
    with store.transaction() as cursor:
        cursor.execute(
            "SELECT rows_done, finished_at FROM imports WHERE source = %s AND version = %s", (source, version)
        )
        found = cursor.fetchone()
    if found is None:
        return 0
    return None if found.finished_at is not None else int(found.rows_done)


def load(
    store: CatalogueStore, source: str, version: str, rows: Sequence[ImportRow], rows_done: int, now: datetime
) -> Imported:
    """Bring a part of a source into the catalogue, in one transaction; `rows_done` are those of it with this part."""
    text = io.StringIO()
    text.writelines(_copy_line(n, row) for n, row in enumerate(rows))
    text.seek(0)
    with store.transaction() as cursor:
        cursor.execute(_INCOMING)
        cursor.copy_expert(_COPY, text)
        cursor.execute("SELECT lock_titles()")
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        since = now - timedelta(days=DAYS_REMEMBERED)
        cursor.execute(_LOAD, {"since": since, "source": source, "version": version, "rows_done": rows_done})
        added, changed, ids = cursor.fetchone()
    return Imported(added, changed, ids)


def end_import(store: CatalogueStore, source: str, version: str, now: datetime) -> None:
    """Note that all of a version is in the catalogue."""
    with store.transaction() as cursor:
        cursor.execute(
            "INSERT INTO imports (source, version, rows_done, finished_at) VALUES (%s, %s, 0, %s)"
            " ON CONFLICT (source) DO UPDATE SET version = excluded.version, finished_at = excluded.finished_at",
            (source, version, now),
        )
    analyse(store)


def analyse(store: CatalogueStore) -> None:
    """Let the planner know how large the tables have become."""
    with store.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        cursor.execute("ANALYZE titles, title_sites")


def _copy_line(n: int, row: ImportRow) -> str:
    """Return a line of COPY's text format."""
    cells = (
        n,
        row.imdb_id,
        row.tmdb_id,
        row.tmdb_series_id,
        _escaped(row.title),
        _escaped(row.original_title),
        row.kind,
        row.year,
        row.end_year,
        row.tells_end_year,
        row.runtime_minutes,
        row.popularity,
        row.popularity_source,
        _escaped(row.metacritic_id),
        _escaped(row.rottentomatoes_id),
        row.id_source,
        row.id_confidence,
    )
    return "\t".join(["\\N" if cell is None else str(cell) for cell in cells]) + "\n"


def _escaped(text: str | None) -> str | None:
    # Few titles hold such a sign.
    return text.translate(_ESCAPES) if text and ("\\" in text or not text.isprintable()) else text
