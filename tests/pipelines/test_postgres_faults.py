"""What the Postgres store does when servers, connections or processes fail.

It is also tested with many processes on one database.
"""

import asyncio
import logging
import random
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlencode, urlsplit

import psycopg2
import pytest
from psycopg2 import errors
from scrapy.exceptions import CloseSpider

from moviecrawler.basics.errors import (
    ConfigurationError,
    RejectedError,
    SchemaError,
    TooSlowError,
    TransientStoreError,
)
from moviecrawler.database.connection import WORK, Database, connect, refusals_translated
from moviecrawler.pipelines.postgres import PostgresStore
from tests.runs import Run, make_movie, record_of, running
from tests.services.postgres import PostgresServer, execute, new_database
from tests.stored import opened
from tests.waiting import until

UNREACHABLE = "postgresql://crawler:s3cret@127.0.0.1:9/movies"
"""Port 9 is for discarding, and nothing listens there."""


def check_whole(url: str, expected: int) -> None:
    """Check that so many titles are stored.

    Each is stored once and with everything that belongs to `make_movie`'s.
    """
    rows = execute(
        url,
        """
        SELECT
            (SELECT count(*) FROM records),
            (SELECT count(*) FROM titles),
            (SELECT count(*) FROM scores),
            (SELECT count(DISTINCT record_id) FROM score_history),
            (SELECT count(*) FROM credits)
        """,
    )
    assert rows == [(expected, expected, expected, expected, 3 * expected)]


@pytest.mark.promise("A store that is down slows the crawl and loses nothing.")
def test_a_server_that_is_stopped_in_the_middle_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def crawl(server: PostgresServer, url: str) -> None:
        async with running(PostgresStore(url), tmp_path) as run:
            await feed(run, range(100))
            await until(lambda: run.count("durable") >= 50)
            await asyncio.to_thread(server.stop)
            # All of the others may have been stored before it had stopped.
            after = asyncio.create_task(feed(run, range(100, 200)))
            await until(lambda: run.count("retries") >= 2)
            assert run.count("buffered_max") <= 20
            await asyncio.to_thread(server.start)
            await after
            await until(lambda: run.count("durable") == 200)

    with PostgresServer() as server, caplog.at_level(logging.INFO):
        url = new_database(server.url)
        asyncio.run(crawl(server, url))
        check_whole(url, 200)
    messages = [
        record.getMessage() for record in caplog.records if record.name.startswith("moviecrawler")
    ]
    assert any("attempt 1 failed" in message for message in messages)
    assert any(message.endswith("worked") for message in messages)
    assert not any("\n" in message for message in messages)


async def feed(run: Run, numbers: Iterable[int]) -> None:
    for number in numbers:
        await run.process(make_movie(number))


async def test_a_connection_that_is_cut_inside_a_batch_leaves_nothing_half_written(
    database_url: str, tmp_path: Path
) -> None:
    """The server cuts it once all of the first batch is written but the credits."""
    execute(
        database_url,
        """
        CREATE SEQUENCE cuts;
        CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('cuts') = 1 THEN
                PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(60);
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER cut BEFORE INSERT ON credits FOR EACH ROW EXECUTE FUNCTION cut()
        """,
    )
    async with running(PostgresStore(database_url), tmp_path, batch_seconds=5) as run:
        await feed(run, range(10))
        await until(lambda: run.count("durable") == 10)
    assert run.count("retries") == 1
    check_whole(database_url, 10)


