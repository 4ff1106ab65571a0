"""Reads from the catalogue the facts of titles that pages and lists of films are compared with.

A title's rivals are other titles of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg2.extras import NamedTupleCursor

from moviecrawler.catalogue.sql import read_sql
from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.forms import prepare
from moviecrawler.sites import ID_SITE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from moviecrawler.database.connection import Cursor, Database, Row
    from moviecrawler.matching.forms import Title
    from moviecrawler.sites import Site

_RIVALS = read_sql("rivals.sql")
_KNOWN = read_sql("known.sql")
_MAX_RIVALS = 10
"""A page is compared with at most so many rivals of its title."""
_KNOWN_BATCH = 10_000
"""Rows that are fetched at once."""


def expected_titles(cursor: Cursor, site: Site, titles: Collection[int]) -> dict[int, TitleFacts]:
    """Return the facts that a page of the site is compared with, with rivals, by title id.

    Titles without a name are left out.
    """
    if not titles:
        return {}
    cursor.execute(_RIVALS, {"titles": list(titles), "site": site, "most": _MAX_RIVALS})
    rivals: dict[int, list[int]] = {}
    for row in cursor.fetchall():
        rivals.setdefault(row.of_title, []).append(row.title_id)
    known = {title for others in rivals.values() for title in others}
    cursor.execute(_KNOWN, {"titles": sorted(known.union(titles))})
    rows = {row.title_id: row for row in cursor.fetchall()}
    return {
        title: _facts(rows[title], [_facts(rows[other]) for other in rivals.get(title, [])])
        for title in titles
        if title in rows
    }


def known_titles(store: Database) -> Iterator[Title]:
    """Yield the named titles with an IMDb id, in batches so that they need not fit into memory.

    Raises TransientStoreError.
    """
    with store.transaction() as cursor:
        # Fetching a batch may take as long as the caller takes with the one before.
        cursor.execute("SET LOCAL statement_timeout = 0")
        with cursor.connection.cursor("known_titles", cursor_factory=NamedTupleCursor) as rows:
            rows.itersize = _KNOWN_BATCH
            rows.execute(_KNOWN, {"titles": None})
            for row in rows:
                yield prepare(ID_SITE, _facts(row))


def _facts(row: Row, rivals: list[TitleFacts] | None = None) -> TitleFacts:
    """Return a row of known.sql, whose columns but title_id are fields of TitleFacts."""
    facts = row._asdict()
    del facts["title_id"]
    return TitleFacts(**facts, rivals=rivals or [])
