"""The titles of the catalogue as the matcher compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg2.extras import NamedTupleCursor

from moviecrawler.catalogue.forms import prepare
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.catalogue.wanted import votes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.catalogue.forms import Title
    from moviecrawler.catalogue.store import CatalogueStore

_KNOWN = read_sql("known.sql")
_AT_ONCE = 10_000
"""Rows that are asked for in one step."""


def known_titles(store: CatalogueStore) -> Iterator[Title]:
    """Yield the titles that have an IMDb id, a part of them in memory at a time. Raises TransientStoreError."""
    with store.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")  # it is as long as whoever reads takes
        with cursor.connection.cursor("known_titles", cursor_factory=NamedTupleCursor) as rows:
            rows.itersize = _AT_ONCE
            rows.execute(_KNOWN)
            for row in rows:
                yield prepare(
                    "imdb",
                    [title for title in (row.title, row.original_title) if title],
                    other_titles=row.other_titles or (),
                    imdb_id=row.imdb_id,
                    year=row.year,
                    runtime=row.runtime_minutes,
                    directors=row.directors or (),
                    votes=votes_of(row),
                    kind=row.kind,
                    end_year=row.end_year,
                    seasons=row.season_count,
                )
