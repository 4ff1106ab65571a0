"""What an import costs in the database: its parts, not what is there already."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from moviecrawler.catalogue.loading import analyse, load
from moviecrawler.catalogue.rows import ImportRow

if TYPE_CHECKING:
    from tests.catalogue.catalogued import Catalogued

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MANY = 20_000


def rows(first: int, count: int) -> list[ImportRow]:
    return [
        ImportRow(imdb_id=f"tt{number:07d}", title=f"The Film {number}", kind="movie", popularity=number % 100)
        for number in range(first, first + count)
    ]


@pytest.mark.parametrize("analysed", [True, False], ids=["analysed", "not analysed yet"])
def test_a_part_of_an_import_reads_no_table_from_end_to_end(store: Catalogued, *, analysed: bool) -> None:
    load(store, "many", "1", rows(1, MANY), MANY, NOW)
    if analysed:
        analyse(store)
    titles = rows(MANY - 5, 10)
    ids = [
        ImportRow(imdb_id=row.imdb_id, site_ids={"metacritic": f"film-{row.imdb_id}"}, id_confidence=2)
        for row in titles[:5]
    ]
    for few, expected in ((titles, (4, 0)), (ids, (0, 5))):
        before = scanned(store)
        done = load(store, "few", "1", few, len(few), NOW)
        assert (done.added, done.ids) == expected
        assert scanned(store) - before < len(few)  # the planner itself may look at a row


@pytest.mark.parametrize(
    ("title", "kept"),
    [("A\tB\nC\rD\\E", "A\tB\nC\rD\\E"), ("\\N", "\\N"), ("Nul\0l", "Null"), ("\x1b[31mRed", "\x1b[31mRed")],
)
def test_a_part_takes_any_sign_in_a_title(store: Catalogued, title: str, kept: str) -> None:
    load(store, "odd", "1", [ImportRow(imdb_id="tt0000001", title=title, kind="movie")], 1, NOW)
    assert store.sql("SELECT title FROM titles") == [(kept,)]


def scanned(store: Catalogued) -> int:
    """Return how many rows of titles were read by going through a whole table."""
    with store.transaction() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
    with store.transaction() as cursor:
        cursor.execute("SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('titles', 'title_sites')")
        return int(cursor.fetchone()[0])
