"""What one worker learns of a proxy, the others use: on a real Redis."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest
import redis

from moviecrawler.proxies.pools import BAN_MEMORY_SECONDS, Ban, Proxy, ProxyPool
from moviecrawler.proxies.quarantines import Quarantines, bans_key
from moviecrawler.redis_client import connect
from tests.services.redis import RedisServer
from tests.waiting import until

BANS = bans_key("imdb")


class Worker:
    """One with proxies `a:1`, … of the keys `digest-1`, …"""

    def __init__(self, url: str, site: str, proxies: int) -> None:
        named = [
            Proxy(f"a:{n}", "http://proxy:1", key=f"digest-{n}") for n in range(1, proxies + 1)
        ]
        self.pool = ProxyPool("a", "datacenter", named)
        self.quarantines = Quarantines(site, [self.pool], connect(url))

    def ban(self, number: int) -> None:
        self.quarantines.ban(self.pool, self.pool.members[f"a:{number}"], "202 challenge")

    @property
    def bans(self) -> int:
        return int(self.pool.proxies["a:1"].failed_attempts)

    @property
    def banned(self) -> set[str]:
        return {str(name) for name in self.pool.dead}


@asynccontextmanager
async def workers(
    url: str, count: int = 2, site: str = "imdb", proxies: int = 3
) -> AsyncIterator[list[Worker]]:
    async with AsyncExitStack() as stack:
        made = [Worker(url, site, proxies) for _ in range(count)]
        for one in made:
            await one.quarantines.start()
            stack.push_async_callback(one.quarantines.close)
        yield made


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
async def test_a_ban_is_known_to_others_and_to_those_that_start_later_until_somebody_clears_it(
    redis_url: str, redis_client: redis.Redis
) -> None:
    async with workers(redis_url) as (one, other):
        one.ban(1)
        await until(lambda: other.banned == {"a:1"})
        assert other.pool.proxies["a:1"].next_check == one.pool.proxies["a:1"].next_check
        async with (
            workers(redis_url, 1) as (late,),
            workers(redis_url, 1, "metacritic") as (elsewhere,),
        ):
            assert (late.banned, late.bans, elsewhere.banned) == ({"a:1"}, 1, set())
        assert redis_client.ttl(BANS) > BAN_MEMORY_SECONDS
        redis_client.hdel(BANS, "digest-1")
        await until(lambda: not one.banned)


async def test_without_redis_a_quarantine_ends_when_its_time_is_over() -> None:
    pool = ProxyPool("a", "datacenter", [Proxy("a:1", "http://proxy:1")])
    pool.ban("a:1", time.time() - 3600, 0.0)
    assert pool.dead
    quarantines = Quarantines("imdb", [pool])
    await quarantines.start()
    assert not pool.dead
    await quarantines.close()


async def test_a_good_answer_or_a_week_without_a_ban_ends_the_count_for_all(
    redis_url: str, redis_client: redis.Redis
) -> None:
    for key, ago in (("old", BAN_MEMORY_SECONDS + 60), ("digest-1", 1)):
        redis_client.hset(BANS, key, msgspec.json.encode(Ban(time.time() - ago, 3, "403")))
    async with workers(redis_url) as (one, other):
        assert other.bans == 3
        await until(lambda: redis_client.hkeys(BANS) == [b"digest-1"])
        one.quarantines.answered(one.pool, one.pool.members["a:1"])
        await until(lambda: other.bans == 0)
    assert not redis_client.exists(BANS)


async def test_values_that_can_not_be_read_are_dropped_alone_and_named_once(
    redis_url: str, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    ban = Ban(time.time() + 600, 1, "403")
    damaged: dict[bytes, bytes] = {
        b"of-another-version": b'{"until": 1}',
        b"cut": b'{"until": 1, "ba',
        b"no text": b"\xff",
        b"\xff": msgspec.json.encode(ban),
        b"never ends": msgspec.json.encode(Ban(1e300, 1, "403")),
        b"negative": msgspec.json.encode(Ban(1.0, -1, "403")),
        b"deep": b'{"x": ' + b"[" * 100_000,
    }
    redis_client.hset(BANS, "digest-1", msgspec.json.encode(ban))
    async with workers(redis_url, 1) as (one,):
        redis_client.hset(BANS, mapping=damaged)  # type: ignore[arg-type]
        await until(lambda: redis_client.hkeys(BANS) == [b"digest-1"])
        assert one.banned == {"a:1"}
        over = Ban(time.time() - 1, 1, "403")
        redis_client.hset(BANS, "digest-1", msgspec.json.encode(over))
        await until(lambda: not one.banned)
    assert [caplog.text.count(repr(key)) for key in damaged] == [1] * len(damaged)
    assert len(caplog.messages) == len(damaged)


def test_workers_go_on_alone_while_redis_is_away_and_share_later() -> None:
    async def run(server: RedisServer) -> None:
        async with workers(server.url) as (one, other):
            await asyncio.to_thread(server.stop)
            one.ban(1)
            await asyncio.sleep(0.3)
            assert one.banned == {"a:1"}
            await asyncio.to_thread(server.start)
            await until(lambda: other.banned == {"a:1"})

    with RedisServer() as server:
        asyncio.run(run(server))
