"""Databases with as many titles as one asks for, of made-up words, written by the server itself; and with what an operator has to look at."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg2

WORDS = (
    "the a of silent lost harbor kingdom night river garden winter stone letters mountain glass crimson summer distant shadow "
    "orchard seventh broken paper golden"
)


def run_script(url: str, name: str, **values: object) -> None:
    """Run a script of this folder on a database that has the tables."""
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(Path(__file__).with_name(name).read_text("utf-8"), values)


def fill(url: str, titles: int) -> None:
    """Write so many titles to a database that has the tables."""
    run_script(url, "many_titles.sql", titles=titles, words=WORDS)
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
