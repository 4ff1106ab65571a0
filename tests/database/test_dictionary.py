"""Every column is described, and the document says the same as the declarations."""

from contextlib import closing
from pathlib import Path

import pytest

import moviecrawler.database
from moviecrawler.database.dictionary import describe
from moviecrawler.database.sqlite import open_sqlite
from tests.services.postgres import execute
from tests.tables_document import document

DOCUMENT = Path(moviecrawler.database.__path__[0], "TABLES.md")
IN_POSTGRES = """
SELECT table_name, column_name, is_nullable = 'YES' AND is_updatable = 'YES'
FROM information_schema.columns WHERE table_schema = 'public'
"""
IN_SQLITE = """
SELECT t.name, c.name, NOT c."notnull" AND t.type = 'table'
FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type IN ('table', 'view')
"""


@pytest.mark.promise("Every table and column is described, with when it is null.")
def test_every_column_of_both_databases_is_described(tmp_path: Path, database_url: str) -> None:
    with closing(open_sqlite(tmp_path)) as connection:
        found = {
            (relation.name, entry.name): entry
            for relation in describe(connection)
            for entry in relation.columns
        }
        in_sqlite = connection.execute(IN_SQLITE).fetchall()
    everywhere = [*in_sqlite, *execute(database_url, IN_POSTGRES)]
    assert {(table, column) for table, column, _ in everywhere} == found.keys()
    assert all(entry.meaning and entry.source and entry.type for entry in found.values())
    assert [
        (table, column)
        for table, column, may_be_null in everywhere
        if may_be_null and not found[table, column].null
    ] == []


def test_the_document_is_that_of_the_declarations() -> None:
    assert DOCUMENT.read_text("utf-8") == document(), (
        "stale; run python -m tests.tables_document > moviecrawler/database/TABLES.md"
    )
