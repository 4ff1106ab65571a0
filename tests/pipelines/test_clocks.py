"""A clock that is wrong is found out and corrected, and what was stored by one gives way."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler import clock
from moviecrawler.catalogue.tables import read_movies
from moviecrawler.clock import utc_now
from moviecrawler.extensions.clock import ClockWatch
from moviecrawler.items import Score
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import FAST, environment
from tests.pipelines.runs import make_miss, make_movie, record_of
from tests.pipelines.stored import Stored, opened
from tests.services.postgres import execute

NOW = utc_now()
AHEAD = timedelta(days=400)


@pytest.fixture
def clock_ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set this machine's clock 400 days ahead, as far as this project can tell."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return dt.datetime.now(tz) + AHEAD

    for module in ("moviecrawler.clock", "moviecrawler.extensions.clock"):
        monkeypatch.setattr(f"{module}.datetime", Ahead)
    assert utc_now() - NOW > AHEAD
    yield
    clock.restore()


def is_right() -> bool:
    return abs(utc_now() - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.usefixtures("clock_ahead")
@pytest.mark.parametrize("service", ["redis_url", "database_url"])
def test_the_clock_is_compared_with_that_of_a_server(
    service: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    url = request.getfixturevalue(service)
    crawler = get_crawler(settings_dict={service.upper(): url})
    asyncio.run(ClockWatch(crawler).spider_opened())
    assert is_right()
    whose = "Redis" if service == "redis_url" else "Postgres"
    assert f"The clock of this machine is 400 days ahead of that of {whose}" in caplog.text
    assert crawler.stats is not None
    assert crawler.stats.get_value("clock/ahead") == pytest.approx(AHEAD.total_seconds(), abs=60)


def answer(ahead: timedelta, **headers: str) -> Response:
    """Return an answer of a site from whose clock this machine's is ahead."""
    now: datetime = clock.datetime.now(UTC)  # type: ignore[attr-defined]
    date = now - ahead
    return Response("http://127.0.0.1/title/", headers={"Date": format_datetime(date, usegmt=True), **headers})


@pytest.mark.usefixtures("clock_ahead")
def test_the_clock_is_compared_with_the_site_where_there_is_no_server(caplog: pytest.LogCaptureFixture) -> None:
    watch = ClockWatch(get_crawler())
    asyncio.run(watch.spider_opened())
    watch.response_received(Response("http://127.0.0.1/robots.txt"))
    watch.response_received(Response("http://127.0.0.1/robots.txt", headers={"Date": "yesterday"}))
    assert not is_right()
    watch.response_received(answer(AHEAD + timedelta(hours=1), Age="3600"))
    assert is_right()
    assert "400 days ahead of that of 127.0.0.1" in caplog.text
    watch.response_received(answer(timedelta(days=3)))
    assert "contradict each other" in caplog.text
    assert not is_right()


def test_a_clock_that_is_right_is_left_alone(redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    crawler = get_crawler(settings_dict={"REDIS_URL": redis_url})
    with caplog.at_level(logging.INFO):
        asyncio.run(ClockWatch(crawler).spider_opened())
        watch = ClockWatch(get_crawler())
        watch.response_received(answer(clock.TOLERANCE - timedelta(seconds=30)))
        watch.response_received(answer(-clock.TOLERANCE + timedelta(seconds=60)))
    assert "clock" not in caplog.text
    assert clock._corrected is None


CRAWL = """
import datetime, sys
import moviecrawler.clock, moviecrawler.extensions.clock
class Ahead(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.now(tz) + datetime.timedelta(days=400)
moviecrawler.clock.datetime = moviecrawler.extensions.clock.datetime = Ahead
from scrapy.cmdline import execute
execute(["scrapy", "crawl", "imdb", "-a", "list=top", "-a", "limit=3", *sys.argv[1:]])
"""


def test_a_crawl_with_a_clock_ahead_stores_the_right_time(tmp_path: Path) -> None:
    options = [part for name, value in FAST.items() for part in ("-s", f"{name}={value}")]
    with ReplicaProcess(titles=5, light=True) as replica:
        ran = subprocess.run(
            [sys.executable, "-c", CRAWL, *options],
            env={**environment(tmp_path, replica), "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert "The clock of this machine is 400 days ahead of that of 127.0.0.1" in ran.stderr
    times = [movie.scraped_at for movie in read_movies(tmp_path / "movies.csv")]
    assert len(times) == 3
    assert all(time is not None and abs(time - utc_now()) < timedelta(minutes=5) for time in times)


# --- What was stored --------------------------------------------------------------------------------------------------


def test_what_was_read_in_the_future_gives_way(stored: Stored) -> None:
    now = utc_now()
    stored.write(make_movie(1, scraped_at=now + AHEAD, title="Of the Future"))
    stored.write(make_movie(1, scraped_at=now, title="Of Today"))
    assert stored.movie().title == "Of Today"
    # And what is not in the future does not, though it is not quite past.
    stored.write(make_movie(1, scraped_at=now + clock.FUTURE / 2, title="Soon"))
    stored.write(make_movie(1, scraped_at=now + clock.FUTURE / 3, title="Sooner"))
    assert stored.movie().title == "Soon"


def test_a_miss_or_a_reading_of_the_future_hides_nothing(stored: Stored) -> None:
    now = utc_now()
    stored.write(make_miss(1, checked_at=now + AHEAD))
    stored.write(make_movie(1, scraped_at=now))
    assert stored.misses() == 0
    stored.write(make_movie(1, scraped_at=now + AHEAD))
    stored.write(make_miss(1, checked_at=now + timedelta(minutes=1)))
    assert stored.misses() == 1


def test_the_history_of_scores_has_nothing_of_the_future(database_url: str) -> None:
    now = utc_now()
    with opened(PostgresStore(database_url)) as store:
        for when, value in ((now - AHEAD, 6), (now + AHEAD, 7), (now, 7)):
            movie = make_movie(1, scraped_at=when, scores=[Score(kind="imdb", value=value, count=10)])
            store.write([record_of(movie)])
    rows = execute(database_url, "SELECT since, value::integer FROM score_history ORDER BY since")
    assert rows == [(now - AHEAD, 6), (now, 7)]
    assert execute(database_url, "SELECT value::integer FROM scores") == [(7,)]
