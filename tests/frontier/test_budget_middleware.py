"""Budgets and circuits, with Redis and without."""

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from moviecrawler.frontier import budget_middleware
from moviecrawler.frontier.budget_middleware import BudgetMiddleware
from moviecrawler.frontier.budgets import UNLIMITED, Budget
from moviecrawler.frontier.engine import end_crawl
from moviecrawler.frontier.keys import SiteKeys
from moviecrawler.frontier.queue import End, Push, Scripts, SharedQueue
from moviecrawler.options import FrontierOptions
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


def crawler_of(folder: Path, lane: str | None = None, **settings: Any) -> Any:
    own = {"DATA_DIR": str(folder), "REDIS_START_URLS_KEY": SITE.start_urls_form, **settings}
    crawler: Any = get_crawler(ImdbSpider, own)
    crawler.spider = SimpleNamespace(plan=SimpleNamespace(lane=lane))
    crawler._engine = Engine()
    return crawler


def local(folder: Path, budget: Budget, lane: str | None = None) -> BudgetMiddleware:
    return BudgetMiddleware(crawler_of(folder, lane), budget)


async def test_requests_are_spaced_without_redis(tmp_path: Path) -> None:
    given = local(tmp_path, Budget(per_second=50))
    began = time.monotonic()
    assert await asyncio.gather(*(given.take() for _ in range(7))) == [True] * 7
    assert time.monotonic() - began >= 6 / 50


@pytest.mark.promise("Without Redis, processes with one folder share the day's budget.")
async def test_the_day_is_shared_by_a_folder_and_a_second_start_goes_on_with_it(
    tmp_path: Path,
) -> None:
    one, two, again = (local(tmp_path, Budget(per_day=5)) for _ in range(3))
    assert [await one.take() for _ in range(3)] == [await two.take() for _ in range(2)] + [True]
    assert await one.left_today() == await again.left_today() == 0
    two.crawler.engine.running = False
    assert not await two.take()  # a crawl that closes waits for no day


async def test_a_crawl_waits_for_the_next_day_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    began = time.monotonic()
    evening = datetime(2026, 11, 1, 23, 59, 59, 500_000, tzinfo=UTC)
    monkeypatch.setattr(
        budget_middleware, "utc_now", lambda: evening + timedelta(seconds=time.monotonic() - began)
    )
    given = local(tmp_path, Budget(per_day=2))
    assert await asyncio.gather(*(given.take() for _ in range(4))) == [True] * 4
    assert time.monotonic() - began >= 0.5
    told = "2 requests to imdb are the budget of the day, which is spent: the crawl waits until 2026-11-02 00:00 UTC"
    assert told in caplog.text
    assert await given.left_today() == 0
    # ASYNC240 forbids the other.
    assert os.listdir(tmp_path) == ["requests-imdb-2026-11-02"]  # noqa: PTH208


async def test_lane_due_does_not_wait_for_the_next_day(tmp_path: Path) -> None:
    given = local(tmp_path, Budget(per_day=1), lane="due")
    assert [await given.take(), await given.take()] == [True, False]


async def queue_of(client: Any, budget: Budget, titles: int) -> tuple[Scripts, SharedQueue]:
    scripts = Scripts(client, budget)
    queue = SharedQueue(scripts, SITE, FrontierOptions(lease=3600), worker="one")
    await queue.open("run", 0)
    await queue.push([Push(2, str(number), "[]") for number in range(titles)])
    await queue.finish(
        [End(one.id, "done") for one in (await queue.take(1)).deliveries]
    )  # its arguments
    return scripts, queue


async def test_a_request_is_charged_when_it_is_sent_and_nothing_is_credited(client: Any) -> None:
    scripts, queue = await queue_of(client, Budget(per_day=2), 9)
    [one] = (await queue.take(1)).deliveries
    await queue.finish([End(one.id, "back", one.number)])
    assert [(await scripts.ask(SITE, charge=True)).used for _ in range(2)] == [1, 2]
    assert (await scripts.ask(SITE, charge=True)).spent
    reply = await queue.take(9)
    assert (reply.deliveries, reply.site.spent, reply.open) == ([], True, 9)


