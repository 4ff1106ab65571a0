"""`lane=due` while workers are killed, the database goes away, and others import and crawl at the same time."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest
import redis
from scrapy.settings import Settings

from moviecrawler.catalogue.store import boost, open_catalogue
from moviecrawler.frontier.keys import SiteKeys
from tests.catalogue.crawls import fetch_due, know, settings_of, title_pages, worker
from tests.crawling import change, scrapy
from tests.services.postgres import execute
from tests.services.replica import IDS, TITLES
from tests.waiting import LONGEST, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moviecrawler.replica.process import ReplicaProcess


@pytest.fixture
def replica(replica: ReplicaProcess, database_url: str) -> ReplicaProcess:
    """The replica, slow, whose titles the catalogue knows."""
    change(replica, latency=150)
    know(database_url, TITLES)
    return replica


def settings(database_url: str, **more: str) -> dict[str, str]:
    return settings_of(database_url, CATALOGUE_BATCH="10", **more)


def assert_all_fetched(database_url: str) -> None:
    assert execute(
        database_url,
        "SELECT count(*), count(*) FILTER (WHERE state = 'ok'), count(claimed_until) FROM title_sites WHERE site = 'imdb'",
    ) == [(TITLES, TITLES, 0)]
    assert execute(database_url, "SELECT count(*), count(DISTINCT site_id) FROM records") == [(TITLES, TITLES)]


@pytest.mark.promise("A title is claimed by one worker at a time, and what a killed worker had is fetched by another.")
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_what_a_killed_worker_had_is_fetched_by_another(
    database_url: str, redis_url: str, replica: ReplicaProcess, tmp_path: Path, *, shared: bool
) -> None:
    given = settings(database_url, CATALOGUE_LEASE="4")
    if shared:
        given |= {"REDIS_URL": redis_url, "FRONTIER_LEASE": "2"}
    with worker(tmp_path, replica, **given):  # which is killed
        wait_for(lambda: len(title_pages(replica)) >= 15)
    change(replica, latency=0)
    for _ in range(2):  # what was claimed and never queued is due again after its lease
        ended = fetch_due("imdb", data=tmp_path, replica=replica, **given)
        assert ended.code == 0, ended.log[-3000:]
    wait_for(lambda: execute(database_url, "SELECT count(*) FROM title_sites WHERE claimed_until > now()") == [(0,)])
    assert fetch_due("imdb", data=tmp_path, replica=replica, **given).code == 0
    assert_all_fetched(database_url)


def test_a_database_that_goes_away_in_the_middle_of_a_crawl_costs_only_time(
    database_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    with worker(tmp_path, replica, **settings(database_url)) as running:
        for number in (1, 2):
            wait_for(lambda number=number: len(title_pages(replica)) >= 15 * number)  # type: ignore[misc]
            with away(database_url):
                wait_for(lambda number=number: running.poll() is not None or outages(log) >= number)  # type: ignore[misc]
        assert running.wait(LONGEST) == 0
    assert "Traceback" not in log.read_text()
    assert set(title_pages(replica).values()) == {1}
    assert_all_fetched(database_url)


def outages(log: Path) -> int:
    return log.read_text().count("and will be tried again")


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
                cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
                yield
            finally:
                cursor.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def test_imports_and_boosts_in_the_middle_of_a_crawl_disturb_neither(
    database_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    imports = 0
    boosted: list[Any] = [("imdb", imdb_id) for imdb_id in IDS[::3]]
    with worker(tmp_path, replica, **settings(database_url)) as running:
        wait_for(lambda: len(title_pages(replica)) >= 5)
        with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
            while running.poll() is None:
                imports += 1
                know(database_url, TITLES, popularity=float(imports % 90))
                boost(store, boosted[imports % len(boosted) :][:5], 1.0, datetime.now(UTC))
        assert running.returncode == 0
    assert imports
    assert "Traceback" not in (tmp_path / "worker.log").read_text()
    assert set(title_pages(replica).values()) <= {1, 2}  # a title may be boosted after it was fetched
    execute(database_url, "UPDATE title_sites SET boost_due = NULL")
    assert_all_fetched(database_url)


def test_nothing_is_claimed_while_another_worker_knows_that_the_site_refuses_us(
    database_url: str, redis_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    # The circuit of all nodes may be open for longer than the first refusal's pause, which the catalogue knows.
    until = (datetime.now(UTC).timestamp() + 3600) * 1000
    with redis.Redis.from_url(redis_url) as client:
        circuit = {"until": f"{until:.0f}", "reason": "imdb refused us", "trips": 3}
        client.hset(SiteKeys("imdb").circuit, mapping=circuit)
    given = settings(database_url, REDIS_URL=redis_url, FRONTIER_PATIENCE="0")
    ended = scrapy("crawl", "imdb", "-a", "lane=due", "-a", "via=pages", data=tmp_path, replica=replica, **given)
    assert ended.code == 1
    assert "Nothing is claimed: imdb refused us" in ended.log
    assert "(site_stopped)" in ended.log
    assert title_pages(replica) == {}
    assert execute(
        database_url, "SELECT count(*) FROM title_sites WHERE claimed_by IS NOT NULL OR state <> 'never'"
    ) == [(0,)]