@pytest.mark.parametrize(
    ("error", "expected", "sentence"),
    [
        (errors.UniqueViolation("given\n  twice"), RejectedError, "given twice"),
        (ValueError("it has a NUL"), RejectedError, "it has a NUL"),
        (errors.UndefinedTable("no such table"), SchemaError, "no such table"),
        (errors.QueryCanceled("it took too long"), TooSlowError, "it took too long"),
        (psycopg2.OperationalError("it is\ngone"), TransientStoreError, "it is gone"),
        (psycopg2.OperationalError(), TransientStoreError, "OperationalError"),
        (errors.InsufficientPrivilege("denied"), ConfigurationError, "our tables: denied"),
        (errors.ReadOnlySqlTransaction("a copy"), ConfigurationError, "our tables: a copy"),
    ],
    ids=repr,
)
def test_an_error_of_the_server_is_told_by_what_can_be_done_about_it(
    error: Exception, expected: type[Exception], sentence: str
) -> None:
    with pytest.raises(expected, match=f"{sentence}$") as told, refusals_translated():
        raise error
    assert type(told.value) is expected


@pytest.mark.parametrize(
    "url",
    [
        "movies",
        "mysql://crawler:s3cret@127.0.0.1/movies",
        "host=127.0.0.1 dbname=movies password=s3cret",
        "postgresql://crawler:s3cret@127.0.0.1",
        "postgresql://crawler:s3cret@127.0.0.1:port/movies",
        "postgresql://crawler:s3c@s3cret@127.0.0.1/movies",
        "postgresql://crawler:5/s3cret@127.0.0.1/movies",
        "postgresql://crawler:s3cret/a@127.0.0.1/movies",
        "postgresql://crawler:%s3cret@127.0.0.1/movies",
        "postgresql://crawler:5/a?user=s3cret@127.0.0.1/movies",
        "postgresql://crawler:5/a?sslmode=s3cret@127.0.0.1/movies",
        "postgresql://crawler:s3cret@127.0.0.1/movies?colour=red",
    ],
)
def test_a_malformed_url_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL is not of the form") as caught:
        PostgresStore(url)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("url", "error", "sentence"),
    [
        (UNREACHABLE, TransientStoreError, "refused"),
        ("postgresql://crawler:s3cret@host.invalid/movies", TransientStoreError, "host.invalid"),
        ("postgresql:///movies?host=/no/such/folder", TransientStoreError, "No such file"),
        (f"{UNREACHABLE}?sslmode=maybe", ConfigurationError, "invalid sslmode"),
    ],
)
def test_a_server_that_is_out_of_reach_may_be_tried_again(
    url: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence) as caught:
        connect(url, WORK)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)