async def test_a_day_spent_at_23_59_goes_on_at_00_01_in_the_same_run(client: Any) -> None:
    scripts, queue = await queue_of(client, Budget(per_day=1), 3)
    assert not (await scripts.ask(SITE, charge=True)).spent
    site = (await queue.take(9)).site
    assert site.spent
    assert site.blocked == pytest.approx(-time.time() % 86_400 * 1000, abs=5_000)
    await client.hincrby(SITE.budget, "day", -1)  # as if it were 00:01
    again = SharedQueue(scripts, SITE, FrontierOptions(lease=3600), worker="two")
    assert await again.open("run", -0.001) is None
    assert again.keys == queue.keys
    assert (await again.take(9)).deliveries
    assert (await scripts.ask(SITE, charge=True)).used == 1


@pytest.mark.promise(
    "After a refusal, one request finds out for all workers whether the site answers again."
)
async def test_a_refusal_stops_all_workers_and_one_probe_finds_out_when_it_is_over(
    client: Any,
) -> None:
    scripts, queue = await queue_of(client, Budget(), 9)
    for trips in (1, 2):
        site = await scripts.ask(SITE, refusal=("go away", 60_000))
        assert (site.blocked > 0, site.reason) == (True, "go away")
        assert (await scripts.ask(SITE, refusal=("what was in flight", 60_000))).reason == "go away"
        assert int(await client.hget(SITE.circuit, "trips")) == trips
        assert site.blocked == pytest.approx(60_000 * trips, abs=5_000)  # the pause doubles
        assert (await queue.take(9)).deliveries == []
        await client.hset(SITE.circuit, "until", 1)
        reply = await queue.take(9)
        assert (len(reply.deliveries), reply.site.half_open) == (1, True)
        assert (await scripts.ask(SITE, charge=True)).probing
        assert (await scripts.ask(SITE, charge=True)).blocked
        assert (await queue.take(9)).deliveries == []
    await scripts.ask(SITE, answered=True)
    assert len((await queue.take(9)).deliveries) == 7


@pytest.mark.promise(
    "After a refusal, one request finds out for all workers whether the site answers again."
)
async def test_only_the_answer_to_the_probe_has_a_site_asked_again(
    client: Any, redis_url: str, tmp_path: Path
) -> None:
    given = BudgetMiddleware(crawler_of(tmp_path, REDIS_URL=redis_url), UNLIMITED)
    given.refused("imdb", "go away", 60)
    given.answered("imdb")  # to a request that was sent before
    given.refused("elsewhere", "go away", 60)
    await asyncio.wait(given._reports)
    assert await given.ask_refusal() == "go away"
    await client.hset(SITE.circuit, "until", 1)
    assert await given.ask_refusal() is None
    assert await given.take()
    given.answered("elsewhere")
    assert given._probing
    given.answered("imdb")
    await given.close()
    assert not await client.exists(SITE.circuit)


async def test_a_crawl_ends_when_redis_is_away_for_longer_than_the_patience(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    crawler = crawler_of(tmp_path, REDIS_URL="redis://127.0.0.1:1/0", FRONTIER_PATIENCE=1.5)
    given = BudgetMiddleware(crawler, UNLIMITED)
    began = time.monotonic()
    assert not await given.take()
    assert time.monotonic() - began >= 1.5
    end_crawl(crawler, "again", "why it ends")  # it is closing already
    await asyncio.sleep(0)
    assert crawler.engine.reasons == ["frontier_unreachable"]
    assert "Redis could not be used for 1.5 s" in caplog.text
    assert "why it ends" not in caplog.text


async def test_requests_are_spaced_by_the_budget(client: Any) -> None:
    scripts = Scripts(client, Budget(per_second=0.1))
    delays = [(await scripts.ask(SITE, charge=True)).delay for _ in range(3)]
    assert delays == [0, pytest.approx(10_500, abs=5_000), pytest.approx(21_000, abs=5_000)]


def test_a_crawl_without_redis_keeps_the_budget_of_the_day(replica: Any, tmp_path: Path) -> None:
    budget = '{"127.0.0.1": {"per_second": 50, "per_day": 4}}'
    settings = {"SITE_BUDGETS": budget, "CLOSESPIDER_TIMEOUT": "3", "CSV_ENABLED": "1"}
    ended = crawl("imdb", f"ids={','.join(IDS[:9])}", data=tmp_path, replica=replica, **settings)
    assert (ended.code, len(ended.movies)) == (1, 4), ended.log
    assert "the crawl waits until" in ended.log
    assert "9 titles asked for: 4 stored, 5 not done; " in ended.log
    assert counts(replica)["requests"] == 4
