"""A clock that is wrong stops the start, and what was stored by one gives way."""

import asyncio
from contextlib import aclosing, closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from scrapy.exceptions import CloseSpider

from moviecrawler.basics.clock import TOLERANCE, check_clock, process_age, utc_now
from moviecrawler.basics.errors import ClockError
from moviecrawler.database.sqlite import read_sqlite
from moviecrawler.frontier.redis_backend import RedisBackend
from moviecrawler.frontier.redis_client import connect
from moviecrawler.items import Score
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.backends import worker
from tests.runs import crawl, make_movie, record_of
from tests.services.postgres import execute
from tests.stored import opened

AHEAD = timedelta(days=400)


async def open_redis(url: str) -> None:
    async with aclosing(connect(url)) as client:
        await RedisBackend(client).open(worker(), None, 0)


def test_a_clock_may_differ_by_less_than_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = utc_now()
    monkeypatch.setattr("moviecrawler.basics.clock.utc_now", lambda: now)
    check_clock(now + TOLERANCE - timedelta(milliseconds=1), "Redis")
    for ahead, said in ((TOLERANCE, "2 minutes ahead of"), (-TOLERANCE, "2 minutes behind")):
        with pytest.raises(ClockError, match=f"{said} that of Redis"):
            check_clock(now - ahead, "Redis")


@pytest.mark.parametrize("index", [19, 10**6], ids=["told by the system", "not told"])
def test_a_process_has_an_age(monkeypatch: pytest.MonkeyPatch, index: int) -> None:
    monkeypatch.setattr("moviecrawler.basics.clock._STARTED_AT", index)
    assert 0 < process_age() < 86_400


@pytest.mark.promise("A clock that is wrong stops the start.")
@pytest.mark.parametrize("service", ["redis_url", "database_url"])
@pytest.mark.parametrize(
    ("minutes", "said"),
    [(3, "3 minutes ahead of"), (-200, "200 minutes behind"), (1, None)],
    ids=str,
)
def test_a_clock_that_differs_from_a_servers_stops_the_start(
    service: str,
    minutes: int,
    said: str | None,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    wrong = utc_now() + timedelta(minutes=minutes)
    monkeypatch.setattr("moviecrawler.basics.clock.utc_now", lambda: wrong)
    url = request.getfixturevalue(service)

    def open_it() -> None:
        if service == "redis_url":
            asyncio.run(open_redis(url))
        else:
            crawl(PostgresStore(url), tmp_path)

    if said is None:
        open_it()
        return
    with pytest.raises((CloseSpider, ClockError)) as caught:
        open_it()
    whose = "Redis" if service == "redis_url" else "Postgres"
    why = caught.value.__cause__ or caught.value
    assert str(why) == f"the clock of this machine is {said} that of {whose}; set it (NTP)"
    assert getattr(caught.value, "reason", "clock_wrong") == "clock_wrong"


def test_the_history_of_scores_has_nothing_of_the_future(database_url: str, tmp_path: Path) -> None:
    now = utc_now()
    with opened(PostgresStore(database_url)) as store, opened(SqliteStore(tmp_path)) as embedded:
        for when, value in ((now - AHEAD, 6), (now + AHEAD, 7), (now, 7)):
            movie = make_movie(
                1, scraped_at=when, scores=[Score(kind="imdb", value=value, count=10)]
            )
            began = utc_now()
            store.write([record_of(movie)])
            embedded.write([record_of(movie)])
    rows = execute(database_url, "SELECT since, value::integer FROM score_history ORDER BY since")
    assert rows == [(now - AHEAD, 6), (now, 7)]
    assert execute(database_url, "SELECT value::integer FROM scores") == [(7,)]
    with closing(read_sqlite(tmp_path)) as connection:
        history = connection.execute(
            "SELECT since, value FROM score_history ORDER BY since"
        ).fetchall()
        ((updated_at,),) = connection.execute("SELECT updated_at FROM movies")
    assert [(datetime.fromisoformat(since), value) for since, value in history] == rows
    # Since then only the time of the reading has changed.
    assert datetime.fromisoformat(updated_at) <= began
