"""What the Postgres store does when servers, connections or processes fail, and when many work on one database."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg2
import pytest
from scrapy.exceptions import CloseSpider

from moviecrawler.database.connection import connect, open_database
from moviecrawler.errors import ConfigurationError, TransientStoreError
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.store import Record
from tests.pipelines.runs import LIMIT, make_movie, record_of, running
from tests.pipelines.stored import opened
from tests.services.postgres import PostgresServer, execute, new_database
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNREACHABLE = "postgresql://crawler:s3cret@127.0.0.1:9/movies"
"""Port 9 is for discarding, and nothing listens there."""


def check_whole(url: str, expected: int) -> None:
    """Check that so many titles are stored, each once and with everything that belongs to `make_movie`'s."""
    rows = execute(
        url,
        """
        SELECT (SELECT count(*) FROM records), (SELECT count(*) FROM titles), (SELECT count(*) FROM scores),
            (SELECT count(DISTINCT record_id) FROM score_history), (SELECT count(*) FROM credits)
        """,
    )
    assert rows == [(expected, expected, expected, expected, 3 * expected)]


# --- The server -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A store that is down slows the crawl and loses nothing.")
def test_a_server_that_is_stopped_in_the_middle_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def crawl(server: PostgresServer, url: str) -> None:
        async with running(PostgresStore(url), tmp_path) as run:
            before = asyncio.create_task(feed(run.pipeline.process_item, 100))
            await until(lambda: run.count("durable") >= 50)
            await asyncio.to_thread(server.stop)
            # All of the others may have been stored before it had stopped.
            after = asyncio.create_task(feed(run.pipeline.process_item, 100, begin=100))
            await until(lambda: run.count("retries") >= 2)
            assert run.count("buffered_max") <= 20
            await asyncio.to_thread(server.start)
            await before
            await after
            await until(lambda: run.count("durable") == 200)
        assert set(run.outcomes().values()) == {"durable"}

    with PostgresServer() as server, caplog.at_level(logging.INFO):
        url = new_database(server.url)
        asyncio.run(crawl(server, url))
        check_whole(url, 200)
    messages = [record.getMessage() for record in caplog.records]
    assert any("attempt 1 failed" in message for message in messages)
    assert any(message.endswith("worked") for message in messages)
    assert not any("\n" in record.getMessage() for record in caplog.records if record.name.startswith("moviecrawler"))


async def feed(process_item: object, count: int, begin: int = 0) -> None:
    assert callable(process_item)
    for number in range(begin, begin + count):
        await process_item(make_movie(number))


