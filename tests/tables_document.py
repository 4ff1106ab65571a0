"""The data dictionary `moviecrawler/database/TABLES.md`, made from the declarations.

python -m tests.tables_document > moviecrawler/database/TABLES.md
"""

import sqlite3
import sys
from contextlib import closing

from moviecrawler.database.dictionary import Relation, describe
from moviecrawler.database.schema import update_schema
from moviecrawler.database.sqlite import SqliteTables

_HEAD = """# Tables and views

`python -m tests.tables_document` makes this page from `tables.py`, the views, `items.py` and the
profiles of the sites.

A source is the site, or the dataset of IMDb, whose value it is. Types: `id` is a whole number of up
to 64 bits; `time` is a timestamp in Postgres, and a text such as 2026-03-01T12:00:00+00:00 in
SQLite; `json` is an array of texts, or an object; `boolean` is 0 or 1 in SQLite. A CSV file has the
columns of its table, and `movies.csv` those of `movies`, but for numbers that only a database
needs.

What `unknown_fields` names was not on the page, or could not be read: a null there says nothing.
"""


def _section(relation: Relation) -> str:
    place = "" if relation.is_in_sqlite else " In Postgres alone."
    lines = [
        f"\n## {relation.name}\n\n{relation.meaning}{place}\n\n",
        "| column | type | unit | source | null | what it is |\n",
        "| --- | --- | --- | --- | --- | --- |\n",
    ]
    for entry in relation.columns:
        cells = (
            f"`{entry.name}`",
            entry.type,
            entry.unit,
            entry.source,
            entry.null or "never",
            entry.meaning,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(lines)


def document() -> str:
    """Return the Markdown of all tables and views."""
    with closing(sqlite3.connect(":memory:")) as connection:
        update_schema(SqliteTables(connection))
        found = [one for one in describe(connection) if not one.name.startswith("csv_")]
    return _HEAD + "".join(map(_section, found))


if __name__ == "__main__":
    sys.stdout.write(document())
