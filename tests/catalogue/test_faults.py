"""`lane=due` while workers are killed, and while the database goes away.

Others import and crawl at the same time.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest
import redis

from moviecrawler.clock import utc_text
from moviecrawler.frontier.keys import SiteKeys
from tests.catalogue.catalogued import Catalogued
from tests.catalogue.crawls import Due
from tests.crawling import change
from tests.services.replica import IDS, TITLES
from tests.waiting import LONGEST, wait_for

BATCH = {"CATALOGUE_BATCH": "10"}


@pytest.fixture
def slow(due: Due) -> Due:
    change(due.replica, latency=150)
    return due


def assert_all_fetched(due: Due) -> None:
    counted = (
        "SELECT count(*), count(*) FILTER (WHERE state = 'ok'), count(claimed_until)"
        " FROM title_sites WHERE site = 'imdb'"
    )
    assert due.sql(counted) == [(TITLES, TITLES, 0)]
    assert due.sql("SELECT count(*), count(DISTINCT site_id) FROM records") == [(TITLES, TITLES)]


@pytest.mark.promise(
    "A title is claimed by one worker at a time,"
    " and what a killed worker had is fetched by another."
)
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_what_a_killed_worker_had_is_fetched_by_another(
    slow: Due, redis_url: str, *, shared: bool
) -> None:
    given = {**BATCH, "CATALOGUE_LEASE": "4"}
    if shared:
        given |= {"REDIS_URL": redis_url, "FRONTIER_LEASE": "2"}
    with slow.worker(**given):  # which is killed
        wait_for(lambda: len(slow.pages()) >= 15)
    change(slow.replica, latency=0)
    for _ in range(2):  # what was claimed and never queued is due again after its lease
        ended = slow.fetch(**given)
        assert ended.code == 0, ended.log[-3000:]
    wait_for(
        lambda: slow.sql("SELECT count(*) FROM title_sites WHERE claimed_until > now()") == [(0,)]
    )
    assert slow.fetch(**given).code == 0
    assert_all_fetched(slow)


def test_a_database_that_goes_away_in_the_middle_of_a_crawl_costs_only_time(slow: Due) -> None:
    def is_noticed(times: int) -> bool:
        return running.poll() is not None or slow.log.count("and will be tried again") >= times

    with slow.worker(**BATCH) as running:
        for times in (1, 2):
            wait_for(lambda times=times: len(slow.pages()) >= 15 * times)  # type: ignore[misc]
            with away(slow.url):
                wait_for(lambda times=times: is_noticed(times))  # type: ignore[misc]
        assert running.wait(LONGEST) == 0
    assert "Traceback" not in slow.log
    assert set(slow.pages().values()) == {1}
    assert_all_fetched(slow)


@contextmanager
def away(database_url: str) -> Iterator[None]:
    """Let nobody into a database, and throw out who is in it."""
    parts = urlsplit(database_url)
    name = parts.path.lstrip("/")
    with closing(psycopg2.connect(urlunsplit(parts._replace(path="/postgres")))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            try:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    (name,),
                )
                yield
            finally:
                cursor.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def test_imports_and_boosts_in_the_middle_of_a_crawl_disturb_neither(slow: Due) -> None:
    imports = 0
    boosted: list[Any] = [("imdb", imdb_id) for imdb_id in IDS[::3]]
    with slow.worker(**BATCH) as running, closing(Catalogued(slow.url)) as store:
        wait_for(lambda: len(slow.pages()) >= 5)
        while running.poll() is None:
            imports += 1
            slow.know(popularity=float(imports % 90))
            store.boost_named(boosted[imports % len(boosted) :][:5], 1.0, datetime.now(UTC))
        assert running.returncode == 0
    assert imports
    assert "Traceback" not in slow.log
    assert set(slow.pages().values()) <= {1, 2}  # a title may be boosted after it was fetched
    slow.sql("UPDATE title_sites SET boost_due = NULL")
    assert_all_fetched(slow)


def test_nothing_is_claimed_while_another_worker_knows_that_the_site_refuses_us(
    due: Due, redis_url: str
) -> None:
    until = (datetime.now(UTC).timestamp() + 3600) * 1000
    with redis.Redis.from_url(redis_url) as client:
        circuit = {"until": f"{until:.0f}", "reason": "imdb refused us", "trips": 3}
        client.hset(SiteKeys("imdb").circuit, mapping=circuit)
    ended = due.fetch("imdb", "via=pages", REDIS_URL=redis_url)
    assert ended.code == 1
    assert f"imdb refused us; imdb is not asked until {utc_text(until / 1000)}" in ended.log
    assert "(site_stopped)" in ended.log
    assert due.pages() == {}
    assert due.sql(
        "SELECT count(*) FROM title_sites WHERE claimed_by IS NOT NULL OR state <> 'never'"
    ) == [(0,)]
