"""What one worker learns of a proxy, the others use, and so does the next crawl."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
import redis

from moviecrawler.frontier.contract import Backend
from moviecrawler.frontier.redis_backend import RedisBackend
from moviecrawler.frontier.redis_client import connect
from moviecrawler.frontier.sqlite_backend import SqliteBackend
from moviecrawler.proxies.pools import BAN_MEMORY_SECONDS, Ban, Proxy, ProxyPool
from moviecrawler.proxies.quarantines import Quarantines, decode_bans
from tests.run_keys import bans_key
from tests.services.redis import RedisServer
from tests.waiting import until

BANS = bans_key("imdb")
Open = Callable[[], Backend]
"""Opens a backend of its own for each worker."""


class Worker:
    """One with proxies `a:1`, … of the keys `digest-1`, …"""

    def __init__(self, backend: Backend, site: str, proxies: int) -> None:
        named = [
            Proxy(f"a:{n}", "http://proxy:1", key=f"digest-{n}") for n in range(1, proxies + 1)
        ]
        self.backend = backend
        self.pool = ProxyPool("a", "datacenter", named)
        self.quarantines = Quarantines(site, [self.pool], backend)

    def ban(self, number: int) -> None:
        self.quarantines.ban(self.pool, self.pool.members[f"a:{number}"], "202 challenge")

    async def close(self) -> None:
        await self.quarantines.close()
        await self.backend.close()

    @property
    def bans(self) -> int:
        return int(self.pool.proxies["a:1"].failed_attempts)

    @property
    def banned(self) -> set[str]:
        return {str(name) for name in self.pool.dead}


@pytest.fixture(params=["sqlite", "redis"])
def open_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return what opens each of the places of quarantines."""
    if request.param == "sqlite":
        return partial(SqliteBackend, tmp_path)
    return partial(open_redis, request.getfixturevalue("redis_url"))


def open_redis(url: str) -> Backend:
    return RedisBackend(connect(url))


@asynccontextmanager
async def workers(
    open_backend: Open, count: int = 2, site: str = "imdb", proxies: int = 3
) -> AsyncIterator[list[Worker]]:
    async with AsyncExitStack() as stack:
        made = [Worker(open_backend(), site, proxies) for _ in range(count)]
        for one in made:
            await one.quarantines.start()
            stack.push_async_callback(one.close)
        yield made


@asynccontextmanager
async def operator(open_backend: Open) -> AsyncIterator[Backend]:
    """Open a backend as `scrapy proxies` does."""
    backend = open_backend()
    yield backend
    await backend.close()


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
async def test_a_ban_is_known_to_others_and_to_those_that_start_later_until_somebody_clears_it(
    open_backend: Open,
) -> None:
    async with workers(open_backend) as (one, other):
        one.ban(1)
        await until(lambda: other.banned == {"a:1"})
        assert other.pool.proxies["a:1"].next_check == one.pool.proxies["a:1"].next_check
        async with (
            workers(open_backend, 1) as (late,),
            workers(open_backend, 1, "metacritic") as (elsewhere,),
        ):
            assert (late.banned, late.bans, elsewhere.banned) == ({"a:1"}, 1, set())
        async with operator(open_backend) as backend:
            assert (await backend.exchange_bans("imdb", {})).keys() == {"digest-1"}
            await backend.exchange_bans("imdb", {"digest-1": None})
        await until(lambda: not one.banned)


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
async def test_the_next_crawl_knows_a_ban_of_the_last_moment(open_backend: Open) -> None:
    async with workers(open_backend, 1) as (one,):
        one.ban(2)
    async with workers(open_backend, 1) as (later,):
        assert later.banned == {"a:2"}


async def test_a_session_has_no_key_and_its_quarantine_ends_when_its_time_is_over(
    open_backend: Open,
) -> None:
    pool = ProxyPool("a", "datacenter", [Proxy("a:1", "http://proxy:1")])
    async with operator(open_backend) as backend:
        quarantines = Quarantines("imdb", [pool], backend)
        pool.ban("a:1", time.time() - 3600, 0.0)
        assert pool.dead
        await quarantines.start()
        assert not pool.dead
        assert quarantines.ban(pool, pool.members["a:1"], "403")
        await quarantines.close()
        assert await backend.exchange_bans("imdb", {}) == {}


