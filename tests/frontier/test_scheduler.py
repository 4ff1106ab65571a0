"""What is left of scrapy-redis' classes, and what of them can't be reached any more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis
import scrapy_redis.dupefilter
import scrapy_redis.queue
import scrapy_redis.scheduler
from scrapy import Request
from scrapy.settings import Settings

from moviecrawler.frontier.budgets import Budget
from moviecrawler.frontier.dupefilter import SharedDupeFilter, fingerprint
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.queue import Batch, SharedQueue
from moviecrawler.frontier.scheduler import FrontierScheduler
from moviecrawler.frontier.worker_queue import WorkerQueue
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import connect
from moviecrawler.spiders.imdb import ImdbSpider

PAGE = Request("https://www.imdb.com/title/tt0000001/", meta={"site": "imdb"})


@pytest.fixture
def scheduler(redis_url: str) -> FrontierScheduler:
    scheduler = FrontierScheduler.from_settings(Settings({"REDIS_URL": redis_url}))
    options = FrontierOptions(url=redis_url)
    scheduler.df = SharedDupeFilter(scheduler.server, "unused")
    shared = SharedQueue(scheduler.server, Keys("imdb", "test"), options, worker="a")
    scheduler.queue = WorkerQueue(shared, "here", df=scheduler.df)
    return scheduler


def test_parts_are_those_of_scrapy_redis(scheduler: FrontierScheduler) -> None:
    assert isinstance(scheduler, scrapy_redis.scheduler.Scheduler)
    assert isinstance(scheduler.queue, scrapy_redis.queue.Base)
    assert isinstance(scheduler.df, scrapy_redis.dupefilter.RFPDupeFilter)
    assert scheduler.df.request_fingerprint(PAGE) == fingerprint(PAGE)


def test_nothing_that_others_share_can_be_emptied(scheduler: FrontierScheduler, redis_client: redis.Redis) -> None:
    redis_client.set("unused", 1)
    redis_client.rpush(scheduler.queue.key, "entry")
    for emptying in (scheduler.flush, scheduler.queue.clear, scheduler.df.clear):
        with pytest.raises(NotImplementedError):
            emptying()
    with pytest.raises(NotImplementedError):  # pages are compared where they are queued, many at once
        scheduler.df.request_seen(PAGE)
    scheduler.df.close("finished")
    assert sorted(redis_client.keys()) == sorted([b"unused", scheduler.queue.key.encode()])


async def test_requests_that_come_late_lose_their_turn(client: Any, redis_url: str, spider: ImdbSpider) -> None:
    options = FrontierOptions(url=redis_url)
    shared = SharedQueue(client, Keys("imdb", "test"), options, budget=Budget(per_second=50), worker="a")
    await shared.open("nonce")
    queue = WorkerQueue(shared, "here", spider, SharedDupeFilter(client, "unused"))
    pages = [spider.title_request(f"tt{number:07}", None) for number in range(1, 11)]
    for page in pages:
        queue.push(page)
    await queue.exchange(Batch())
    await queue.exchange(Batch(want=10))
    await asyncio.sleep(0.15)
    late = queue.pop()
    assert late is not None
    assert queue.given_back >= 1
    urls = [late.url]
    for _ in range(100):
        while (request := queue.pop()) is not None:
            urls.append(request.url)
        if len(urls) == 10:
            break
        await queue.exchange(Batch(want=10))
        await asyncio.sleep(0.02)
    assert sorted(urls) == [page.url for page in pages]  # none was lost or sent twice


def test_fingerprint_knows_the_site_of_a_replica() -> None:
    plain = PAGE.replace(url="http://127.0.0.1:8000/title/tt0000001/")
    assert fingerprint(plain) == fingerprint(plain.replace(url=plain.url + "?ref_=x"))


def test_client_has_time_outs_and_reads_bytes_whatever_the_parameters() -> None:
    client = connect("redis://127.0.0.1:6379/0", decode_responses=True, socket_timeout=1.0)
    settings = client.connection_pool.connection_kwargs
    assert (settings["socket_timeout"], settings["socket_connect_timeout"]) == (1.0, 5.0)
    assert settings["decode_responses"] is False
