"""Processes write one database in turn.

None fails by waiting, nothing that one tells is lost, and no title keeps the others from it.
"""

import re
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psycopg2
import pytest
from psycopg2.errors import QueryCanceled

from moviecrawler.basics.errors import TooSlowError, TransientStoreError
from moviecrawler.database.records import Stored
from moviecrawler.database.sql import read_sql
from moviecrawler.database.titles import Plan, plan_titles
from moviecrawler.items import Award, Credit, Miss, Movie, Score
from moviecrawler.pipelines import postgres
from moviecrawler.pipelines.postgres import PostgresStore
from tests.catalogued import judged
from tests.runs import BEGIN, LIMIT, make_miss, make_movie, record_of, running
from tests.services.postgres import LOCK_WAITS, execute, postgres_movies
from tests.stored import Stored as Place
from tests.stored import opened
from tests.waiting import until, wait_for


class Writers:
    """Two stores of one database. The first one can be held in the middle of a batch."""

    def __init__(
        self, url: str, stores: tuple[PostgresStore, PostgresStore], pool: ThreadPoolExecutor
    ) -> None:
        self.url = url
        self.one, self.other = stores
        self._pool = pool
        self._written = threading.Event()
        self._go_on = threading.Event()
        match = self.one._match

        def held(*args: Any) -> int:
            self._written.set()
            assert self._go_on.wait(LIMIT)
            return match(*args)

        self.one._match = held  # type: ignore[method-assign,assignment]

    @contextmanager
    def holding(self, *items: Movie | Miss) -> Iterator[None]:
        """Hold the first writer until the end of the block."""
        writing = self._pool.submit(self.one.write, [record_of(item) for item in items])
        assert self._written.wait(LIMIT)
        try:
            yield
        finally:
            self._go_on.set()
            writing.result(LIMIT)

    def write(self, *items: Movie | Miss) -> Future[None]:
        """Have the second writer store a batch."""
        return self._pool.submit(self.other.write, [record_of(item) for item in items])

    def wait_until_one_waits(self) -> None:
        wait_for(lambda: execute(self.url, LOCK_WAITS) == [(1,)])


@pytest.fixture
def writers(database_url: str) -> Iterator[Writers]:
    """Return two stores on one database."""
    with ExitStack() as stack:
        stores = (
            stack.enter_context(opened(PostgresStore(database_url))),
            stack.enter_context(opened(PostgresStore(database_url))),
        )
        yield Writers(database_url, stores, stack.enter_context(ThreadPoolExecutor(2)))


@pytest.mark.parametrize("stored", [False, True], ids=["a new title", "a title that is stored"])
def test_what_two_processes_tell_of_a_title_at_the_same_moment_is_put_together(
    writers: Writers, stored: bool
) -> None:
    if stored:
        writers.write(make_movie(1, 3_600)).result(LIMIT)
    newer = make_movie(
        1, scores=[Score(kind="imdb", value=8.1, count=2_000)], unknown_fields=["plot"]
    )
    with writers.holding(make_movie(1, 60, plot="A keeper trims the lamp."), make_movie(2, 60)):
        second = writers.write(make_movie(3), newer, make_movie(2))
        writers.wait_until_one_waits()
    second.result(LIMIT)
    movie = next(movie for movie in postgres_movies(writers.url) if movie.site_id == "tt0000001")
    assert (movie.plot, movie.scores, movie.scraped_at) == (
        "A keeper trims the lamp.",
        newer.scores,
        BEGIN,
    )
    history = execute(
        writers.url,
        "SELECT value::float FROM score_history JOIN records USING (record_id)"
        " WHERE site_id = 'tt0000001' ORDER BY since",
    )
    assert history == [(7.5,), (8.1,)]
    assert execute(writers.url, "SELECT count(*), count(DISTINCT title_id) FROM records") == [
        (3, 3)
    ]
    assert execute(writers.url, "SELECT count(*) FROM titles") == [(3,)]
    assert execute(writers.url, "SELECT count(*) FROM people WHERE person_id = 'nm0000001'") == [
        (1,)
    ]


@pytest.mark.parametrize(
    ("age", "left"), [(60, 0), (-60, 1)], ids=["an older miss", "a newer miss"]
)
def test_a_miss_that_is_stored_beside_a_page_stays_only_when_it_is_newer(
    writers: Writers, age: int, left: int
) -> None:
    with writers.holding(make_movie(1)):
        second = writers.write(make_miss(1, age))
        writers.wait_until_one_waits()
    second.result(LIMIT)
    assert execute(writers.url, "SELECT count(*) FROM misses") == [(left,)]


