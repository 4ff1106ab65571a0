"""Titles that other programs push, from the key that they push them to until they are fetched."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy.statscollectors import StatsCollector

from moviecrawler.frontier.dead_letters import dead_letters
from moviecrawler.frontier.dupefilter import SharedDupeFilter
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.queue import LEVELS, Batch, SharedQueue
from moviecrawler.frontier.seeds import Seeds, count_seeds, push_seed
from moviecrawler.frontier.serialisation import decode
from moviecrawler.frontier.worker_queue import WorkerQueue
from moviecrawler.options import FrontierOptions
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.spiders.imdb import ImdbSpider
from tests.crawling import FAST, environment
from tests.services.replica import IDS

KEY = "imdb:start_urls"
LEASE = 60.0


class Worker:
    """One worker's queue and seeds, without a crawl."""

    def __init__(self, client: Any, url: str, spider: ImdbSpider, name: str = "a") -> None:
        self.stats = StatsCollector(spider.crawler)
        self.keys = Keys("imdb", "test")
        self.shared = SharedQueue(client, self.keys, FrontierOptions(url=url), worker=name)
        self.queue = WorkerQueue(self.shared, "here", spider, SharedDupeFilter(client, "unused"))
        self.seeds = Seeds(client, self.keys, spider, self.queue, self.stats)

    @property
    def waiting(self) -> int:
        """How many requests are queued."""
        assert self.queue.reply is not None
        return self.queue.reply.waiting

    async def take(self) -> tuple[int, int]:
        """Take seeds and have them queued."""
        await self.shared.open("nonce")
        found = await self.seeds.look(LEASE)
        while self.queue.pushes:
            await self.queue.exchange(Batch())
        await self.seeds.settle()
        return found


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
async def test_seeds_are_taken_from_whatever_scrapy_redis_has_them_in(
    client: Any, kind: str, redis_url: str, spider: ImdbSpider
) -> None:
    add: Any = {
        "list": lambda seed: client.rpush(KEY, seed),
        "set": lambda seed: client.sadd(KEY, seed),
        "zset": lambda seed: client.zadd(KEY, {seed: 1}),
    }[kind]
    for number in range(1, 151):
        await add(f"tt{number:07}")
    await push_seed(client, KEY, b"tt0000151")
    assert (await client.type(KEY)).decode() == kind
    assert await count_seeds(client, KEY) == 151
    worker = Worker(client, redis_url, spider)
    assert [await worker.take() for _ in range(3)] == [(100, 0), (51, 0), (0, 0)]
    assert worker.waiting == 151
    # Nothing of them is left but what is queued, and what was fetched before is fetched again.
    assert await client.exists(KEY, worker.keys.taken_seeds) == 0
    await push_seed(client, KEY, b"tt0000007")
    await worker.take()
    assert worker.waiting == 152


async def test_key_of_another_type_is_named_and_nothing_ends(
    client: Any, redis_url: str, spider: ImdbSpider, caplog: pytest.LogCaptureFixture
) -> None:
    await client.hset(KEY, "tt0000001", "1")
    worker = Worker(client, redis_url, spider)
    for _ in range(3):
        assert await worker.take() == (0, 0)
    assert await count_seeds(client, KEY) == 0
    [told] = [record.getMessage() for record in caplog.records]
    assert "'imdb:start_urls', as it is a hash" in told


async def test_seeds_of_a_worker_that_died_are_taken_over_and_no_others(
    client: Any, redis_url: str, spider: ImdbSpider
) -> None:
    await client.rpush(KEY, "tt0000001", "tt0000002")
    dying, other = (Worker(client, redis_url, spider, name) for name in "ab")
    assert await dying.seeds.look(0.5) == (2, 0)
    assert await other.take() == (0, 2)  # so that it does not end meanwhile
    await asyncio.sleep(0.6)
    assert await other.take() == (2, 0)
    assert other.waiting == 2
    assert await other.take() == (0, 0)


async def test_password_in_a_bad_seed_is_neither_logged_nor_kept(
    client: Any, redis_url: str, spider: ImdbSpider, caplog: pytest.LogCaptureFixture
) -> None:
    url = "https://alice:hunter2@www.imdb.com/x"
    as_json = json.dumps({"url": url})
    as_php_writes_it = as_json.replace("/", r"\/")
    damaged, with_quote = as_php_writes_it[:-1], url.replace("hunter2", 'it\'s "hunter2"')
    seeds = url, as_json, as_php_writes_it, damaged, url.removeprefix("https://"), with_quote
    await client.rpush(KEY, *seeds)
    assert await Worker(client, redis_url, spider).take() == (len(seeds), 0)
    letters = [letter async for letter in dead_letters(client, "imdb", "test")]
    assert len(letters) == 5  # the last one is masked as the first one is
    assert "https://***@www.imdb.com/x" in caplog.text
    for shown in (caplog.text, *map(repr, letters)):
        assert "hunter2" not in shown
        assert "alice" not in shown


