"""The middleware that has requests wait for the budget, over both backends."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from moviecrawler.frontier.budget_middleware import BudgetMiddleware
from moviecrawler.frontier.budgets import UNLIMITED, Budget
from moviecrawler.frontier.engine import end_crawl
from moviecrawler.frontier.keys import SiteKeys
from moviecrawler.frontier.runs import open_backend
from moviecrawler.spiders.imdb import ImdbSpider
from tests.crawling import counts, crawl
from tests.services.replica import IDS

SITE = SiteKeys("imdb")


class Engine:
    """An engine, as far as the middleware and the ends of crawls use it."""

    def __init__(self) -> None:
        self.spider = True
        self.running = True
        self._slot = SimpleNamespace(closing=None)
        self.reasons: list[str] = []

    async def close_spider_async(self, reason: str) -> None:
        self.running = False
        self.reasons.append(reason)


def middleware_of(folder: Path, budget: Budget, **settings: Any) -> BudgetMiddleware:
    crawler: Any = get_crawler(ImdbSpider, {"DATA_DIR": str(folder), **settings})
    crawler._engine = Engine()
    return BudgetMiddleware(crawler, budget, open_backend(crawler.settings))


async def test_requests_are_spaced(tmp_path: Path, queue_url: str) -> None:
    given = middleware_of(tmp_path, Budget(per_second=50), REDIS_URL=queue_url)
    began = time.monotonic()
    assert await asyncio.gather(*(given.take() for _ in range(7))) == [True] * 7
    assert time.monotonic() - began >= 6 / 50
    await given.close()


@pytest.mark.promise("Without Redis, processes with one folder share the day's budget.")
async def test_the_day_is_shared_by_all_workers_and_a_second_start_goes_on_with_it(
    tmp_path: Path, queue_url: str
) -> None:
    one, two, again = (
        middleware_of(tmp_path, Budget(per_day=5), REDIS_URL=queue_url) for _ in range(3)
    )
    assert [await one.take() for _ in range(3)] == [await two.take() for _ in range(2)] + [True]
    assert await one.left_today() == await again.left_today() == 0
    # Nobody waits for the next day: what is not sent stays queued.
    assert not await two.take()
    for middleware in (one, two, again):
        await middleware.close()


@pytest.mark.promise(
    "After a refusal, one request finds out for all workers whether the site answers again."
)
async def test_only_the_answer_to_the_probe_has_a_site_asked_again(
    client: Any, redis_url: str, tmp_path: Path
) -> None:
    given = middleware_of(tmp_path, UNLIMITED, REDIS_URL=redis_url)
    given.refused("imdb", "go away", 60)
    given.answered("imdb")  # to a request that was sent before
    given.refused("elsewhere", "go away", 60)
    await asyncio.wait(given._reports)
    assert await given.ask_refusal() == "go away"
    await client.hset(SITE.circuit, "until", 1)
    assert await given.ask_refusal() is None
    assert await given.take()
    given.answered("elsewhere")
    assert given._is_probing
    given.answered("imdb")
    await given.close()
    assert not await client.exists(SITE.circuit)


async def test_a_crawl_ends_when_redis_is_away_for_longer_than_the_patience(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = middleware_of(
        tmp_path, UNLIMITED, REDIS_URL="redis://127.0.0.1:1/0", FRONTIER_PATIENCE=1.5
    )
    crawler: Any = given.crawler
    began = time.monotonic()
    assert not await given.take()
    assert time.monotonic() - began >= 1.5
    end_crawl(crawler, "again", "why it ends")  # it is closing already
    await asyncio.sleep(0)
    assert crawler.engine.reasons == ["frontier_unreachable"]
    assert "Redis at REDIS_URL can't be used" in caplog.text
    assert "for 1.5 s" in caplog.text
    assert "why it ends" not in caplog.text


def test_a_crawl_without_redis_keeps_the_budget_of_the_day_and_goes_on_at_the_next(
    replica: Any, tmp_path: Path
) -> None:
    budget = '{"127.0.0.1": {"per_second": 50, "per_day": 4}}'
    wanted = f"ids={','.join(IDS[:9])}"
    ended = crawl("imdb", wanted, data=tmp_path, replica=replica, SITE_BUDGETS=budget)
    assert (ended.code, len(ended.movies)) == (3, 4), ended.log
    assert "next: the budget of the day is spent" in ended.log
    assert "5 requests wait in the queue" in ended.log
    assert counts(replica)["requests"] == 4
    on = crawl("imdb", wanted, data=tmp_path, replica=replica)
    assert (on.code, len(on.movies)) == (0, 9), on.log
    assert counts(replica)["requests"] == 9
