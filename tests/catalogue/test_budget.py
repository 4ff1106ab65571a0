"""`lane=due` claims no more than the budget of the day allows, and ends when that is spent."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis
from scrapy.settings import Settings

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.frontier.budget import DayBudget, begin_of_day, until_next_day
from moviecrawler.frontier.keys import Keys
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import FAST, Finished, counts, environment, reset, scrapy
from tests.processes import ForkedCommand
from tests.services.postgres import execute
from tests.waiting import LONGEST, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TITLES = 60
NOW = datetime(2026, 11, 1, 23, 59, 59, tzinfo=UTC)


@pytest.fixture(scope="module")
def shared_replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, light=True) as running:
        yield running


@pytest.fixture
def replica(shared_replica: ReplicaProcess, database_url: str) -> ReplicaProcess:
    reset(shared_replica)
    catalogue = Catalogue(1, TITLES)
    rows = [
        ImportRow(imdb_id=catalogue.imdb_id(number), title=f"Title {number}", kind="movie", year=2000, popularity=50.0)
        for number in range(TITLES)
    ]
    with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
        load(store, "test", "1", rows, TITLES, datetime.now(UTC))
    return shared_replica


def settings(database_url: str, per_day: int, **more: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "CSV_ENABLED": "0",
        "CATALOGUE_LISTS": "0",
        "FRONTIER_PATIENCE": "0",
        "SITE_BUDGETS": f'{{"127.0.0.1": {{"per_day": {per_day}}}}}',
        **more,
    }


def fetch_due(data: Path, replica: ReplicaProcess, **given: str) -> Finished:
    options = [part for name, value in FAST.items() for part in ("-s", f"{name}={value}")]
    finished = scrapy("crawl", "imdb", "-a", "lane=due", *options, data=data, replica=replica, **given)
    assert "Traceback" not in finished.log, finished.log
    return finished


def pages(replica: ReplicaProcess) -> int:
    paths: dict[str, int] = counts(replica)["paths"]
    return sum(times for path, times in paths.items() if path.startswith("/title/"))


def fetched(database_url: str) -> Any:
    return execute(database_url, "SELECT count(*) FROM title_sites WHERE site = 'imdb' AND state = 'ok'")[0][0]


def claimed(database_url: str) -> Any:
    return execute(database_url, "SELECT count(*) FROM title_sites WHERE claimed_until IS NOT NULL")[0][0]


@pytest.mark.parametrize("shared", [False, True])
def test_a_crawl_fetches_what_the_budget_allows_and_leaves_the_rest_unclaimed(
    database_url: str, redis_url: str, replica: ReplicaProcess, tmp_path: Path, shared: bool
) -> None:
    given = settings(database_url, 37, METRICS_FOLDER=str(tmp_path), **({"REDIS_URL": redis_url} if shared else {}))
    finished = fetch_due(tmp_path, replica, **given)
    # It did what it was to do, and says why it did no more.
    assert finished.code == 0, finished.log
    assert "(budget_spent)" in finished.log
    assert finished.log.count("Nothing is claimed: what imdb may be asked for today is spent") <= 1
    assert "is spent" in finished.log
    metrics = (tmp_path / "moviecrawler_imdb_default.prom").read_text()
    assert re.search(r"^moviecrawler_crawl_success\{.*\} 1\.0$", metrics, re.MULTILINE)
    assert (pages(replica), fetched(database_url), claimed(database_url)) == (37, 37, 0)
    # The same day again: nothing is asked for.
    again = fetch_due(tmp_path, replica, **given)
    assert again.code == 0, again.log
    assert "(budget_spent)" in again.log
    assert (pages(replica), claimed(database_url)) == (37, 0)


def test_workers_at_once_claim_no_more_than_the_budget_together(
    database_url: str, redis_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    given = settings(database_url, 30, REDIS_URL=redis_url)
    with ThreadPoolExecutor(3) as pool:
        workers = list(pool.map(lambda _: fetch_due(tmp_path, replica, **given), range(3)))
    assert [finished.code for finished in workers] == [0] * 3, [finished.log[-3000:] for finished in workers]
    assert pages(replica) == fetched(database_url) == 30
    # Those that begin at the same moment don't know of each other yet; a batch of each would be 75.
    assert claimed(database_url) <= 20


@pytest.mark.parametrize("shared", [False, True])
def test_a_crawl_that_is_to_stay_waits_for_the_next_day(
    database_url: str, redis_url: str, replica: ReplicaProcess, tmp_path: Path, shared: bool
) -> None:
    given = settings(database_url, 20, CATALOGUE_IDLE="90000", **({"REDIS_URL": redis_url} if shared else {}))
    log = (tmp_path / "log").open("wb")
    worker = ForkedCommand(
        ["crawl", "imdb", "-a", "lane=due"],
        env=environment(tmp_path, replica, **given),
        cwd=tmp_path,
        stderr=log,
    )
    told = "Nothing is claimed: what imdb may be asked for today is spent"
    try:
        wait_for(lambda: fetched(database_url) == 20)
        wait_for(lambda: told in (tmp_path / "log").read_text())
        time.sleep(2)  # in which it looks for what it may do
        assert worker.poll() is None
        assert (tmp_path / "log").read_text().count(told) == 1
        assert claimed(database_url) == 0
        if shared:
            # As if a new day had begun.
            with redis.Redis.from_url(redis_url) as client:
                client.hset(Keys("imdb", "default").budget, "used", 0)
            wait_for(lambda: fetched(database_url) == 40)
    finally:
        worker.terminate()
        worker.wait(LONGEST)
        log.close()
    assert pages(replica) == (40 if shared else 20)
    assert claimed(database_url) == 0


def test_a_day_is_a_utc_day() -> None:
    budget = DayBudget(3, NOW.date())
    for _ in range(5):
        budget.spend(NOW)
    assert budget.left(NOW) == 0
    assert until_next_day(NOW) == timedelta(seconds=1)
    tomorrow = NOW + timedelta(seconds=1)
    assert budget.left(tomorrow) == 3
    budget.spend(tomorrow)
    assert budget.left(NOW) == 2  # a clock that was set back
    assert until_next_day(tomorrow) == timedelta(days=1)
    assert begin_of_day(NOW.astimezone()) == datetime(2026, 11, 1, tzinfo=UTC)
