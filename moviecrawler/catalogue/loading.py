"""Loads the rows of a source into the catalogue: in parts, each of them one transaction.

Loading a part again changes nothing. The table `imports` notes the version of a source and how many
of its rows are loaded, so that an import resumes where it was interrupted, and an unchanged source
costs nothing.
"""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from datetime import timedelta
from itertools import islice
from operator import add, attrgetter
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.basics.clock import utc_now
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.postgres import copy_rows
from moviecrawler.matching.titles import DAYS_REMEMBERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from moviecrawler.database.connection import Database

_INCOMING = read_sql("incoming.sql")
_LOAD = read_sql("load.sql")
_COLUMNS = tuple(field.name for field in fields(ImportRow) if field.name != "site_ids")
_CELLS = attrgetter(*_COLUMNS)
_PART = 10_000
"""Rows of a part, about 12 MB. Stores wait while a part is loaded: a second or two on a busy
machine."""


class Imported(NamedTuple):
    """The numbers of rows that an import has changed."""

    added: int = 0
    changed: int = 0
    ids: int = 0
    """New ids on the other sites than IMDb."""
    unknown: int = 0
    """Rows whose TMDB ids are of no known title."""
    removed: int = 0


class Done(NamedTuple):
    """How far a source is imported."""

    rows: int | None
    """Rows of this version that are loaded; None when all are."""
    former: int | None
    """Rows of the source when it was last imported completely; None when it never was."""


def imported(database: Database, source: str, version: str) -> Done:
    """Return how far a version of a source is imported."""
    with database.transaction() as cursor:
        cursor.execute("SELECT * FROM imports WHERE source = %s", (source,))
        row = cursor.fetchone()
    if row is None or row.version != version:
        return Done(0, row and row.finished_rows)
    return Done(None if row.finished_at else row.rows_done, row.finished_rows)


def load_parts(
    database: Database,
    source: str,
    version: str,
    rows: Iterator[ImportRow],
    done: int,
    on_progress: Callable[[int], object],
) -> Imported:
    """Load the rows after the first `done`.

    The database loads a part while the next one is read.
    """
    total = Imported()
    loading = Future[Imported]()
    loading.set_result(total)
    rows = islice(rows, done, None)
    with ThreadPoolExecutor(1, "import") as thread:
        while part := list(islice(rows, _PART)):
            done += len(part)
            total = Imported(*map(add, total, loading.result()))
            loading = thread.submit(load, database, source, version, part, done, utc_now())
            on_progress(len(part))
    return Imported(*map(add, total, loading.result()))


def load(
    database: Database,
    source: str,
    version: str,
    rows: Sequence[ImportRow],
    rows_done: int,
    now: datetime,
) -> Imported:
    """Load a part of a source in one transaction.

    `rows_done` is the number of the source's rows up to the end of this part.
    """
    with database.transaction() as cursor:
        cursor.execute(_INCOMING)
        lines = (
            (n, json.dumps(row.site_ids) if row.site_ids else None, *_CELLS(row))
            for n, row in enumerate(rows)
        )
        copy_rows(cursor, f"incoming (n, site_ids, {', '.join(_COLUMNS)})", lines)
        cursor.execute("SELECT lock_titles()")
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        since = now - timedelta(days=DAYS_REMEMBERED)
        cursor.execute(
            _LOAD, {"since": since, "source": source, "version": version, "rows_done": rows_done}
        )
        return Imported(*cursor.fetchone())


def end_import(database: Database, source: str, version: str, now: datetime) -> None:
    """Note that a version is imported completely, and update the planner's statistics."""
    with database.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        cursor.execute(
            "INSERT INTO imports AS i (source, version, rows_done, finished_at)"
            " VALUES (%s, %s, 0, %s)"
            " ON CONFLICT (source) DO UPDATE SET version = excluded.version,"
            " finished_at = excluded.finished_at, finished_rows = i.rows_done",
            (source, version, now),
        )
        cursor.execute("ANALYZE titles, title_sites, imdb_episodes")
