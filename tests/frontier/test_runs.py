"""When a run is joined, begun, over or refused, and who queues what the arguments name: the scripts on a real Redis."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis.asyncio

from moviecrawler.frontier.budgets import UNLIMITED, Budget
from moviecrawler.frontier.keys import SiteKeys
from moviecrawler.frontier.queue import ARGUMENTS, End, Outbox, Push, Scripts, SharedQueue
from moviecrawler.options import FrontierOptions

SITE = SiteKeys("imdb")
Make = Callable[..., SharedQueue]


@pytest.fixture
def make(client: Any) -> Make:
    """Return what makes workers."""
    scripts: dict[str, Scripts] = {}

    def make(
        name: str = "one", *, budget: Budget = UNLIMITED, arguments: str = "ids=a", **options: Any
    ) -> SharedQueue:
        key = repr(budget)
        scripts.setdefault(key, Scripts(client, budget))
        limit = options.pop("limit", None)
        given = FrontierOptions(**{"lease": 3600, **options})
        return SharedQueue(scripts[key], SITE, given, worker=name, arguments=arguments, limit=limit)

    return make


def pushes(*ids: str, level: int = 2) -> list[Push]:
    return [Push(level, one, "[]", title=one) for one in ids]


async def seeded(queue: SharedQueue, *ids: str) -> SharedQueue:
    """Begin a run, and queue what its arguments name."""
    await queue.open("run", 0)
    arguments = await take_arguments(queue)
    await queue.push(pushes(*ids))
    await queue.finish([arguments])
    return queue


async def take_arguments(queue: SharedQueue) -> End:
    """Lease the request that stands for the arguments; return the end of the lease."""
    [arguments] = (await queue.take(1)).deliveries
    assert arguments.id.startswith(ARGUMENTS)
    return End(arguments.id, "done", arguments.number)


async def finish_all(queue: SharedQueue) -> None:
    reply = await queue.take(100)
    await queue.finish([End(one.id, "done") for one in reply.deliveries])


@pytest.mark.promise(
    "A run is one pass: who was asked for before its end joins, who is asked for later begins anew."
)
@pytest.mark.parametrize("asked_at", [0.0, -0.001, 1.0])
async def test_a_run_that_is_not_over_is_joined_whenever_somebody_asked(
    make: Make, asked_at: float
) -> None:
    one = await seeded(make(), "a", "b")
    other = make("two")
    assert await other.open("run", asked_at) is None
    assert other.keys == one.keys


@pytest.mark.promise(
    "A run is one pass: who was asked for before its end joins, who is asked for later begins anew."
)
async def test_a_run_that_was_over_is_begun_again_only_for_who_asked_later(make: Make) -> None:
    one = await seeded(make(), "a")
    before = time.time()
    await asyncio.sleep(0.01)
    await finish_all(one)
    await asyncio.sleep(0.01)
    for asked_at in (
        0.0,
        before,
    ):  # by a name that somebody has chosen; a job that was queued before
        late = make("late")
        over_at = await late.open("run", asked_at)
        assert over_at is not None
        assert before < over_at < time.time()
        assert late.keys == one.keys
        assert (await late.take(9)).deliveries == []
    later = make("later")
    assert await later.open("run", -0.001) is None
    assert later.keys != one.keys
    assert await later.push(pushes("a")) == 0  # which the run before has seen


async def test_a_lost_number_begins_a_new_run_that_meets_no_old_key(
    make: Make, client: Any
) -> None:
    one = await seeded(make(), "a")
    await client.delete(SITE.latest("run"))
    await asyncio.sleep(0.002)
    two = make("two")
    await two.open("run", 0)
    assert two.keys != one.keys
    assert (await two.take()).open == 1  # the arguments


async def test_one_worker_at_a_time_queues_what_the_arguments_name(make: Make, client: Any) -> None:
    one = make("one")
    two = make("two")
    for queue in (one, two):
        await queue.open("run", 0)
    end = await take_arguments(one)
    assert (await two.take(9)).deliveries == []
    await one.push(pushes("a"))
    await client.zadd(one.keys.leases, {end.id: 1})  # it was killed half-way, or sleeps
    assert await take_arguments(two) == End(end.id, "done", 2)
    assert await two.push(pushes("a", "b")) == 1
    await two.finish([end])
    assert (await two.take()).open == 2


async def test_who_queues_while_the_state_is_lost_begins_from_the_front(
    make: Make, client: Any
) -> None:
    one = make()
    await one.open("run", 0)
    end = await take_arguments(one)
    await one.push(pushes("a"))
    await client.flushdb()
    await one.push(pushes("b"))
    await one.finish([end])  # which says nothing of what was lost
    await take_arguments(one)
    assert await one.push(pushes("a", "b")) == 1


async def test_what_the_arguments_name_is_queued_though_the_site_may_not_be_asked(
    make: Make,
) -> None:
    queue = make(budget=Budget(per_day=1))
    await queue.open("run", 0)
    assert (await queue.scripts.ask(SITE, charge=True)).used == 1
    await take_arguments(queue)
    await queue.push(pushes("a"))
    assert (await queue.take(9)).deliveries == []


async def test_limit_counts_titles_by_their_ids_and_not_requests(make: Make) -> None:
    queue = await seeded(make(limit=2))
    assert await queue.push(pushes("a", "b", "c")) == 0
    second_request = Push(2, "page-of-a", "[]", title="a")
    assert await queue.push([second_request, Push(1, "list", "[]")]) == 0
    assert (await queue.take()).total == 5  # with the arguments


@pytest.mark.parametrize("dupefilter", ["set", "bloom"])
async def test_a_page_is_queued_once_in_a_run(make: Make, client: Any, dupefilter: str) -> None:
    queue = await seeded(make(dupefilter=dupefilter))
    ids = [f"tt{number}" for number in range(300)]
    assert await queue.push(pushes(*ids)) == 0
    assert await queue.push(pushes(*ids[:5])) == 5
    await finish_all(queue)
    assert await client.type(queue.keys.seen) == {"set": b"set", "bloom": b"string"}[dupefilter]


async def test_levels_go_first_and_within_one_first_in_is_first_out(make: Make) -> None:
    queue = await seeded(make())
    await queue.push([*pushes("t2", "t1"), *pushes("l", level=1), *pushes("b", level=0)])
    reply = await queue.take(3)
    assert [one.id for one in reply.deliveries] == ["b", "l", "t2"]
    await queue.finish([End(one.id, "back", one.number) for one in reply.deliveries])
    assert [one.id for one in (await queue.take(9)).deliveries] == ["b", "l", "t2", "t1"]


async def test_the_last_requests_are_shared_out(make: Make) -> None:
    """Fifty workers: none starves while there is work."""
    workers = [make(f"w{number}") for number in range(50)]
    for worker in workers:
        await worker.open("run", 0)
        await worker.take()
    await finish_all(workers[0])
    await workers[0].push(pushes(*map(str, range(200))))
    got = {worker.worker: 0 for worker in workers}
    while True:
        replies = [(worker, await worker.take(32)) for worker in workers]
        for worker, reply in replies:
            got[worker.worker] += len(reply.deliveries)
            await worker.finish([End(one.id, "done") for one in reply.deliveries])
        if not replies[-1][1].open:
            break
    assert min(got.values()) >= 2


@pytest.mark.promise(
    "A page that kills its workers becomes a dead letter, and nothing else with it."
)
async def test_what_was_handed_out_twice_is_handed_out_alone_and_buried_at_last(
    make: Make, client: Any
) -> None:
    queue = await seeded(make(deliveries=4), *map(str, range(8)))

    async def die(count: int) -> list[str]:
        reply = await queue.take(count)
        ids = [one.id for one in reply.deliveries]
        if ids:
            await client.zadd(queue.keys.leases, dict.fromkeys(ids, 1))
        return ids

    assert len(await die(8)) == len(await die(8)) == 8
    assert (
        len((await queue.take(8, renew=["another"])).deliveries) == 0
    )  # only to a worker that holds nothing
    [killer] = await die(8)
    assert await die(8) == [killer]
    reply = await queue.take(8)
    assert reply.new_dead_letters == [killer]
    while reply.deliveries:
        [one] = reply.deliveries
        await queue.finish([End(one.id, "done")])
        reply = await queue.take(8)
    assert (reply.total, reply.done, reply.failed, reply.open) == (9, 8, 1, 0)
    await client.delete(queue.keys.state)
    await take_arguments(queue)
    assert (await queue.take()).failed == 1, "it still counts when the state is lost"
    assert await queue.push(pushes("7")) == 0, "but nothing counts as seen"
    assert await queue.finish([End(killer, "again")]) == 1
    assert [one.number for one in (await queue.take(1)).deliveries] == [1], (
        "asked for again, it has all its tries again"
    )
    await queue.finish([End(killer, "dead", 1), End(killer, "done")])  # its worker was only slow
    assert (await queue.take()).failed == 0


@pytest.mark.promise(
    "A request is done only when its items are durable everywhere, and what it leads to is queued."
)
async def test_leases_end_only_after_what_came_of_them_is_queued(make: Make) -> None:
    queue = await seeded(make(), "list")
    sent: list[str] = []

    class Spy:
        async def push(self, some: list[Push]) -> int:
            sent.extend(one.id for one in some)
            if len(sent) == 1:
                raise redis.exceptions.OutOfMemoryError
            return 0

        async def finish(self, some: list[End]) -> int:
            sent.extend(f"end of {one.id}" for one in some)
            return 0

    outbox = Outbox(Spy())  # type: ignore[arg-type]
    outbox.end(End("early", "done"))
    outbox.push(Push(2, "title", "[]"))
    outbox.end(End("list", "done"))
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        await outbox.send()
    assert sent == ["title", "end of early"]
    await outbox.send()
    assert sent[2:] == ["title", "end of list"]
    assert (await queue.take()).open == 1


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
async def test_seeds_of_each_type_become_requests_in_one_step(
    make: Make, client: Any, kind: str
) -> None:
    seeds = [b"tt1", b'{"url": "tt2", "priority": 100}', b"\xff\x00"]
    for seed in seeds:
        command = {"list": client.rpush, "set": client.sadd}.get(kind)
        await (
            command(SITE.start_urls, seed) if command else client.zadd(SITE.start_urls, {seed: 1})
        )
    queue = make()
    await queue.open("run", 0)
    assert (await queue.take(0)).open == 1  # a worker that takes nothing moves none
    reply = await queue.take(9)
    assert reply.deliveries[1].body == seeds[1]
    assert {one.body for one in reply.deliveries[1:]} == set(seeds)
    assert not await client.exists(SITE.start_urls)
    assert (await queue.take()).total == 4


async def test_keys_of_a_run_expire_a_week_after_their_last_use(make: Make, client: Any) -> None:
    queue = await seeded(make(limit=9), "a", "b")
    await queue.finish(
        [End(one.id, "dead", one.number, "why") for one in (await queue.take(1)).deliveries]
    )
    await queue.take(1)
    keys = await client.keys(f"{queue.keys.prefix}*")
    assert len(keys) >= 6
    for key in keys:
        assert 6.9 * 86400 < await client.ttl(key) <= 7 * 86400, key


async def test_a_run_is_not_over_while_a_worker_holds_a_request_that_was_lost(
    make: Make, client: Any
) -> None:
    one = await seeded(make(), "a")
    await one.take(1)
    await client.delete(one.keys.requests)
    assert (await one.take(0)).open == 1
    await client.zadd(one.keys.leases, {"a": 1})  # the worker died
    assert (await one.take(0)).open == 0


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
@pytest.mark.parametrize("how", ["back", "dead"])
async def test_a_worker_whose_lease_went_to_another_ends_nothing_of_it(
    make: Make, client: Any, how: Any
) -> None:
    one = await seeded(make(), "a")
    other = make("two")
    await other.open("run", 0)
    assert [each.number for each in (await one.take(1)).deliveries] == [1]
    await client.zadd(one.keys.leases, {"a": 1})  # its time is over
    assert [each.number for each in (await other.take(1)).deliveries] == [2]
    await one.finish([End("a", how, 1, "why")])
    assert await client.zscore(one.keys.leases, "a") is not None
    await other.finish([End("a", "done", 2)])
    assert (await other.take()).in_words == "all are done"
