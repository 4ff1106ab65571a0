"""`lane=due` claims no more than the budget of the day allows, and ends when that is spent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import redis

from moviecrawler.frontier.budgets import until_next_day
from moviecrawler.frontier.keys import SiteKeys
from tests.catalogue.crawls import claimed, fetch_due, know, settings_of, states, title_pages, worker
from tests.crawling import Finished
from tests.services.replica import TITLES
from tests.waiting import LONGEST, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from moviecrawler.replica.process import ReplicaProcess

NOW = datetime(2026, 11, 1, 23, 59, 59, tzinfo=UTC)


@pytest.fixture
def replica(replica: ReplicaProcess, database_url: str) -> ReplicaProcess:
    """The replica, whose titles the catalogue knows."""
    know(database_url, TITLES)
    return replica


def settings(database_url: str, per_day: int, **more: str) -> dict[str, str]:
    budgets = f'{{"127.0.0.1": {{"per_day": {per_day}}}}}'
    return settings_of(database_url, FRONTIER_PATIENCE="0", SITE_BUDGETS=budgets, **more)


def pages(replica: ReplicaProcess) -> int:
    return sum(title_pages(replica).values())


def fetched(database_url: str) -> int:
    return states(database_url).get("ok", 0)


@pytest.mark.promise("No more is claimed than the budget allows.")
@pytest.mark.parametrize(("workers", "shared"), [(1, False), (3, True)])
def test_crawls_fetch_what_the_budget_allows_and_leave_the_rest_unclaimed(
    database_url: str, redis_url: str, replica: ReplicaProcess, tmp_path: Path, workers: int, shared: bool
) -> None:
    more = {"REDIS_URL": redis_url} if shared else {}
    given = settings(database_url, 37, **more)

    def crawl(_: int = 0) -> Finished:
        return fetch_due("imdb", data=tmp_path, replica=replica, **given)

    with ThreadPoolExecutor(workers) as pool:
        ended = list(pool.map(crawl, range(workers)))
    # They did what they were to do, and say why they did no more.
    assert [finished.code for finished in ended] == [0] * workers, [finished.log[-3000:] for finished in ended]
    # A worker that finds all titles claimed by the others ends before the day is spent.
    spent = ["(budget_spent)" in finished.log and "is spent" in finished.log for finished in ended]
    assert all(by_budget or "claimed by other workers" in one.log for by_budget, one in zip(spent, ended, strict=True))
    assert any(spent)
    assert pages(replica) == fetched(database_url) == 37
    # Workers that begin at the same moment don't know of each other yet; a batch of each of the three would be 75.
    assert claimed(database_url) <= (0 if workers == 1 else 20)
    assert crawl().code == 0  # the same day again: nothing is asked for
    assert pages(replica) == 37
    assert claimed(database_url) <= (0 if workers == 1 else 20)


def test_a_crawl_that_is_to_stay_waits_for_the_next_day(
    database_url: str, redis_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    given = settings(database_url, 6, CATALOGUE_IDLE="90000", REDIS_URL=redis_url)
    told = "Nothing is claimed: today's budget of imdb is spent"
    log = tmp_path / "worker.log"
    with worker(tmp_path, replica, **given) as running:
        wait_for(lambda: fetched(database_url) == 6)
        wait_for(lambda: told in log.read_text())
        assert claimed(database_url) == 0
        # As if a new day had begun.
        with redis.Redis.from_url(redis_url) as client:
            client.hset(SiteKeys("imdb").budget, "used", 0)
        wait_for(lambda: fetched(database_url) == 12)
        running.terminate()
        running.wait(LONGEST)
    assert pages(replica) == 12
    assert log.read_text().count(told) <= 2
    assert claimed(database_url) == 0


def test_a_day_is_a_utc_day() -> None:
    assert until_next_day(NOW) == timedelta(seconds=1)
    assert until_next_day(NOW + timedelta(seconds=1)) == timedelta(days=1)
    assert until_next_day(NOW.astimezone()) == timedelta(seconds=1)
