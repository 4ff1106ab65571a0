"""`lane=due` claims no more than the budget of the day allows, and ends when that is spent."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import redis

from moviecrawler.frontier.keys import SiteKeys
from moviecrawler.politeness.budgets import until_next_day
from tests.catalogue.crawls import Due
from tests.waiting import LONGEST, wait_for


def settings(per_day: int, **more: str) -> dict[str, str]:
    return {
        "FRONTIER_PATIENCE": "3",
        "SITE_BUDGETS": f'{{"127.0.0.1": {{"per_day": {per_day}}}}}',
        **more,
    }


@pytest.mark.promise(
    "No more is claimed than the budget allows, and a claim that is given back counts as none."
)
@pytest.mark.parametrize("workers", [1, 3])
def test_crawls_fetch_what_the_budget_allows_and_leave_the_rest_unclaimed(
    due: Due, redis_url: str, workers: int
) -> None:
    given = settings(17, REDIS_URL=redis_url if workers > 1 else "")
    with ThreadPoolExecutor(workers) as pool:
        ended = list(pool.map(lambda _: due.fetch(**given), range(workers)))
    # They say why they did no more. A worker that finds all titles claimed by the others ends
    # before the day is spent.
    spent = ["(budget_spent)" in finished.log and "is spent" in finished.log for finished in ended]
    assert all(
        by_budget or "claimed by other workers" in one.log
        for by_budget, one in zip(spent, ended, strict=True)
    )
    assert any(spent)
    codes = [3 if by_budget else 0 for by_budget in spent]
    assert [finished.code for finished in ended] == codes, [
        finished.log[-3000:] for finished in ended
    ]
    assert due.states()["ok"] == 17
    assert due.fetch(**given).code == 3  # the same day again: nothing is asked for
    assert sum(due.pages().values()) == 17
    # Workers that begin at the same moment don't know of each other yet; a batch of each of the
    # three would be 75.
    assert due.claimed() <= (0 if workers == 1 else 20)


def test_a_crawl_that_is_to_stay_waits_for_the_next_day(due: Due, redis_url: str) -> None:
    told = "Nothing is claimed: today's budget of imdb is spent"
    with due.worker(**settings(6, CATALOGUE_IDLE="90000", REDIS_URL=redis_url)) as running:
        wait_for(lambda: due.states().get("ok") == 6)
        wait_for(lambda: told in due.log)
        assert due.claimed() == 0
        # As if a new day had begun.
        with redis.Redis.from_url(redis_url) as client:
            client.hset(SiteKeys("imdb").budget, "used", 0)
        wait_for(lambda: due.states()["ok"] == 12)
        running.terminate()
        running.wait(LONGEST)
    assert sum(due.pages().values()) == 12
    assert due.log.count(told) <= 2
    assert due.claimed() == 0


def test_a_day_is_a_utc_day() -> None:
    last = datetime(2026, 11, 1, 23, 59, 59, tzinfo=UTC)
    assert until_next_day(last.astimezone()) == timedelta(seconds=1)
    assert until_next_day(last + timedelta(seconds=1)) == timedelta(days=1)
