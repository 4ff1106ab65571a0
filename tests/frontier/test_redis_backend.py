"""What only Redis has: seeds that users push, a Bloom filter, and keys that expire and get lost."""

import time
from typing import Any

import msgspec
import pytest

from moviecrawler.frontier.contract import End, Push
from moviecrawler.politeness.budgets import UNLIMITED
from tests.backends import (
    DAY_SECONDS,
    RUN,
    OutsideOfRedis,
    begin,
    charge,
    dead,
    expect,
    finish_all,
    ids,
    letter_ids,
    letters_of,
    open_now,
    pushes,
    refuse,
    store,
    stored,
    take,
    worker,
)
from tests.run_keys import LAYOUT, bans_key

ONE = worker("one")
TWO = worker("two")


@pytest.fixture
def redis_side(client: Any) -> OutsideOfRedis:
    """Return the backend of Redis, with what may befall its queue."""
    return OutsideOfRedis(client)


async def push_seeds(outside: OutsideOfRedis, kind: str, *seeds: bytes) -> None:
    key = outside.keys.site.start_urls
    for seed in seeds:
        if kind == "zset":
            await outside.client.zadd(key, {seed: 1})
        else:
            await {"list": outside.client.rpush, "set": outside.client.sadd}[kind](key, seed)


@pytest.mark.promise("Seeds that others push are fetched, and bad ones become dead letters.")
@pytest.mark.parametrize("kind", ["list", "set", "zset"])
async def test_seeds_of_each_type_become_requests_in_one_step(
    redis_side: OutsideOfRedis, kind: str
) -> None:
    backend = redis_side.backend
    seeds = [b"tt1", b'{"url": "tt2", "priority": 100}', b"\xff\x00"]
    await push_seeds(redis_side, kind, *seeds)
    await open_now(backend, ONE)
    await expect(backend, ONE, open=1)  # a worker that takes nothing moves none
    reply = await backend.take(ONE, 9)
    assert reply.deliveries[1].body == seeds[1]
    assert {delivery.body for delivery in reply.deliveries[1:]} == set(seeds)
    assert not await redis_side.client.exists(redis_side.keys.site.start_urls)
    await expect(backend, ONE, requested=4, titles=3)


async def test_a_seed_that_is_requeued_comes_back_as_it_was_pushed(
    redis_side: OutsideOfRedis,
) -> None:
    backend = redis_side.backend
    await begin(backend, ONE, "a")
    await push_seeds(redis_side, "list", b"\xff tt1\n{}")
    deliveries = await take(backend, ONE, 9)
    [seed] = [delivery for delivery in deliveries if delivery.id != "a"]
    await backend.finish(ONE, [dead(seed)])
    [letter] = await letters_of(backend)
    assert letter.body == "\\xff tt1\n{}"
    assert letter.request is None
    assert await backend.requeue(RUN, seed.id)
    [again] = await take(backend, ONE, 9)
    assert (again.id, again.body, again.number) == (seed.id, seed.body, 1)
    await store(backend, ONE, [again])
    await expect(backend, ONE, requested=3, titles=2, stored=1, dead=0)


async def test_no_seed_is_taken_while_the_site_may_not_be_asked(redis_side: OutsideOfRedis) -> None:
    backend = redis_side.backend
    await begin(backend, ONE)
    await push_seeds(redis_side, "list", b"tt1", b"tt2")
    await refuse(backend, 60)
    assert await take(backend, ONE, 9) == []
    await redis_side.end_pause()
    assert len(await take(backend, ONE, 9)) == 1  # the probe
    assert await redis_side.client.llen(redis_side.keys.site.start_urls) == 1


async def test_seeds_in_a_key_of_another_type_are_left_alone_and_that_is_said(
    redis_side: OutsideOfRedis,
) -> None:
    backend = redis_side.backend
    await begin(backend, ONE, "a")
    await redis_side.client.set(redis_side.keys.site.start_urls, "tt1")
    reply = await backend.take(ONE, 9)
    assert ids(reply.deliveries) == ["a"]
    [remark] = reply.remarks
    assert "imdb:start_urls of Redis is a string" in remark
    assert await redis_side.client.get(redis_side.keys.site.start_urls) == b"tt1"