def test_only_what_others_can_use_and_do_not_know_is_sent() -> None:
    pool = ProxyPool("a", "datacenter", [Proxy("a:1"), Proxy("a:2", key="digest-2")])
    quarantines = Quarantines("imdb", [pool], Mock())
    for proxy in pool.members.values():
        quarantines.report_success(pool, proxy)
    assert quarantines._unsent == {}
    for proxy in pool.members.values():
        assert quarantines.ban(pool, proxy, "403")
        assert quarantines.ban(pool, proxy, "403") is None
        quarantines.report_success(pool, proxy)  # of a request that was sent before
    [(key, ban)] = quarantines._unsent.items()
    assert (key, ban and ban.bans, ban and ban.reason) == ("digest-2", 1, "403")
    pool.reanimate(time.time() + BAN_MEMORY_SECONDS)
    for proxy in pool.members.values():
        quarantines.report_success(pool, proxy)
    assert quarantines._unsent == {"digest-2": None}


async def test_a_good_answer_or_a_week_without_a_ban_ends_the_count_for_all(
    open_backend: Open,
) -> None:
    async with operator(open_backend) as backend:
        for key, ago in (("old", BAN_MEMORY_SECONDS + 60), ("digest-1", 1)):
            ban = msgspec.json.encode(Ban(time.time() - ago, 3, "403")).decode()
            await backend.exchange_bans("imdb", {key: ban})
        async with workers(open_backend) as (one, other):
            assert other.bans == 3
            await asyncio.sleep(0.1)
            one.quarantines.report_success(one.pool, one.pool.members["a:1"])
            await until(lambda: other.bans == 0)
        assert await backend.exchange_bans("imdb", {}) == {}


async def test_bans_in_redis_expire_when_none_counts(
    redis_url: str, redis_client: redis.Redis
) -> None:
    async with workers(partial(open_redis, redis_url), 1) as (one,):
        one.ban(1)
    assert redis_client.ttl(BANS) > BAN_MEMORY_SECONDS


@pytest.mark.parametrize(
    ("until", "bans", "is_read"),
    [(0, 0, True), (-1, 0, False), (1e11, 1, True), (1e11 + 1, 1, False), (0, -1, False)],
)
def test_a_ban_is_read_whose_numbers_can_be_right(until: float, bans: int, is_read: bool) -> None:
    ban = Ban(until, bans, "403")
    text = msgspec.json.encode(ban).decode()
    assert decode_bans({"a": text}) == ({"a": ban} if is_read else {})


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
    async with workers(partial(open_redis, redis_url), 1) as (one,):
        redis_client.hset(BANS, mapping=damaged)  # type: ignore[arg-type]
        await until(lambda: redis_client.hkeys(BANS) == [b"digest-1"])
        assert one.banned == {"a:1"}
        over = Ban(time.time() - 1, 1, "403")
        redis_client.hset(BANS, "digest-1", msgspec.json.encode(over))
        await until(lambda: not one.banned)
    names = [key.decode(errors="surrogateescape") for key in damaged]
    assert [caplog.text.count(f"proxy {name!r} ") for name in names] == [1] * len(damaged)
    assert len(caplog.messages) == len(damaged)


def test_workers_go_on_alone_while_redis_is_away_and_share_later() -> None:
    async def run(server: RedisServer) -> None:
        async with workers(partial(open_redis, server.url)) as (one, other):
            await asyncio.to_thread(server.stop)
            one.ban(1)
            await asyncio.sleep(0.3)
            assert one.banned == {"a:1"}
            await asyncio.to_thread(server.start)
            await until(lambda: other.banned == {"a:1"})

    with RedisServer() as server:
        asyncio.run(run(server))