def test_a_message_that_can_not_be_decoded_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it knows our encoding, a server writes in its own."""
    told = UnicodeDecodeError(
        "utf-8", "Das System fährt herunter".encode("latin-1"), 12, 13, "invalid start byte"
    )
    monkeypatch.setattr(psycopg2, "connect", Mock(side_effect=told))
    with pytest.raises(TransientStoreError, match="hrt herunter"):
        connect(UNREACHABLE, WORK)


def test_a_database_or_user_that_does_not_exist_stops_the_crawl(
    postgres_server: str, tmp_path: Path
) -> None:
    async def crawl(url: str) -> None:
        async with running(PostgresStore(url), tmp_path):
            pass

    parts = urlsplit(postgres_server)
    for url in (
        parts._replace(path="/no_such_database").geturl(),
        parts._replace(netloc=f"nobody:s3cret@{parts.netloc.rpartition('@')[2]}").geturl(),
    ):
        with pytest.raises(CloseSpider) as caught:
            asyncio.run(crawl(url))
        assert "refuses us" in str(caught.value.__cause__)
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_database_that_is_gone_in_the_middle_is_waited_for(
    postgres_server: str, database_url: str
) -> None:
    name = urlsplit(database_url).path[1:]
    record = record_of(make_movie(1))
    with opened(PostgresStore(database_url)) as store:
        execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")
        for _ in range(2):
            with pytest.raises(TransientStoreError):
                store.write([record])
        execute(postgres_server, f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
        store.write([record])
    check_whole(database_url, 1)


def test_every_connection_gives_up_in_time_and_says_who_it_is(database_url: str) -> None:
    settings = (
        "statement_timeout",
        "idle_in_transaction_session_timeout",
        "application_name",
        "synchronous_commit",
    )
    query = " UNION ALL ".join(f"SELECT current_setting('{name}')" for name in settings)
    with (
        opened(PostgresStore(database_url)) as store,
        store._database.transaction() as cursor,
    ):
        cursor.execute(query)
        assert cursor.fetchall() == [("1min",), ("30s",), ("moviecrawler",), ("on",)]
        assert (
            cursor.connection.get_dsn_parameters().items()
            >= {"connect_timeout": "10", "keepalives_idle": "30"}.items()
        )
    own = {"connect_timeout": "3", "application_name": "mine", "sslmode": "disable"}
    separator = "&" if urlsplit(database_url).query else "?"
    with closing(connect(f"{database_url}{separator}{urlencode(own)}", WORK)) as connection:
        assert connection.get_dsn_parameters().items() >= own.items()


def test_a_stricter_isolation_of_a_database_does_not_count(database_url: str) -> None:
    """As transactions that have waited for each other would fail."""
    name = urlsplit(database_url).path[1:]
    execute(
        database_url, f"ALTER DATABASE {name} SET default_transaction_isolation TO 'serializable'"
    )
    with (
        opened(PostgresStore(database_url)) as store,
        closing(Database(database_url)) as of_catalogue,
    ):
        for database in (store._database, of_catalogue):
            with database.transaction() as cursor:
                cursor.execute("SHOW transaction_isolation")
                assert cursor.fetchall() == [("read committed",)]


def test_a_user_without_rights_is_refused_at_the_start(
    postgres_server: str, database_url: str
) -> None:
    name = urlsplit(database_url).path[1:]
    of_reader = f"ALL TABLES IN SCHEMA public TO {name}_reader"
    refusals = {
        f"CREATE ROLE {name}_reader; ALTER DATABASE {name} SET role = {name}_reader": (
            "permission denied for table"
        ),
        f"GRANT SELECT ON {of_reader}": "permission denied for sequence",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}_reader": (
            "permission denied for table sites"
        ),
        f"GRANT ALL ON {of_reader}; REVOKE UPDATE ON titles FROM {name}_reader": (
            "permission denied for table titles"
        ),
        (
            f"ALTER DATABASE {name} RESET role;"
            f" ALTER DATABASE {name} SET default_transaction_read_only = on"
        ): "read-only",
    }
    try:
        for statement, lacking in refusals.items():
            execute(database_url, f"SET role NONE; {statement}")
            with pytest.raises(
                ConfigurationError, match=f"doesn't let us create or write our tables: .*{lacking}"
            ):
                PostgresStore(database_url).open()
    finally:
        execute(postgres_server, f"ALTER DATABASE {name} RESET ALL")
        execute(database_url, f"DROP OWNED BY {name}_reader; DROP ROLE {name}_reader")


@pytest.mark.parametrize("writers", [3, pytest.param(50, marks=pytest.mark.long)])
def test_sites_that_are_written_at_once_are_joined(database_url: str, writers: int) -> None:
    def crawl(number: int) -> None:
        movies = [make_movie(number) for number in range(60)]
        site: Any = ("imdb", "metacritic", "rottentomatoes")[number % 3]
        if site != "imdb":
            movies = [
                replace(one, site=site, site_id=f"lamp/{n}", imdb_id=None)
                for n, one in enumerate(movies)
            ]
        random.Random(number).shuffle(movies)  # noqa: S311 - repeatable
        with closing(PostgresStore(database_url)) as store:
            for first in range(0, 60, 15):
                # Nothing is tried again here: two that waited for each other would fail.
                store.write([record_of(movie) for movie in movies[first : first + 15]])

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(crawl, range(writers)))
    assert execute(database_url, "SELECT count(*), count(DISTINCT title_id) FROM records") == [
        (180, 60)
    ]
    assert execute(database_url, "SELECT count(*) FROM titles") == [(60,)]
