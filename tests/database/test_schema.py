"""The schema is made once, never half, and only where it is this version's."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlsplit

import psycopg2
import pytest

from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.database import postgres, schema
from moviecrawler.database.postgres import update_postgres
from moviecrawler.database.schema import VERSION
from tests.services.postgres import execute, update
from tests.waiting import wait_for

WAITING = (
    "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database WHERE NOT granted"
    " AND datname = current_database()"
)
NEXT = "ALTER TABLE titles ADD COLUMN a integer; ALTER TABLE records ADD COLUMN a integer"


def with_next(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have one more version of the schema, made by a script."""
    monkeypatch.setattr(schema, "VERSION", VERSION + 1)
    monkeypatch.setattr(schema, "_migration", lambda *_: script)


def test_processes_that_start_together_make_it_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(update, [empty_database_url] * 8))
    assert execute(empty_database_url, "SELECT version FROM schema_version") == [(VERSION,)]


def test_a_migration_waits_until_others_have_written(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_next(monkeypatch, NEXT)
    with closing(psycopg2.connect(database_url)) as writer, ThreadPoolExecutor(1) as pool:
        with writer, writer.cursor() as cursor:
            cursor.execute("SELECT lock_titles()")
            cursor.execute("SELECT count(*) FROM records")
            updated = pool.submit(update, database_url)
            wait_for(lambda: execute(database_url, WAITING) == [(1,)])
            # A deadlock, if the migration held it.
            cursor.execute("INSERT INTO titles DEFAULT VALUES")
        updated.result(60)
    assert execute(database_url, "SELECT count(*), count(a) FROM titles") == [(1, 0)]
    assert execute(database_url, "SELECT version FROM schema_version") == [(VERSION + 1,)]


def test_a_migration_that_fails_leaves_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_next(monkeypatch, "CREATE TABLE half (n integer); SELECT 1 / 0")
    with pytest.raises(psycopg2.Error):
        update(database_url)
    assert execute(database_url, "SELECT to_regclass('half')") == [(None,)]
    assert execute(database_url, "SELECT version FROM schema_version") == [(VERSION,)]


def test_a_start_that_waits_for_the_schema_says_so_and_ends_when_the_process_does(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_next(monkeypatch, NEXT)
    monkeypatch.setattr(postgres, "INTERVAL_SECONDS", 0.1)
    ending = threading.Event()
    with (
        closing(psycopg2.connect(database_url)) as reader,
        closing(psycopg2.connect(database_url)) as starting,
        ThreadPoolExecutor(1) as pool,
        reader,
        reader.cursor() as cursor,
    ):
        cursor.execute("SELECT FROM records")
        updated = pool.submit(update_postgres, starting, ending.is_set)
        wait_for(lambda: "to change the database's schema, which is in use" in caplog.text)
        ending.set()
        with pytest.raises(TransientStoreError, match="other processes use the tables"):
            updated.result(30)


@pytest.mark.promise("A database of another schema is refused and left alone.")
@pytest.mark.parametrize(
    ("made_by", "refusal"),
    [
        ("UPDATE schema_version SET version = 99", "has version 99 of the schema"),
        ("DROP TABLE schema_version", "has tables that no version of moviecrawler has made"),
    ],
)
def test_a_database_of_another_schema_is_refused_and_left_alone(
    database_url: str, made_by: str, refusal: str
) -> None:
    execute(database_url, made_by)
    with pytest.raises(ConfigurationError, match=refusal):
        update(database_url)


def test_a_database_that_can_not_hold_every_text_is_refused(postgres_server: str) -> None:
    execute(postgres_server, "DROP DATABASE IF EXISTS latin")
    execute(
        postgres_server, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    )
    with pytest.raises(ConfigurationError, match="LATIN1"):
        update(urlsplit(postgres_server)._replace(path="/latin").geturl())
    execute(postgres_server, "DROP DATABASE latin")
