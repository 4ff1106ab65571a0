"""Deciding which records are one title keeps nobody else from writing, has bounds, and is made up for after a crash."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from moviecrawler.database.connection import connect
from moviecrawler.database.titles import plan_titles
from moviecrawler.errors import TransientStoreError
from moviecrawler.pipelines import postgres
from moviecrawler.pipelines.postgres import PostgresStore
from tests.pipelines.runs import LIMIT, make_movie, record_of, running
from tests.pipelines.stored import opened
from tests.services.postgres import LOCK_WAITS, execute
from tests.waiting import until, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moviecrawler.database.titles import Plan, Stored
    from moviecrawler.items import Movie


def on_metacritic(number: int, title: str) -> Movie:
    return make_movie(
        number,
        site="metacritic",
        site_id=f"movie/lamp-{number}",
        url=f"https://www.metacritic.com/movie/lamp-{number}/",
        imdb_id=None,
        title=title,
    )


def store_movies(store: PostgresStore, *movies: Movie) -> None:
    store.write([record_of(movie) for movie in movies])


def titles(url: str) -> list[object]:
    """Return how many records each title has, in ascending order."""
    return sorted(
        n
        for (n,) in execute(url, "SELECT count(*) FROM records GROUP BY title_id")  # type: ignore[type-var]
    )


def test_others_write_while_titles_are_compared(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    comparing, go_on = threading.Event(), threading.Event()
    plans = 0

    def slow(cursor: Any, changed: Sequence[Stored]) -> Plan:
        nonlocal plans
        plans += 1
        plan = plan_titles(cursor, changed)
        if changed[0].movie.site == "imdb" and not comparing.is_set():
            comparing.set()
            assert go_on.wait(LIMIT)
        return plan

    monkeypatch.setattr(postgres, "plan_titles", slow)
    with opened(PostgresStore(database_url)) as one, opened(PostgresStore(database_url)) as other:
        writer = threading.Thread(target=store_movies, args=(one, make_movie(1, title="The Lamp")))
        writer.start()
        assert comparing.wait(LIMIT)
        # The same title from another site: joined here, and not torn apart by what was found before.
        store_movies(other, on_metacritic(1, "The Lamp"))
        go_on.set()
        writer.join(LIMIT)
        assert not writer.is_alive()
    assert titles(database_url) == [2]
    assert plans == 2
    assert execute(database_url, "SELECT count(*) FROM unjoined") == [(0,)]


def test_what_is_planned_is_planned_again_when_others_wrote_the_same_titles(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(PostgresStore(database_url)) as one, opened(PostgresStore(database_url)) as other:
        store_movies(one, make_movie(1, title="The Lamp"))
        plans = 0

        def overtaken(cursor: Any, changed: Sequence[Stored]) -> Plan:
            nonlocal plans
            plans += 1
            plan = plan_titles(cursor, changed)
            if plans == 1:
                monkeypatch.setattr(postgres, "plan_titles", plan_titles)
                store_movies(other, make_movie(1, -60, title="Quite Another"))
                monkeypatch.setattr(postgres, "plan_titles", overtaken)
            return plan

        monkeypatch.setattr(postgres, "plan_titles", overtaken)
        store_movies(one, on_metacritic(1, "The Lamp"))
    assert plans == 2
    assert titles(database_url) == [1, 1]


def test_what_others_write_all_the_time_is_planned_while_they_wait(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        opened(PostgresStore(database_url)) as one,
        opened(PostgresStore(database_url)) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        store_movies(one, make_movie(1, title="The Lamp"))
        writing: list[Future[None]] = []

        def is_over() -> bool:
            return writing[-1].done() or execute(database_url, LOCK_WAITS) == [(1,)]

        def overtaken(cursor: Any, changed: Sequence[Stored]) -> Plan:
            plan = plan_titles(cursor, changed)
            if changed[0].movie.site == "metacritic":
                again = make_movie(1, -60 * (len(writing) + 1), title="The Lamp", runtime_minutes=90 + len(writing))
                writing.append(pool.submit(store_movies, other, again))
                wait_for(is_over)
            return plan

        monkeypatch.setattr(postgres, "plan_titles", overtaken)
        store_movies(one, on_metacritic(1, "The Lamp"))
        writing[-1].result(LIMIT)
    assert len(writing) == 4
    assert titles(database_url) == [2]
    assert execute(database_url, "SELECT count(*) FROM unjoined") == [(0,)]


def slow_for(site_id: str) -> Callable[[Any, Sequence[Stored]], Plan]:
    def plan(cursor: Any, changed: Sequence[Stored]) -> Plan:
        if any(record.movie.site_id == site_id for record in changed):
            try:
                cursor.execute("SET statement_timeout = '50ms'")
                cursor.execute("SELECT pg_sleep(10)")
            finally:
                cursor.execute("SET statement_timeout = '60s'")
        return plan_titles(cursor, changed)

    return plan


def test_a_title_that_takes_too_long_to_compare_stays_one_of_its_own(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(postgres, "plan_titles", slow_for("movie/lamp-2"))
    names = [f"The {word} Lamp" for word in ("Red", "Green", "Blue", "Black")]
    with opened(PostgresStore(database_url)) as store:
        store_movies(store, *(make_movie(n, title=name) for n, name in enumerate(names)))
        store_movies(store, *(on_metacritic(n, name) for n, name in enumerate(names)))
    assert titles(database_url) == [1, 1, 2, 2, 2]
    assert "metacritic movie/lamp-2 is stored, but not compared" in caplog.text
    assert execute(database_url, "SELECT count(*) FROM unjoined") == [(0,)]
    assert execute(database_url, "SELECT site FROM title_sites WHERE site_id = 'movie/lamp-2'") == [("metacritic",)]


async def test_a_title_that_the_catalogue_refuses_is_durable_and_keeps_no_other_from_it(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was told rejected, and so was all that came after it: each batch took it up again."""
    execute(
        database_url,
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT FROM records WHERE title_id = NEW.title_id AND site_id = 'tt0000001') THEN
                RAISE EXCEPTION 'a rule of our own' USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON title_sites FOR EACH ROW EXECUTE FUNCTION refuse()
        """,
    )
    async with running(PostgresStore(database_url), tmp_path, batch_items=4) as run:
        for number in range(8):
            await run.pipeline.process_item(make_movie(number))
        await until(lambda: len(run.settled) == 8)
        await run.pipeline.process_item(make_movie(1, -60))  # whose keys have not changed
    assert [outcome for _, outcome, _ in run.settled] == ["durable"] * 9
    assert execute(database_url, "SELECT count(*) FROM records") == [(8,)]
    assert execute(database_url, "SELECT count(site_id) FROM title_sites") == [(7,)]
    assert execute(database_url, "SELECT count(*) FROM unjoined") == [(0,)]
    assert caplog.text.count("imdb tt0000001 is stored, but not in the catalogue: a rule of our own") == 2


async def test_an_item_that_takes_too_long_to_write_is_set_aside_alone(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = postgres._SESSION
    monkeypatch.setattr(postgres, "_SESSION", session.replace("statement_timeout = '60s'", "statement_timeout = '1s'"))
    monkeypatch.setattr("moviecrawler.pipelines.writer._MAX_SLOW_TRIES", 0)
    execute(
        database_url,
        """
        CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END';
        CREATE TRIGGER dawdle BEFORE INSERT ON records FOR EACH ROW WHEN (NEW.site_id = 'tt0000001') EXECUTE FUNCTION dawdle()
        """,
    )

    async with running(PostgresStore(database_url), tmp_path, batch_items=2, batch_seconds=60) as run:
        for number in range(2):
            await run.pipeline.process_item(make_movie(number))
    assert run.outcomes() == {"tt0000000": "durable", "tt0000001": "rejected"}
    assert "takes too long: canceling statement due to statement timeout" in run.rejected()[0]["reason"]


def test_who_waits_for_others_to_write_is_not_to_blame(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = postgres._SESSION
    monkeypatch.setattr(postgres, "_SESSION", session.replace("lock_timeout = '45s'", "lock_timeout = '100ms'"))
    with opened(PostgresStore(database_url)) as store:
        with closing(connect(database_url)) as other, other.cursor() as cursor:
            cursor.execute("SELECT lock_titles()")
            with pytest.raises(TransientStoreError, match="other processes write the same all the time"):
                store_movies(store, make_movie(1))
        store_movies(store, make_movie(1))
    assert titles(database_url) == [1]


@pytest.mark.parametrize("same", [True, False], ids=["the same process", "another process"])
@pytest.mark.parametrize(
    "step", [(PostgresStore, "_end_misses"), (postgres, "plan_titles")], ids=["settling", "comparing"]
)
def test_what_a_process_could_not_compare_is_compared_later(
    database_url: str, monkeypatch: pytest.MonkeyPatch, step: tuple[object, str], same: bool
) -> None:
    def die(*_: object) -> Plan:
        raise ConnectionError("killed")

    with opened(PostgresStore(database_url)) as one, opened(PostgresStore(database_url)) as other:
        store_movies(one, make_movie(1, title="The Lamp"))
        monkeypatch.setattr(*step, die)
        with pytest.raises(ConnectionError):
            store_movies(one, on_metacritic(1, "The Lamp"))
        monkeypatch.undo()
        assert titles(database_url) == [1, 1]
        if same:
            store_movies(one, on_metacritic(1, "The Lamp"))  # the same batch again
        else:
            store_movies(other, make_movie(7, title="Another"))
            assert titles(database_url) == [1, 1, 1]  # the first may still be at it
            execute(database_url, "UPDATE unjoined SET since = since - interval '1 hour'")
            other._next_look = 0
            store_movies(other, make_movie(8, title="A Third"))
    assert titles(database_url) == ([2] if same else [1, 1, 2])
    assert execute(database_url, "SELECT count(*) FROM unjoined") == [(0,)]


def test_titles_whose_comparing_failed_are_compared_by_later_tries_however_many_they_are(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those beyond what is taken up beside one batch were told compared, as their batch had nothing new any more."""
    monkeypatch.setattr(postgres, "_MAX_UNJOINED", 1)
    names = [f"The {word} Lamp" for word in ("Red", "Green", "Blue", "Black")]
    movies = [on_metacritic(n, name) for n, name in enumerate(names)]
    with opened(PostgresStore(database_url)) as store:
        store_movies(store, *(make_movie(n, title=name) for n, name in enumerate(names)))
        with monkeypatch.context() as patched:
            patched.setattr(postgres, "plan_titles", Mock(side_effect=ConnectionError("killed")))
            with pytest.raises(ConnectionError):
                store_movies(store, *movies)
        store_movies(store, *movies)
        assert execute(database_url, "SELECT count(*) FROM unjoined") == [(3,)]
        for _ in range(3):
            store._next_look = 0.0
            store_movies(store, movies[0])
    assert titles(database_url) == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "words", [80, 1_600], ids=["as long as is let through", "as the spool of an earlier version has them"]
)
def test_similar_long_titles_take_seconds(database_url: str, words: int) -> None:
    def title(number: int) -> str:
        return " ".join(f"w{word % (17 + number % 5)}rd{word}" for word in range(words))[: words * 6]

    began = time.process_time()
    with opened(PostgresStore(database_url)) as store:
        store._connection.cursor().execute("SET statement_timeout = '20s'")  # type: ignore[union-attr]
        store_movies(store, *(make_movie(n, title=title(n)) for n in range(15)))
        store_movies(store, *(on_metacritic(n, title(n)) for n in range(15)))
    assert time.process_time() - began < LIMIT
    assert execute(database_url, "SELECT count(*) FROM records") == [(30,)]