@pytest.mark.parametrize("has_bloom_filter", [False, True])
async def test_a_page_is_queued_once_in_a_pass_by_either_dedupe_set(
    redis_side: OutsideOfRedis, has_bloom_filter: bool
) -> None:
    backend = redis_side.backend
    one = worker(has_bloom_filter=has_bloom_filter)
    await begin(backend, one)
    titles = [f"tt{number}" for number in range(300)]
    assert await backend.push(one, pushes(*titles)) == 0
    await finish_all(backend, one)
    assert await backend.push(one, pushes(*titles[:5])) == 5
    kind = await redis_side.client.type(redis_side.keys.seen)
    assert kind == (b"string" if has_bloom_filter else b"set")


async def test_keys_of_a_run_expire_a_week_after_their_last_use_and_letters_after_30_days(
    redis_side: OutsideOfRedis,
) -> None:
    backend = redis_side.backend
    one = worker(limit=9)
    await begin(backend, one, "a", "b", "c")
    for _ in range(2):
        [delivery] = await take(backend, one, 1)
        await backend.finish(one, [dead(delivery)])
    await backend.take(one, 1)
    keys = await redis_side.client.keys(f"{redis_side.keys.prefix}*")
    assert len(keys) >= 6
    for key in keys:
        days = 30 if key.decode() == redis_side.keys.dead else 7
        lifetime = await redis_side.client.ttl(key)
        assert (days - 0.1) * DAY_SECONDS < lifetime <= days * DAY_SECONDS, key


async def test_keys_of_a_site_expire_when_nothing_of_them_counts(
    redis_side: OutsideOfRedis,
) -> None:
    backend = redis_side.backend
    await begin(backend, ONE, "a")
    await backend.finish(ONE, [dead(one) for one in await take(backend, ONE, 9)])
    assert await backend.requeue(RUN, "a")
    await charge(backend, UNLIMITED)
    await refuse(backend, DAY_SECONDS)
    await backend.take(ONE)
    await backend.keep_robots("http://h", "")
    await backend.exchange_bans("imdb", {"a": "{}"})
    for key, days in (
        (redis_side.keys.site.budget, 2),
        (redis_side.keys.site.circuit, 1 + 14),
        (f"robots:{LAYOUT}:http://h", 7),
        (bans_key("imdb"), 30),
        (redis_side.keys.requeued, 30),
        (redis_side.keys.state, 7 + 1),  # it waits for the end of the pause
    ):
        lifetime = await redis_side.client.ttl(key)
        assert (days - 0.1) * DAY_SECONDS < lifetime <= days * DAY_SECONDS, key


async def test_a_run_is_forgotten_60_days_after_its_last_use(redis_side: OutsideOfRedis) -> None:
    site = redis_side.keys.site
    now = time.time()
    for name, days in (("old", 60.1), ("new", 59.9)):
        await redis_side.client.zadd(site.runs, {name: round((now - days * DAY_SECONDS) * 1000)})
        await redis_side.client.hset(site.left, name, 3)
    await open_now(redis_side.backend, ONE)
    assert await redis_side.client.zrange(site.runs, 0, -1) == [b"new", RUN.name.encode()]
    assert {*await redis_side.client.hkeys(site.left)} == {b"new", RUN.name.encode()}


async def test_each_letter_is_dropped_30_days_after_its_death(redis_side: OutsideOfRedis) -> None:
    backend = redis_side.backend
    await begin(backend, ONE, "old", "new")
    deliveries = await take(backend, ONE, 9)
    await backend.finish(ONE, [dead(delivery) for delivery in deliveries])
    letter = await redis_side.client.hget(redis_side.keys.dead, "old")
    died_at = round((time.time() - 30.1 * DAY_SECONDS) * 1000)
    value = letter.partition(b"\n")[2]
    await redis_side.client.hset(
        redis_side.keys.dead, "old", b'{"reason":"why","at":%d}\n%b' % (died_at, value)
    )
    await open_now(backend, ONE)
    assert await letter_ids(backend) == ["new"]