class Cut(PostgresStore):
    """Has its connection cut in the middle of its first batch, by the server, when all but the credits is written."""

    cut = False

    def write(self, records: Sequence[Record]) -> None:
        if self.cut:
            super().write(records)
            return
        self.cut = True
        with closing(psycopg2.connect(self._url)) as other, other.cursor() as cursor:
            cursor.execute("LOCK TABLE credits IN SHARE MODE")
            killer = threading.Thread(target=self._terminate)
            killer.start()
            try:
                super().write(records)
            finally:
                killer.join()

    def _terminate(self) -> None:
        end = time.monotonic() + LIMIT
        while not execute(
            self._url,
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'moviecrawler' AND wait_event = 'relation'
            """,
        ):
            assert time.monotonic() < end, "it never came to the credits"


async def test_a_connection_that_is_cut_inside_a_batch_leaves_nothing_half_written(
    database_url: str, tmp_path: Path
) -> None:
    async with running(Cut(database_url), tmp_path, batch_seconds=5) as run:
        await feed(run.pipeline.process_item, 10)
        await until(lambda: run.count("retries") == 1)
        await until(lambda: run.count("durable") == 10)
    check_whole(database_url, 10)


# --- The URL ----------------------------------------------------------------------------------------------------------


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


def test_a_server_that_is_out_of_reach_may_be_tried_again(tmp_path: Path) -> None:
    for url in (UNREACHABLE, "postgresql://crawler:s3cret@host.invalid/movies"):
        with pytest.raises(TransientStoreError) as caught:
            connect(url)
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))
        assert "\n" not in str(caught.value)
    with pytest.raises(TransientStoreError, match="No such file"):
        connect(f"postgresql:///movies?host={tmp_path}")
    with pytest.raises(ConfigurationError, match="invalid sslmode"):
        connect(f"{UNREACHABLE}?sslmode=maybe")


@pytest.fixture
def german_server() -> Iterator[str]:
    """Yield the URL of a server that lets nobody in, in Latin-1, as one that shuts down does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    while connection.recv(8)[4:] in {b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"}:  # asks for TLS, GSSAPI
                        connection.sendall(b"N")
                    connection.recv(10_000)
                    told = "SFATAL\0C57P03\0MDas Datenbanksystem fährt herunter\0\0".encode("latin-1")
                    connection.sendall(b"E" + (len(told) + 4).to_bytes(4) + told)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"postgresql://crawler:s3cret@127.0.0.1:{listening.getsockname()[1]}/movies"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_a_server_that_says_no_in_an_encoding_of_its_own_is_waited_for(german_server: str) -> None:
    with pytest.raises(TransientStoreError, match=r"hrt herunter|could not be decoded") as caught:
        connect(german_server)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_database_or_user_that_does_not_exist_stops_the_crawl(postgres_server: str, tmp_path: Path) -> None:
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


def test_a_database_that_is_gone_in_the_middle_is_waited_for(postgres_server: str, database_url: str) -> None:
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


def test_a_pooler_that_mixes_sessions_is_told(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(connect(database_url)) as of_pooler:
        monkeypatch.setattr("moviecrawler.database.connection.connect", lambda _: of_pooler)
        PostgresStore(database_url).open()
        with pytest.raises(ConfigurationError, match="have it pool sessions, not transactions"):
            PostgresStore(database_url).open()
    monkeypatch.undo()
    with opened(PostgresStore(database_url)) as store:
        with store._connected() as connection, connection.cursor() as cursor:
            cursor.execute("DISCARD TEMP")  # as another server's session has no such tables
        with pytest.raises(TransientStoreError, match="have it pool sessions, not transactions"):
            store.write([record_of(make_movie(1))])


def test_every_connection_gives_up_in_time_and_says_who_it_is(database_url: str) -> None:
    with opened(PostgresStore(database_url)) as store:
        assert store._connection is not None
        with store._connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'),"
                " current_setting('application_name'), current_setting('synchronous_commit')"
            )
            assert cursor.fetchone() == ("1min", "30s", "moviecrawler", "on")
        parameters = store._connection.get_dsn_parameters()
    assert parameters["connect_timeout"] == "10"
    assert parameters["keepalives_idle"] == "30"
    separator = "&" if urlsplit(database_url).query else "?"
    own = f"{database_url}{separator}connect_timeout=3&application_name=mine&sslmode=disable"
    with closing(connect(own)) as connection:
        parameters = connection.get_dsn_parameters()
    assert (parameters["connect_timeout"], parameters["application_name"]) == ("3", "mine")
    assert parameters["sslmode"] == "disable"


def test_a_stricter_isolation_of_a_database_does_not_count(database_url: str) -> None:
    """As transactions that have waited for each other would fail."""
    name = urlsplit(database_url).path[1:]
    execute(database_url, f"ALTER DATABASE {name} SET default_transaction_isolation TO 'serializable'")
    with opened(PostgresStore(database_url)) as store, closing(open_database(database_url)) as of_catalogue:
        for connection in (store._connected(), of_catalogue):
            with connection, connection.cursor() as cursor:
                cursor.execute("SHOW transaction_isolation")
                assert cursor.fetchall() == [("read committed",)]


# --- The schema -------------------------------------------------------------------------------------------------------


def test_a_user_without_rights_is_refused_at_the_start(postgres_server: str, database_url: str) -> None:
    name = urlsplit(database_url).path[1:]
    execute(database_url, f"CREATE ROLE {name}_reader; ALTER DATABASE {name} SET role = {name}_reader")
    try:
        with pytest.raises(ConfigurationError, match="permission denied"):
            PostgresStore(database_url).open()
        for rights, but, lacking in (
            ("SELECT", "GRANT INSERT, DELETE ON records TO", "delete credits, .*, update records,"),
            ("ALL", "REVOKE ALL ON imdb_episodes FROM", "select imdb_episodes;"),
            ("ALL", "REVOKE USAGE, UPDATE ON SEQUENCE records_record_id_seq FROM", "usage records_record_id_seq;"),
        ):
            granted = "; ".join(
                f"GRANT {rights} ON ALL {kind} IN SCHEMA public TO {name}_reader" for kind in ("TABLES", "SEQUENCES")
            )
            execute(database_url, f"SET role NONE; {granted}; {but} {name}_reader")
            with pytest.raises(ConfigurationError, match=rf"doesn't let \S+ {lacking}"):
                PostgresStore(database_url).open()
        execute(postgres_server, f"ALTER DATABASE {name} RESET role")
        execute(postgres_server, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        with pytest.raises(ConfigurationError, match="it is read-only"):
            PostgresStore(database_url).open()
    finally:
        execute(postgres_server, f"ALTER DATABASE {name} RESET ALL")
        execute(postgres_server, f"ALTER DATABASE {name} SET default_transaction_read_only = off")
        execute(database_url, f"DROP OWNED BY {name}_reader")
        execute(postgres_server, f"DROP ROLE {name}_reader")


# --- Many processes ---------------------------------------------------------------------------------------------------


TITLES = 60


@pytest.mark.parametrize("writers", [3, pytest.param(50, marks=pytest.mark.long)])
def test_sites_that_are_written_at_once_are_joined(database_url: str, writers: int) -> None:
    def crawl(number: int) -> None:
        site = number % 3
        movies = [make_movie(number) for number in range(TITLES)]
        if site:
            home = ("movie/lamp-{}", "m/lamp_{}")[site - 1]
            movies = [
                replace(
                    movie, site=("metacritic", "rottentomatoes")[site - 1], site_id=home.format(number), imdb_id=None
                )
                for number, movie in enumerate(movies)
            ]
        random.Random(number).shuffle(movies)  # noqa: S311 - repeatable
        with closing(PostgresStore(database_url)) as store:
            for first in range(0, TITLES, 15):
                batch = movies[first : first + 15]
                # Nothing is tried again here: two that waited for each other would fail.
                store.write([record_of(movie) for movie in batch])

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(crawl, range(writers)))
    assert execute(database_url, "SELECT count(*), count(DISTINCT title_id) FROM records") == [(3 * TITLES, TITLES)]
    assert execute(database_url, "SELECT count(*) FROM titles") == [(TITLES,)]