def test_a_process_that_is_to_end_waits_for_others_no_longer(
    writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_CLOSING_LOCK_TIMEOUT", "100ms")
    with writers.holding(make_movie(1)):
        second = writers.write(make_movie(2))
        writers.wait_until_one_waits()
        writers.other.hurry()
        with pytest.raises(TransientStoreError, match="this one is shutting down"):
            second.result(LIMIT)
        # The last try before it is spooled.
        with pytest.raises(TransientStoreError, match="other processes"):
            writers.write(make_movie(2)).result(LIMIT)
    writers.write(make_movie(2)).result(LIMIT)
    assert execute(writers.url, "SELECT count(*) FROM records") == [(2,)]


def test_a_cancelled_batch_of_none_may_be_tried_again(
    writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "plan_titles", Mock(side_effect=QueryCanceled))
    with pytest.raises(TooSlowError):
        writers.other.write([])


def test_who_stands_still_while_it_writes_is_ended_and_loses_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_SESSION", replace(postgres._SESSION, idle_seconds=0.3))
    with (
        opened(PostgresStore(database_url)) as paused,
        opened(PostgresStore(database_url)) as other,
    ):
        match = paused._match
        monkeypatch.setattr(paused, "_match", lambda *_: time.sleep(1))
        with pytest.raises(TransientStoreError):
            paused.write([record_of(make_movie(1))])
        other.write([record_of(make_movie(2))])
        monkeypatch.setattr(paused, "_match", match)
        paused.write([record_of(make_movie(1))])
    assert execute(database_url, "SELECT count(*) FROM records") == [(2,)]


def test_a_title_that_takes_too_long_to_compare_stays_one_of_its_own(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def plan(cursor: Any, changed: Sequence[Stored]) -> Plan:
        if any(record.movie.site_id == "movie/lamp-2" for record in changed):
            cursor.execute("SET LOCAL statement_timeout = '50ms'")
            cursor.execute("SELECT pg_sleep(10)")
        return plan_titles(cursor, changed)

    monkeypatch.setattr(postgres, "plan_titles", plan)
    movies = [
        make_movie(n, title=f"The {word} Lamp")
        for n, word in enumerate(("Red", "Green", "Blue", "Black"))
    ]
    with opened(PostgresStore(database_url)) as store:
        store.write([record_of(movie) for movie in movies])
        for n, movie in enumerate(movies):
            store.write(
                [
                    record_of(
                        replace(movie, site="metacritic", site_id=f"movie/lamp-{n}", imdb_id=None)
                    )
                ]
            )
    groups = execute(database_url, "SELECT count(*) FROM records GROUP BY title_id ORDER BY 1")
    assert groups == [(1,), (1,), (2,), (2,), (2,)]
    assert "metacritic movie/lamp-2 is stored, but not compared" in caplog.text
    assert execute(database_url, "SELECT site FROM title_sites WHERE site_id = 'movie/lamp-2'") == [
        ("metacritic",)
    ]


async def test_a_title_that_the_catalogue_refuses_is_durable_and_keeps_no_other_from_it(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    execute(
        database_url,
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (
                SELECT FROM records WHERE title_id = NEW.title_id AND site_id = 'tt0000001'
            ) THEN
                RAISE EXCEPTION 'a rule of our own' USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON title_sites FOR EACH ROW EXECUTE FUNCTION refuse()
        """,
    )
    async with running(PostgresStore(database_url), tmp_path, batch_items=4) as run:
        await run.process(*map(make_movie, range(8)))
        await until(lambda: len(run.reported) == 8)
        await run.process(make_movie(1, -60))  # whose keys have not changed
    assert [outcome for _, outcome, _ in run.reported] == ["durable"] * 9
    assert execute(database_url, "SELECT count(*) FROM records") == [(8,)]
    assert execute(database_url, "SELECT count(site_id) FROM title_sites") == [(7,)]
    assert (
        caplog.text.count("imdb tt0000001 is stored, but not in the catalogue: a rule of our own")
        == 2
    )


async def test_an_item_that_takes_too_long_to_write_is_set_aside_alone(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_STATEMENT_TIMEOUT", "1s")
    monkeypatch.setattr("moviecrawler.pipelines.writer._MAX_SLOW_TRIES", 0)
    execute(
        database_url,
        """
        CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_sleep(60); RETURN NEW; END';
        CREATE TRIGGER dawdle BEFORE INSERT ON records FOR EACH ROW
            WHEN (NEW.site_id = 'tt0000001') EXECUTE FUNCTION dawdle()
        """,
    )

    async with running(
        PostgresStore(database_url), tmp_path, batch_items=2, batch_seconds=60
    ) as run:
        await run.process(*map(make_movie, range(2)))
    assert run.outcomes() == {"tt0000000": "durable", "tt0000001": "rejected"}
    assert (
        "takes too long: canceling statement due to statement timeout"
        in run.rejected()[0]["reason"]
    )


@pytest.mark.promise("A writer that waits for another session says so, and who that is.")
def test_a_writer_that_waits_says_for_whom_and_a_start_gives_up(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(postgres, "_LOCK_TIMEOUT", "100ms")
    with (
        opened(PostgresStore(database_url)) as store,
        ThreadPoolExecutor(2) as pool,
        closing(psycopg2.connect(database_url, application_name="somebody else")) as other,
        closing(psycopg2.connect(database_url, application_name="the next one")) as later,
    ):
        with other, other.cursor() as cursor:
            cursor.execute("SELECT lock_titles()")
            written = pool.submit(store.write, [record_of(make_movie(1))])
            wait_for(lambda: "for the lock of writers, which the session" in caplog.text)
            assert "of somebody else (" in caplog.text
            taken = pool.submit(later.cursor().execute, "SELECT lock_titles()")
            wait_for(lambda: re.search("in a transaction since [1-9] s,", caplog.text))
            monkeypatch.setattr(postgres, "_PATIENCE_SECONDS", 0.2)
            with pytest.raises(TransientStoreError, match="has held the lock of writers for"):
                PostgresStore(database_url).open()
        taken.result(LIMIT)
        wait_for(lambda: "of the next one (" in caplog.text)
        later.commit()
        written.result(LIMIT)
    assert len(postgres_movies(database_url)) == 1


def test_of_all_sessions_only_the_holder_of_the_lock_of_a_database_is_named(
    database_url: str, empty_database_url: str
) -> None:
    lock = 7303170117561344001
    halves = struct.unpack(">2i", struct.pack(">q", lock))
    with (
        closing(psycopg2.connect(database_url, application_name="waiting")) as waiting,
        ThreadPoolExecutor(1) as pool,
        ExitStack() as stack,
    ):

        def cursor_of(name: str, url: str, statement: str, *values: object) -> Any:
            connection = psycopg2.connect(url, application_name=name)
            cursor = stack.enter_context(closing(connection)).cursor()
            cursor.execute(statement, values or None)
            return cursor

        cursor_of("holder", database_url, "SELECT lock_titles()")
        cursor_of("another lock", database_url, "SELECT pg_advisory_lock(1)")
        cursor_of("two numbers", database_url, "SELECT pg_advisory_lock(%s, %s)", *halves)
        cursor_of("another database", empty_database_url, "SELECT pg_advisory_lock(%s)", lock)
        pool.submit(waiting.cursor().execute, "SELECT lock_titles()")
        wait_for(lambda: execute(database_url, LOCK_WAITS) == [(1,)])
        [[sentence]] = cursor_of("reader", database_url, read_sql("holder.sql")).fetchall()
    assert "of holder (" in sentence


def test_a_key_that_too_many_share_is_left_out_and_the_search_goes_on(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("moviecrawler.database.titles._MAX_RECORDS", 5)
    caplog.set_level("INFO")

    def film(site: str, number: int, title: str) -> Movie:
        return replace(
            make_movie(number),
            site=site,
            site_id=f"tt{number:07}" if site == "imdb" else f"m/film_{number}",
            imdb_id=f"tt{number:07}" if site == "imdb" else None,
            title=title,
            credits=[Credit(name="Odile Farrow", role="director", position=1)],
        )

    with opened(PostgresStore(database_url)) as store:
        crowd = [film("imdb", number, f"Lamp {number}x: The Night") for number in range(10, 20)]
        store.write([record_of(movie) for movie in (*crowd, film("imdb", 1, "Salt: The Night"))])
        store.write([record_of(film("rottentomatoes", 1, "Salt: The Night"))])
        titles = "SELECT title_id, imdb_id FROM scoreboard WHERE rottentomatoes_id = 'm/film_1'"
        ((title_id, imdb_id),) = execute(database_url, titles)
        assert (imdb_id, store.figures) == ("tt0000001", {"crowded_searches": 1})
        # So is a search for what a page that is accepted belongs to.
        again = film("rottentomatoes", 1, "Salt: The Night")
        again.note = judged("m/film_1", int(str(title_id)))
        store.write([record_of(again)])
    assert store.figures == {"crowded_searches": 2}
    assert "have keys that more than 5 records share" in caplog.text


async def test_a_table_that_fits_no_statement_ends_the_crawl_and_rejects_nothing(
    database: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(database.store(), tmp_path) as run:
        if database.kind == "csv":
            with closing(sqlite3.connect(tmp_path / "movies.sqlite3")) as connection:
                connection.execute("DROP TABLE awards")
        else:
            execute(database.url, "DROP TABLE awards CASCADE")
        award = Award(event=None, wins=1, nominations=0)
        await run.process(make_movie(1, awards=[award]))
        await until(lambda: "writing failed" in caplog.text)
    assert (run.count("retries"), run.outcomes()) == (0, {"tt0000001": "spooled"})