async def test_a_run_is_not_over_while_a_worker_holds_a_request_that_was_lost(
    redis_side: OutsideOfRedis,
) -> None:
    backend = redis_side.backend
    await begin(backend, ONE, "a", "b")
    deliveries = await take(backend, ONE, 2)
    await redis_side.client.delete(redis_side.keys.requests)
    await expect(backend, ONE, open=2)
    await backend.finish(ONE, [stored(deliveries[0])])  # and is not lost after all
    await redis_side.end_leases("b")  # the worker died
    await expect(backend, ONE, open=0, stored=1, lost=1)


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
@pytest.mark.parametrize("lost", [["queue"], ["leases"], ["queue", "leases"]])
async def test_requests_whose_place_was_lost_are_queued_again(
    redis_side: OutsideOfRedis, lost: list[str]
) -> None:
    backend = redis_side.backend
    await begin(backend, ONE, *map(str, range(9)))
    await backend.take(ONE, 4)
    await redis_side.client.delete(*(getattr(redis_side.keys, name) for name in lost))
    await backend.take(ONE)  # finds them
    queued, leased = await redis_side.where()
    assert len(queued | leased) == 9
    assert not queued & leased
    assert len(leased) == (4 if lost == ["queue"] else 0)


async def test_a_damaged_request_is_handed_out_so_that_it_can_become_a_dead_letter(
    redis_side: OutsideOfRedis,
) -> None:
    backend = redis_side.backend
    await begin(backend, ONE, "a")
    await backend.push(ONE, [Push(2, "b", "[]")])
    await redis_side.client.hset(redis_side.keys.requests, "a", b"\x80")
    deliveries = await take(backend, ONE, 9)
    damaged = next(delivery for delivery in deliveries if delivery.id == "a")
    assert (damaged.body, damaged.number) == (b"\x80", 1)
    await backend.finish(ONE, [End(id="a", kind="dead", number=1, reason="damaged")])
    [letter] = await letters_of(backend)
    assert letter.body == "\\x80"


async def test_what_an_earlier_version_has_queued_is_taken_over_and_that_is_said(
    redis_side: OutsideOfRedis,
) -> None:
    """The keys are written as that version wrote them: the newest run of a name, and an old one."""
    client = redis_side.client
    now = round(time.time() * 1000)
    newest = f"{{imdb}}:{RUN.name}:{now}:"
    older = f"{{imdb}}:{RUN.name}:{now - 1000}:"
    await client.set(f"{{imdb}}:{RUN.name}:latest", now)
    await client.zadd("{imdb}:runs", {f"{RUN.name}:{now}": now, f"{RUN.name}:{now - 1000}": 1})
    state = {"arguments": ONE.arguments, "total": 5, "done": 2, "failed": 1}
    await client.hset(f"{newest}state", mapping=state)
    await client.hset(f"{newest}requests", mapping={"a": "2 1 node-1\n[]", "b": "2 0 \n[]"})
    await client.zadd(f"{newest}queue", {"b": 6e15})
    await client.zadd(f"{newest}leases", {"a": 1})
    head = msgspec.json.encode({"reason": "it kills", "at": now})
    letter = head + b"\n2 5 node-1\n[]"
    await client.hset(f"{newest}dead", "dead", letter)
    await client.hset(f"{older}dead", "older", letter)
    await client.hset("{imdb}:budget", mapping={"day": now // 86_400_000, "used": 7})

    opened = await redis_side.backend.open(ONE, None, 0.0)
    assert len(opened.remarks) == 2
    assert f"2 open requests and 1 dead letters of run {RUN.name!r}" in opened.remarks[0]
    reply = await redis_side.backend.take(ONE, 9)
    assert {delivery.id for delivery in reply.deliveries} == {"a", "b"}
    account = reply.account
    assert (account.requested, account.ended, account.open, account.lost) == (5, 3, 2, 0)
    assert {one.id async for one in redis_side.backend.dead_letters()} == {"dead", "older"}
    assert reply.site.used == 7
    assert not await client.keys("{imdb}:runs")
    assert not await client.keys(f"{{imdb}}:{RUN.name}:*")
    assert (await redis_side.backend.open(TWO, None, 0.0)).remarks == []