async def test_seeds_as_others_write_them(
    client: Any, redis_url: str, spider: ImdbSpider, caplog: pytest.LogCaptureFixture
) -> None:
    as_scrapy_redis_shows = (
        '{"url": "https://www.imdb.com/title/tt0000001/", "meta": {"job-id": "1"}, "url_cookie_key": "k"}'
    )
    bad = ["rubbish", b"\xff", '{"url": 1}', '{"meta": {}}', "{" * 5000, '{"url": ' + "[" * 100_000]
    await client.rpush(
        KEY, as_scrapy_redis_shows, '{"url": "tt0000002", "method": "GET", "meta": 1}', "tt0000003", *bad
    )
    worker = Worker(client, redis_url, spider)
    assert await worker.take() == (3 + len(bad), 0)
    assert worker.waiting == 3
    assert worker.stats.get_value("frontier/dead_letters") == len(bad)
    letters = [letter async for letter in dead_letters(client, "imdb", "test")]
    assert len(letters) == len(bad)
    assert all(letter.reason.startswith("a bad seed: ") for letter in letters)
    ignored = [record.getMessage() for record in caplog.records if "ignored" in record.getMessage()]
    assert [told.partition("; ")[0] for told in ignored] == [
        "Seeds have fields that are ignored: meta, url_cookie_key",
        "Seeds have fields that are ignored: method",
    ]


def test_taken_seeds_stand_in_the_slot_of_their_key() -> None:
    for form, taken in (
        ("%(name)s:start_urls", "{imdb:start_urls}:taken"),
        ("{%(name)s}:seeds", "{imdb}:seeds:taken"),
    ):
        assert Keys("imdb", "run", form).taken_seeds == taken


_STARTS = """
import asyncio, json, sys
from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import configure_logging
from scrapy.utils.project import get_project_settings
from twisted.internet import reactor
import redis
from moviecrawler.frontier.seeds import Seeds

look = Seeds.look
client = redis.Redis.from_url(sys.argv[1])
given, *seeds = json.loads(sys.argv[2])

async def start(before, after):
    async def slow(self, lease):
        await asyncio.sleep(before)
        found = await look(self, lease)
        await asyncio.sleep(after)
        return found

    Seeds.look = slow
    runner = AsyncCrawlerRunner(get_project_settings())
    crawler = runner.create_crawler("imdb")
    await runner.crawl(crawler, ids=given)
    return [crawler.stats.get_value("finish_reason"), crawler.stats.get_value("titles/stored", 0)]

async def main():
    told = [await start(0, 0)]
    for wait in ((0, 0), (0.2, 0), (0, 0.2), (0.02, 0), (0, 0.02)):
        client.rpush("imdb:start_urls", seeds.pop(), seeds.pop())
        told.append(await start(*wait))
    print(json.dumps(told))
    reactor.stop()

reactor.callWhenRunning(lambda: deferred_from_coro(main()))
reactor.run()
"""


def test_seeds_of_a_run_whose_arguments_are_done_are_fetched_however_slowly_they_are_taken(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    """The engine is idle while seeds are looked for, and the crawl must not end meanwhile."""
    given = IDS[:11]
    ended = subprocess.run(
        [sys.executable, "-c", _STARTS, redis_url, json.dumps(given)],
        env=environment(
            tmp_path, replica, **FAST, REDIS_URL=redis_url, FRONTIER_ASKED_AT="1", LOG_LEVEL="WARNING", PYTHONPATH="."
        ),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(ended.stdout) == [["finished", 1], *[["finished", 2]] * 5], ended.stderr
    assert redis_client.exists(KEY, Keys("imdb", "default").taken_seeds) == 0
    assert redis_client.llen("{imdb}:default:requests:2") == 0


async def test_a_seed_names_its_pool_and_its_retries_and_both_travel(
    client: Any, redis_url: str, spider: ImdbSpider
) -> None:
    seed = '{"url": "tt0000001", "proxy_pool": "home", "max_retries": 1}'

    await client.rpush(KEY, seed, '{"url": "tt0000002", "max_retries": -1}')
    worker = Worker(client, redis_url, spider)
    await worker.take()
    queued = [entry for level in LEVELS for entry in await client.lrange(worker.keys.requests(level), 0, -1)]
    (payload,) = (entry[entry.index(b"[") :] for entry in queued)
    request = decode(payload, spider)
    assert (request.meta["proxy_pool"], request.meta["max_retry_times"]) == ("home", 1)
    letters = [letter async for letter in dead_letters(client, "imdb", "test")]
    assert [letter.reason[:11] for letter in letters] == ["a bad seed:"]
