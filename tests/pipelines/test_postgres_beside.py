"""Processes store movies in one database beside each other: none waits for another without need, and nothing that one tells is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from psycopg2.extensions import cursor

from moviecrawler.database.connection import connect
from moviecrawler.database.titles import _LOCK, hash_keys
from moviecrawler.items import Score
from moviecrawler.pipelines import postgres
from moviecrawler.pipelines.postgres import PostgresStore
from tests.pipelines.runs import BEGIN, LIMIT, make_miss, make_movie, record_of
from tests.pipelines.stored import opened
from tests.services.postgres import LOCK_WAITS, execute, postgres_movies
from tests.waiting import wait_for

if TYPE_CHECKING:
    from moviecrawler.items import Miss, Movie


class Writers:
    """Two stores of one database. The first one can be held when its movies are written, and not committed."""

    def __init__(self, url: str, stores: tuple[PostgresStore, PostgresStore], pool: ThreadPoolExecutor) -> None:
        self.url = url
        self._one, self._other = stores
        self._pool = pool
        self._written, self._go_on = threading.Event(), threading.Event()
        write = self._one._write_movies

        def held(*args: Any) -> Any:
            found = write(*args)
            self._written.set()
            assert self._go_on.wait(LIMIT)
            return found

        self._one._write_movies = held  # type: ignore[method-assign,assignment]

    @contextmanager
    def holding(self, *items: Movie | Miss) -> Iterator[None]:
        """Hold the first writer in the middle of a batch until the end of the block."""
        writing = self._pool.submit(self._one.write, [record_of(item) for item in items])
        assert self._written.wait(LIMIT)
        try:
            yield
        finally:
            self._go_on.set()
            writing.result(LIMIT)

    def write(self, *items: Movie | Miss) -> Future[None]:
        """Have the second writer store a batch."""
        return self._pool.submit(self._other.write, [record_of(item) for item in items])

    def wait_until_one_waits(self) -> None:
        wait_for(lambda: execute(self.url, LOCK_WAITS) == [(1,)])


@pytest.fixture
def writers(database_url: str) -> Iterator[Writers]:
    with ExitStack() as stack:
        stores = (
            stack.enter_context(closing(PostgresStore(database_url))),
            stack.enter_context(closing(PostgresStore(database_url))),
        )
        for store in stores:
            store.open()
        yield Writers(database_url, stores, stack.enter_context(ThreadPoolExecutor(2)))


def test_who_writes_other_titles_does_not_wait(writers: Writers) -> None:
    with writers.holding(make_movie(1, credits=[])):
        writers.write(make_movie(2, credits=[])).result(LIMIT)
        assert execute(writers.url, "SELECT site_id FROM title_sites WHERE site_id IS NOT NULL") == [("tt0000002",)]
    assert execute(writers.url, "SELECT count(*), count(DISTINCT title_id) FROM records") == [(2, 2)]


@pytest.mark.parametrize("stored", [False, True], ids=["a new title", "a title that is stored"])
def test_what_two_processes_tell_of_a_title_at_the_same_moment_is_put_together(writers: Writers, stored: bool) -> None:
    if stored:
        writers.write(make_movie(1, 3_600)).result(LIMIT)
    newer = make_movie(1, scores=[Score(kind="imdb", value=8.1, count=2_000)], silent=["plot"])
    with writers.holding(make_movie(1, 60, plot="A keeper trims the lamp."), make_movie(2, 60)):
        second = writers.write(make_movie(3), newer, make_movie(2))
        writers.wait_until_one_waits()
    second.result(LIMIT)
    movie = next(movie for movie in postgres_movies(writers.url) if movie.site_id == "tt0000001")
    assert (movie.plot, movie.scores, movie.scraped_at) == ("A keeper trims the lamp.", newer.scores, BEGIN)
    history = execute(
        writers.url,
        "SELECT value::float FROM score_history JOIN records USING (record_id) WHERE site_id = 'tt0000001' ORDER BY since",
    )
    assert history == [(7.5,), (8.1,)]
    assert execute(writers.url, "SELECT count(*), count(DISTINCT title_id) FROM records") == [(3, 3)]
    assert execute(writers.url, "SELECT count(*) FROM titles") == [(3,)]
    assert execute(writers.url, "SELECT count(*) FROM people WHERE site_person_id = 'nm0000001'") == [(1,)]


def before_reading(store: PostgresStore, action: Callable[[], None]) -> None:
    """Have a store call `action` each time when it has locked records, and not read them."""

    class Watched(cursor):  # type: ignore[misc]  # psycopg2 has no types
        def execute(self, query: str, values: Any = None) -> None:
            if query == postgres._LOCATE:
                action()
            super().execute(query, values)

    store._connected().cursor_factory = Watched


def test_a_title_that_comes_between_locking_and_reading_is_locked_before_it_is_written(database_url: str) -> None:
    unlocked: list[list[tuple[object, ...]]] = []

    with closing(PostgresStore(database_url)) as one, closing(PostgresStore(database_url)) as other:
        for store in (one, other):
            store.open()

        def meanwhile() -> None:
            if not unlocked:
                other.write([record_of(make_movie(1, 60, plot="A keeper trims the lamp."))])
            unlocked.append(execute(database_url, "SELECT site_id FROM records FOR UPDATE SKIP LOCKED"))

        before_reading(one, meanwhile)
        one.write([record_of(make_movie(1, silent=["plot"]))])
    assert unlocked == [[("tt0000001",)], []]
    (movie,) = postgres_movies(database_url)
    assert (movie.plot, movie.scraped_at) == ("A keeper trims the lamp.", BEGIN)


def test_who_compares_what_another_left_and_who_writes_it_do_not_wait_for_each_other(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger=postgres.__name__)
    comparing: list[Future[None]] = []
    renamed = make_movie(1, title="The Buoy")
    with (
        opened(PostgresStore(database_url)) as one,
        closing(PostgresStore(database_url)) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        one.write([record_of(make_movie(1, 60))])
        execute(
            database_url,
            "UPDATE records SET match_keys = '{1}';"
            " INSERT INTO unjoined SELECT record_id, 'a process that died', now() - interval '1 hour' FROM records",
        )
        other.open()

        def meanwhile() -> None:  # when its record is locked, and not written
            if not comparing:
                comparing.append(pool.submit(other.write, [record_of(make_movie(2, credits=[]))]))
                wait_for(lambda: execute(database_url, LOCK_WAITS) == [(1,)])

        before_reading(one, meanwhile)
        one.write([record_of(renamed)])
        comparing[0].result(LIMIT)
    assert "Another process wrote the same" not in caplog.text
    assert execute(database_url, "SELECT match_keys FROM records WHERE site_id = 'tt0000001'") == [
        (hash_keys(renamed),)
    ]
    assert execute(database_url, "SELECT count(*) FROM unjoined") == [(0,)]


def test_who_waits_to_settle_titles_keeps_nobody_from_writing_alone(writers: Writers) -> None:
    with closing(connect(writers.url)) as settling, settling.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK + 1,))
        writing = writers.write(make_movie(1))
        writers.wait_until_one_waits()
        execute(writers.url, "SET lock_timeout = '2s'; SELECT lock_titles()")
        settling.rollback()
        writing.result(LIMIT)


@pytest.mark.parametrize(("age", "left"), [(60, 0), (-60, 1)], ids=["an older miss", "a newer miss"])
def test_a_miss_that_is_stored_beside_a_page_stays_only_when_it_is_newer(writers: Writers, age: int, left: int) -> None:
    with writers.holding(make_movie(1)):
        writers.write(make_miss(1, age)).result(LIMIT)
    assert execute(writers.url, "SELECT count(*) FROM misses") == [(left,)]


@pytest.mark.parametrize("code", ["40P01", "23505", "23503"], ids=["deadlock", "unique", "foreign key"])
@pytest.mark.parametrize("table", ["credits", "title_sites"], ids=["while it writes", "while it settles"])
def test_who_meets_with_another_process_does_it_again_alone(database_url: str, code: str, table: str) -> None:
    with opened(PostgresStore(database_url)) as store:
        execute(
            database_url,
            f"""
            CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND mode = 'ShareLock') THEN
                    RAISE EXCEPTION 'met' USING ERRCODE = '{code}';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER meet BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION meet()
            """,
        )
        store.write([record_of(make_movie(1)), record_of(make_movie(2))])
    assert len(postgres_movies(database_url)) == 2
    assert execute(database_url, "SELECT count(*) FROM title_sites") == [(6,)]
    assert execute(database_url, "SELECT count(*) FROM unjoined") == [(0,)]
