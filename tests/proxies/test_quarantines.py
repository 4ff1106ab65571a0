"""What one worker learns of a proxy, the others use: on a real Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import redis

from moviecrawler.proxies.pools import BAN_MEMORY_SECONDS, Ban, Proxy, ProxyPool
from moviecrawler.proxies.quarantines import Quarantines, bans_key
from moviecrawler.redis_client import connect
from tests.services.redis import RedisServer
from tests.waiting import until

SITE = "imdb"


class Worker:
    def __init__(self, url: str, site: str = SITE, proxies: int = 3) -> None:
        named = [Proxy(f"datacenter:{n}", "http://proxy:1", key=f"digest-{n}") for n in range(1, proxies + 1)]
        self.pool = ProxyPool("datacenter", "datacenter", named)
        self.quarantines = Quarantines(site, [self.pool], connect(url))

    def ban(self, number: int) -> None:
        self.quarantines.ban(self.pool, self.pool.members[f"datacenter:{number}"], "202 challenge")

    def answer(self, number: int) -> None:
        self.quarantines.answered(self.pool, self.pool.members[f"datacenter:{number}"])

    def bans(self, number: int) -> int:
        return int(self.pool.proxies[f"datacenter:{number}"].failed_attempts)

    @property
    def banned(self) -> set[str]:
        return {str(name) for name in self.pool.dead}


@asynccontextmanager
async def workers(url: str, count: int = 2, **given: Any) -> AsyncIterator[list[Worker]]:
    made = [Worker(url, **given) for _ in range(count)]
    for one in made:
        await one.quarantines.start()
    try:
        yield made
    finally:
        for one in made:
            await one.quarantines.close()


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
async def test_a_ban_is_known_to_others_and_to_those_that_start_later(
    redis_url: str, redis_client: redis.Redis
) -> None:
    async with workers(redis_url) as (one, other):
        one.ban(1)
        await until(lambda: other.banned == {"datacenter:1"})
        assert other.pool.proxies["datacenter:1"].next_check == one.pool.proxies["datacenter:1"].next_check
        async with workers(redis_url, 1) as (late,):
            assert late.banned == {"datacenter:1"}
            assert late.bans(1) == 1
        async with workers(redis_url, 1, site="metacritic") as (elsewhere,):
            assert not elsewhere.banned
    assert redis_client.ttl(bans_key(SITE)) > BAN_MEMORY_SECONDS


async def test_a_good_answer_ends_the_count_of_bans_for_all(redis_url: str, redis_client: redis.Redis) -> None:
    over = msgspec.json.encode(Ban(time.time() - 1, 3, "202 challenge"))
    redis_client.hset(bans_key(SITE), "digest-1", over)
    async with workers(redis_url) as (one, other):
        assert other.bans(1) == 3
        one.answer(1)
        await until(lambda: other.bans(1) == 0)
    assert not redis_client.exists(bans_key(SITE))


async def test_bans_of_long_ago_are_removed(redis_url: str, redis_client: redis.Redis) -> None:
    for key, ago in (("old", BAN_MEMORY_SECONDS + 60), ("digest-1", BAN_MEMORY_SECONDS - 60)):
        redis_client.hset(bans_key(SITE), key, msgspec.json.encode(Ban(time.time() - ago, 1, "403")))
    async with workers(redis_url, 1) as (one,):
        assert one.bans(1) == 1
    assert redis_client.hkeys(bans_key(SITE)) == [b"digest-1"]


async def test_a_proxy_that_somebody_clears_is_used_at_once(redis_url: str, redis_client: redis.Redis) -> None:
    async with workers(redis_url, 1) as (one,):
        one.ban(1)
        await until(lambda: redis_client.hexists(bans_key(SITE), "digest-1"))
        redis_client.hdel(bans_key(SITE), "digest-1")
        await until(lambda: not one.banned)
        assert one.pool.is_usable(("datacenter:2", "datacenter:3"))


async def test_a_thousand_proxies_cost_a_worker_one_command_a_second(redis_url: str, redis_client: redis.Redis) -> None:
    async with workers(redis_url, 20, proxies=1000) as made:
        for number, one in enumerate(made, 1):
            one.ban(number)
        await until(lambda: all(len(one.banned) == 20 for one in made))
        before = redis_client.info("commandstats")
        began = time.monotonic()
        await asyncio.sleep(3)
        took = time.monotonic() - began
        after = redis_client.info("commandstats")

        def calls(stats: Any) -> int:
            return sum(entry["calls"] for name, entry in stats.items() if name != "cmdstat_info")

        assert (calls(after) - calls(before)) / took / len(made) <= 2
        pool = made[0].pool
        began = time.perf_counter()
        for _ in range(1000):
            proxy = pool.take()
            assert proxy is not None
            proxy.is_busy = False
        assert time.perf_counter() - began < 0.1  # 0.1 ms a request


def test_workers_go_on_alone_while_redis_is_away_and_share_later() -> None:
    async def run(server: RedisServer) -> None:
        async with workers(server.url) as (one, other):
            await asyncio.to_thread(server.stop)
            one.ban(1)
            await asyncio.sleep(0.3)
            assert one.banned == {"datacenter:1"}
            await asyncio.to_thread(server.start)
            await until(lambda: other.banned == {"datacenter:1"})

    with RedisServer() as server:
        asyncio.run(run(server))
