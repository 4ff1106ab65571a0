"""What one worker learns of a proxy, the others use: on a real Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import redis

from moviecrawler.proxies.health import Health, Quarantine
from moviecrawler.proxies.keys import Keys
from moviecrawler.proxies.shared_health import SharedHealth, clear_quarantines, read_health
from moviecrawler.redis_client import connect
from tests.services.redis import RedisServer
from tests.waiting import until

SITE = "imdb"


class Worker:
    def __init__(self, url: str, quarantine: float = 1800, site: str = SITE) -> None:
        self.health = Health(quarantine, 3)
        self.changes = 0
        self.shared = SharedHealth(connect(url), site, self.health, 5, self.changed)

    def changed(self) -> None:
        self.changes += 1
        if self.health.is_urgent:
            self.shared.exchange_soon()

    def sees(self, proxy_id: str) -> str:
        return self.health.state(proxy_id, self.health.now())

    def refuse(self, proxy_id: str) -> None:
        self.health.refused(proxy_id)
        self.health.quarantine(proxy_id, "202 challenge", self.health.now())
        self.changed()


@asynccontextmanager
async def two(url: str, quarantine: float = 1800) -> AsyncIterator[tuple[Worker, Worker]]:
    one, other = Worker(url, quarantine), Worker(url, quarantine)
    await one.shared.start()
    await other.shared.start()
    try:
        yield one, other
    finally:
        await one.shared.close()
        await other.shared.close()


def test_a_quarantine_is_known_to_others_within_a_second(redis_url: str) -> None:
    async def run() -> list[float]:
        took = []
        async with two(redis_url) as (one, other):
            for n in range(5):
                one.refuse(f"datacenter:{n}")
                took.append(await until(lambda n=n: other.sees(f"datacenter:{n}") == "quarantined"))  # type: ignore[misc]
                assert other.health.quarantines[f"datacenter:{n}"] == one.health.quarantines[f"datacenter:{n}"]
        return took

    took = sorted(asyncio.run(run()))
    assert took[2] < 1, took  # the median: the machine that tests it may be busy with something else


async def test_figures_of_all_processes_add_up_and_survive_them(redis_url: str) -> None:
    async with two(redis_url) as (one, other):
        for _ in range(3):
            one.health.succeeded("datacenter:1", 0.25, 0)
            other.health.succeeded("datacenter:1", 0.75, 0)
        other.health.failed("datacenter:1", "timeout", time.time(), sites_fault=True, certain=False)
    client = connect(redis_url)
    _, figures, _ = await read_health(client, SITE)
    await client.aclose()
    assert (figures["datacenter:1"].successes, figures["datacenter:1"].failures) == (6, 1)
    assert figures["datacenter:1"].latency == pytest.approx(0.5)


async def test_a_ban_by_one_site_says_nothing_of_another(redis_url: str) -> None:
    one, other = Worker(redis_url), Worker(redis_url, site="metacritic")
    one.refuse("datacenter:1")
    await one.shared.exchange()
    await other.shared.exchange()
    assert other.sees("datacenter:1") == "well"
    await one.shared.close()
    await other.shared.close()


async def test_one_process_of_all_tries_a_proxy_whose_quarantine_is_over(redis_url: str) -> None:
    async with two(redis_url, quarantine=0.5) as (one, other):
        one.refuse("datacenter:1")
        await until(lambda: "datacenter:1" in other.health.quarantines)
        now = one.health.now
        await until(lambda: one.health.state("datacenter:1", now()) == "recovering")

        def probing() -> list[Worker]:
            return [worker for worker in (one, other) if worker.health.may_probe("datacenter:1", now())]

        await until(lambda: bool(probing()))
        for _ in range(10):
            await asyncio.sleep(0.1)
            assert len(probing()) == 1
        (prober,) = probing()
        (waiting,) = {one, other} - {prober}
        prober.health.succeeded("datacenter:1", 0.1, prober.health.now())
        prober.changed()
        await until(lambda: waiting.health.state("datacenter:1", now()) == "well")
        assert waiting.health.proven("datacenter:1")


async def test_quarantines_of_long_ago_are_removed(redis_url: str, redis_client: redis.Redis) -> None:
    old = msgspec.json.encode(Quarantine(since=0, until=1, strikes=1, reason="403"))
    redis_client.hset(Keys(SITE).quarantines, mapping={"datacenter:1": old, "of another version": "{"})
    async with two(redis_url):
        assert redis_client.hkeys(Keys(SITE).quarantines) == [b"of another version"]


async def test_clearing_lets_a_proxy_be_used_at_once(redis_url: str) -> None:
    async with two(redis_url) as (one, _):
        one.refuse("datacenter:1")
        await until(lambda: not one.health.is_urgent)
        client = connect(redis_url)
        assert await clear_quarantines(client, SITE, ["datacenter:1", "datacenter:2"]) == 1
        await client.aclose()
        await until(lambda: one.sees("datacenter:1") == "well")


def test_workers_go_on_alone_while_redis_is_away_and_publish_later() -> None:
    async def run(server: RedisServer) -> None:
        async with two(server.url) as (one, other):
            await asyncio.to_thread(server.stop)
            one.refuse("datacenter:1")
            one.health.succeeded("datacenter:2", 0.1, 0)
            await asyncio.sleep(0.3)
            assert one.sees("datacenter:1") == "quarantined"
            assert one.health.figures("datacenter:2").successes == 1
            await asyncio.to_thread(server.start)
            await until(lambda: "datacenter:1" in other.health.quarantines)
            client = connect(server.url)
            _, figures, _ = await read_health(client, SITE)
            await client.aclose()
            assert figures["datacenter:2"].successes == 1

    with RedisServer() as server:
        asyncio.run(run(server))


async def test_every_key_expires(redis_url: str, redis_client: redis.Redis) -> None:
    async with two(redis_url, quarantine=0.1) as (one, _):
        one.refuse("datacenter:1")
        one.health.succeeded("datacenter:2", 0.1, 0)
        await until(lambda: one.sees("datacenter:1") == "recovering")
        await until(lambda: one.health.may_probe("datacenter:1", one.health.now()))
    hour = int(time.time() // 3600)
    keys = {key.decode() for key in redis_client.scan_iter()}
    named = {Keys(SITE).quarantines, Keys(SITE).probe("datacenter:1")}
    assert keys - {Keys(SITE).figures(hour), Keys(SITE).figures(hour - 1)} == named
    assert all(redis_client.pttl(key) > 0 for key in keys)
