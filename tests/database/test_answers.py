"""What the package's SQL answers of written rows, in both databases where both have it.

A block of `answers/*.txt` has a sentence, and steps below it. A step is a statement, or a file of
SQL with its arguments in JSON; the lines below are the rows that it returns, in their order. Their
cells have two spaces or more between them, and (none) is a null. Below >* they are sorted, as what
is asked has no order. A block is undone at its end.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest

import moviecrawler
from moviecrawler.database.sqlite import open_sqlite
from moviecrawler.pipelines.datasette import queries
from tests.services.postgres import execute, new_database

Cursor = Any
"""A cursor of one of the two databases: they have the same methods."""
PACKAGE = Path(moviecrawler.__path__[0])
QUERIES = queries()
ANSWERS = Path(__file__).with_name("answers")
DATABASES = {"both": ["postgres", "embedded"], "postgres": ["postgres"], "embedded": ["embedded"]}
BLOCKS = [
    pytest.param(database, block, id=f"{database}: {block.splitlines()[0]}")
    for file in sorted(ANSWERS.glob("*.txt"))
    for block in file.read_text("utf-8").strip().split("\n\n")
    for database in DATABASES[file.stem.partition("-")[0]]
]


@pytest.fixture(scope="module")
def postgres_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """Return the URL of a database with the written rows."""
    url = new_database(postgres_server, postgres_template)
    for name in ("titles", "catalogue"):
        execute(url, (ANSWERS / f"{name}.sql").read_text("utf-8").replace("%", "%%"))
    yield url
    execute(postgres_server, f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Cursor]:
    """Return a cursor of that database, whose changes are undone."""
    # Rows have the order in which they were written, unless another one is asked for.
    off = ("enable_indexscan", "enable_indexonlyscan", "enable_sort", "enable_mergejoin")
    options = " ".join(["-c timezone=UTC", *(f"-c {name}=off" for name in off)])
    with (
        closing(psycopg2.connect(postgres_url, options=options)) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Cursor]:
    """Return a cursor of an embedded database with the written rows."""
    with closing(open_sqlite(tmp_path)) as connection:
        connection.executescript((ANSWERS / "titles.sql").read_text("utf-8"))
        yield connection.cursor()


@pytest.mark.parametrize(("database", "block"), BLOCKS)
def test_written_rows_are_answered_by(
    database: str, block: str, request: pytest.FixtureRequest
) -> None:
    cursor = request.getfixturevalue(database)
    for step in re.split("^>", block, flags=re.MULTILINE)[1:]:
        match = re.fullmatch(r"(\*?) (.+\n?(?: .+\n?)*)((?:.+\n?)*)", step)
        assert match is not None, step
        has_no_order, statement, rows = match.groups()
        expected = [re.split(" {2,}", row) for row in rows.splitlines()]
        answer = _answer(cursor, statement.strip())
        assert (sorted(answer) if has_no_order else answer) == expected, statement


def _answer(cursor: Cursor, statement: str) -> list[list[str]]:
    file, _, arguments = statement.partition(" ")
    if not file.endswith(".sql"):
        cursor.execute(QUERIES.get(statement, statement))
    elif arguments:
        text = (PACKAGE / file).read_text("utf-8")
        given = json.loads(arguments)
        if isinstance(given, dict):
            given = {name: _value(of) for name, of in given.items()}
        cursor.execute(text, given)
    else:
        cursor.executescript((PACKAGE / file).read_text("utf-8"))
    rows = cursor.fetchall() if cursor.description else []
    return [[_cell(cell) for cell in row] for row in rows]


def _value(written: Any) -> Any:
    """Return a parameter: a list of objects is JSON in SQL, too."""
    match written:
        case [{}, *_]:
            return json.dumps(written)
        case str() if re.match(r"\d{4}-\d\d-\d\dT", written):
            return datetime.fromisoformat(written).replace(tzinfo=UTC)
    return written


def _cell(value: Any) -> str:
    """Return a cell as both databases have it: SQLite keeps lists and times as texts."""
    match value:
        case None:
            return "(none)"
        case datetime():
            value = value.astimezone(UTC).isoformat()
        case list() | dict():
            value = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        case Decimal() | float() | bool():
            value = f"{float(value):.10g}"
    return str(value).replace(":00+00:00", "") or "(empty)"
