"""The scripts, each promise by itself, on a real Redis."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import redis.exceptions

from moviecrawler.frontier.budgets import UNLIMITED, Budget
from moviecrawler.frontier.dead_letters import dead_letters
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.queue import (
    BOOSTED,
    LISTS,
    TITLES,
    Batch,
    Push,
    Reply,
    RunGoneError,
    SharedQueue,
    requeue,
)
from moviecrawler.frontier.report import read_runs
from moviecrawler.frontier.worker_queue import WorkerQueue
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import connect
from tests.services.redis import RedisServer

HOUR = 3600.0


class Site:
    """One site's frontier and the workers at it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = connect(url)
        self.keys = Keys("imdb", "test")
        self.set()

    def set(self, budget: Budget = UNLIMITED, **options: Any) -> None:
        """Have the workers of a test use these."""
        self.budget = budget
        self.options = FrontierOptions(url=self.url, run="test", node="here", **options)

    async def worker(self, name: str, **arguments: Any) -> SharedQueue:
        queue = SharedQueue(self.client, self.keys, self.options, budget=self.budget, worker=name, **arguments)
        await queue.open(uuid.uuid4().hex)
        await queue.exchange(Batch(join=True))
        return queue


@pytest.fixture
def site(runner: asyncio.Runner, redis_url: str) -> Iterator[Site]:
    site = Site(redis_url)
    yield site
    runner.run(site.client.aclose())


@pytest.fixture
def own_site(runner: asyncio.Runner) -> Iterator[Site]:
    """Return one on a Redis whose memory is nobody else's."""
    with RedisServer() as server:
        site = Site(server.url)
        yield site
        runner.run(site.client.aclose())


def fingerprint_of(number: int) -> str:
    return blake2b(b"%d" % number, digest_size=16).hexdigest()


def page(number: int, level: int = TITLES, *, filtered: bool = True, is_title: bool = True) -> Push:
    return Push(level, fingerprint_of(number), f"request {number}", filtered, is_title)


def numbers(reply: Reply) -> list[int]:
    return [int(entry[35:].split()[1]) for entry, _ in reply.handed_out]


async def push(queue: SharedQueue, *pushes: Push) -> Reply:
    return await queue.exchange(Batch(pushes=pushes))


async def pop(queue: SharedQueue, want: int) -> list[int]:
    return numbers(await queue.exchange(Batch(want=want)))


def ends(how: Any, *which: int) -> Batch:
    return Batch(ends=[(fingerprint_of(number), how, "because") for number in which])


async def test_first_in_is_first_out_within_a_level(site: Site) -> None:
    worker = await site.worker("a")
    await push(worker, *map(page, range(10)))
    assert await pop(worker, 4) == [0, 1, 2, 3]
    assert await pop(worker, 9) == [4, 5, 6, 7, 8, 9]


async def test_upper_levels_come_first_and_starve_none(site: Site) -> None:
    worker = await site.worker("a")
    await push(worker, *(page(n) for n in range(100)))
    await push(worker, *(page(n, LISTS) for n in range(100, 200)))
    await push(worker, page(200, BOOSTED))
    assert await pop(worker, 16) == [200, *range(100, 106), 0, *range(106, 113), 1]
    await push(worker, *(page(n, BOOSTED) for n in range(300, 400)))
    assert await pop(worker, 16) == [300, 301, 302, 113, 303, 304, 305, 2, 306, 307, 308, 114, 309, 310, 311, 3]


@pytest.mark.parametrize("dupefilter", ["set", "bloom"])
async def test_page_is_queued_once_in_a_window_whoever_asks(site: Site, dupefilter: str) -> None:
    site.set(dupefilter=dupefilter, capacity=1000)
    a, b = await site.worker("a"), await site.worker("b")
    assert (await push(a, page(1), page(2), page(1))).dropped == 1
    assert (await push(b, page(2), page(3))).dropped == 1
    assert (await push(b, page(3, filtered=False))).dropped == 0
    assert (await push(b)).waiting == 4


@pytest.mark.parametrize(("before", "after"), [("set", "bloom"), ("bloom", "set")])
async def test_pages_stay_known_when_what_remembers_them_is_changed(site: Site, before: str, after: str) -> None:
    site.set(dupefilter=before, capacity=1000)
    await push(await site.worker("a"), page(1))
    site.set(dupefilter=after, capacity=1000)
    reply = await push(await site.worker("b"), page(1), page(2), page(2))
    assert (reply.dropped, reply.waiting) == (2, 2)


@pytest.mark.parametrize("dupefilter", ["set", "bloom"])
async def test_page_is_forgotten_after_one_to_two_windows(site: Site, dupefilter: str) -> None:
    site.set(dupefilter=dupefilter, capacity=1000, window=1.0)
    worker = await site.worker("a")
    began = time.monotonic()
    await push(worker, page(1))
    while (await push(worker, page(1))).dropped:  # noqa: ASYNC110 - what changes is in Redis
        await asyncio.sleep(0.05)
    assert 1 <= time.monotonic() - began <= 2.2


async def test_bloom_filter_keeps_its_promise(site: Site) -> None:
    site.set(dupefilter="bloom", capacity=20_000)
    worker = await site.worker("a")
    for start in range(0, 20_000, 1000):
        await push(worker, *map(page, range(start, start + 1000)))
    total = (await push(worker)).open
    assert total >= 20_000 * 0.9995
    before = int(await site.client.hget(site.keys.state, "dropped") or 0)
    await push(worker, *map(page, range(10_000, 11_000)))
    assert int(await site.client.hget(site.keys.state, "dropped")) == before + 1000
    generation = int(await site.client.hget(site.keys.state, "generation"))
    assert await site.client.strlen(site.keys.dupefilter(generation)) <= 20_000 * 2


async def test_lease_is_given_up_only_by_its_holder(site: Site) -> None:
    a, b = await site.worker("a"), await site.worker("b")
    await push(a, page(1))
    assert await pop(a, 1) == [1]
    assert (await b.exchange(ends("done", 1))).open == 1
    assert (await a.exchange(ends("done", 1))).open == 0
    assert (await a.exchange(ends("done", 1))).open == 0


async def test_request_given_back_is_the_next_one_handed_out(site: Site) -> None:
    worker = await site.worker("a")
    await push(worker, page(1), page(2))
    assert await pop(worker, 1) == [1]
    await worker.exchange(ends("back", 1))
    assert await pop(worker, 2) == [1, 2]


async def test_worker_that_waits_hears_when_there_is_something_and_when_nothing_is_left(site: Site) -> None:
    a, b = await site.worker("a"), await site.worker("b")
    heard = asyncio.Queue[None]()
    listening = asyncio.create_task(b.listen(lambda: heard.put_nowait(None)))
    try:
        async with asyncio.timeout(20):
            await heard.get()  # that it is listening
            await push(a, page(1), page(2))
            await heard.get()
            assert await pop(b, 1) == [1]
            await push(a, page(3))
            await a.exchange(Batch(want=2))
            assert heard.empty()  # it has not run dry meanwhile
            await b.exchange(ends("done", 1))
            await a.exchange(Batch(want=2))
            await a.exchange(ends("done", 2, 3))
            await heard.get()  # nothing is left
    finally:
        listening.cancel()


async def test_leases_of_a_silent_worker_go_back_and_its_late_word_is_ignored(site: Site) -> None:
    site.set(lease=1.0)
    a, b = await site.worker("a"), await site.worker("b")
    await push(a, page(1))
    assert await pop(a, 1) == [1]
    assert await b.reap("a") == (0, 0)
    await asyncio.sleep(1.1)
    assert (await b.exchange(Batch())).gone == ["a"]
    assert await b.reap("a") == (1, 0)
    assert await b.reap("a") == (0, 0)
    assert await pop(b, 1) == [1]
    late = await a.exchange(ends("done", 1))
    assert late.lost
    assert late.open == 1
    assert (await b.exchange(ends("done", 1))).open == 0


async def test_request_that_kills_is_handed_out_alone_and_then_set_aside(site: Site) -> None:
    site.set(deliveries=3)
    survivor = await site.worker("survivor")
    await push(survivor, *map(page, range(6)))
    seen = []
    for number in range(3):
        victim = await site.worker(f"victim{number}")
        seen.append(await pop(victim, 6))
        await site.client.zadd(site.keys.workers, {f"victim{number}": 0})
        seen.append(list(await survivor.reap(f"victim{number}")))
    assert seen[1] == [len(seen[0]), 0]
    assert len(seen[4]) == 1
    assert seen[5] == [0, 1]
    [letter] = [one async for one in dead_letters(site.client)]
    assert letter.id == fingerprint_of(seen[4][0])
    assert "handed out 3 times" in letter.reason
    assert await requeue(site.client, site.keys, letter.id)
    assert not await requeue(site.client, site.keys, letter.id)
    [report] = await read_runs(site.client)
    assert (report.total, report.failed, report.to_go, report.dead_letters) == (6, 0, 6, 0)


@pytest.mark.parametrize(
    "entry",
    [
        *(b"", b"rubbish", b"\x80\x04\x95pickle", b"2xx" + b"0" * 32, b"900" + b"0" * 32),
        *(b"200" + b"0" * 31, b"200a" + b"\xff" * 31 + b"{}", b"200" + b"0" * 31 + b"\n{}"),
    ],
)
async def test_entry_that_is_none_is_set_aside_and_stops_nothing(site: Site, entry: bytes) -> None:
    worker = await site.worker("a")
    await site.client.rpush(site.keys.requests(TITLES), entry)
    await push(worker, page(1))
    assert await pop(worker, 5) == [1]
    [letter] = [one async for one in dead_letters(site.client)]
    assert letter.reason == "not an entry of this queue"
    assert not await requeue(site.client, site.keys, letter.id)


async def test_damaged_entry_stops_nothing_wherever_it_stands(site: Site) -> None:
    await site.client.hset(site.keys.failed, "x", "damaged")
    await site.client.hset(site.keys.leases("gone"), "y", "90")
    await site.client.zadd(site.keys.workers, {"gone": 1})
    worker = await site.worker("a")
    assert await worker.revive() == 1
    assert await worker.reap("gone") == (1, 0)
    await push(worker, page(1))
    assert await pop(worker, 5) == [1]
    letters = [one async for one in dead_letters(site.client)]
    assert sorted(letter.entry for letter in letters) == ["90", "damaged"]


async def test_all_of_a_run_expires_but_not_while_a_worker_waits_and_shares_the_site_s_slot(site: Site) -> None:
    site.set(window=1.0)
    worker = await site.worker("a")
    of_site = {key.encode() for key in (site.keys.runs, site.keys.current, site.keys.budget)}
    queue = SharedQueue(site.client, Keys("imdb", "left"), site.options, worker="b")
    await queue.open("n")
    await push(worker, page(1), page(2), page(3, LISTS), page(4))
    await pop(worker, 3)
    await worker.exchange(Batch(ends=[(fingerprint_of(n), how, "") for n, how in ((1, "dead"), (2, "failed"))]))  # type: ignore[misc]
    await site.client.delete(*map(site.keys.requests, (BOOSTED, LISTS, TITLES)))
    assert await requeue(site.client, site.keys, fingerprint_of(1))
    of_runs = set(await site.client.keys("*")) - of_site
    assert len(of_runs) == 8
    assert all(key.startswith(b"{imdb}:") for key in of_runs | of_site)
    for key in of_runs:
        assert HOUR * 12_000 < await site.client.pttl(key) <= HOUR * 24_000, key


async def test_limit_counts_the_titles_of_all_workers(site: Site) -> None:
    a = await site.worker("a", digest="x", limit=3)
    b = await site.worker("b", digest="x", limit=3)
    assert (await push(a, page(1), page(2), page(9, LISTS, is_title=False))).dropped == 0
    assert (await push(b, page(2), page(3), page(4))).dropped == 2


async def test_budget_spaces_requests_over_all_workers(site: Site) -> None:
    site.set(budget=Budget(per_second=50))
    workers = [await site.worker(name) for name in "abcd"]
    await push(workers[0], *map(page, range(500)))
    handed_out, free = 0, 0.0
    while handed_out < 70:
        for worker in workers:
            delays = [delay for _, delay in (await worker.exchange(Batch(want=32))).handed_out]
            assert all(later - earlier == pytest.approx(20, abs=1) for earlier, later in pairwise(delays))
            before, free = free, float(await site.client.hget(site.keys.budget, "next"))
            assert free - before >= 20 * len(delays) - 0.1  # all that was handed out has its own turn, by Redis' clock
            second, microsecond = await site.client.time()
            assert (
                free <= second * 1000 + microsecond / 1000 + 500 + 20 + 1
            )  # no more than the next half second is reserved
            handed_out += len(delays)
        await asyncio.sleep(0.01)


async def test_requests_besides_those_handed_out_are_taken_from_the_budget(site: Site) -> None:
    site.set(budget=Budget(per_second=10))
    worker = await site.worker("a")
    await push(worker, *map(page, range(5)))
    assert (await worker.exchange(Batch(spent=20))).start >= 1800
    assert await pop(worker, 1) == []


async def test_day_has_so_many_requests_and_no_more(site: Site) -> None:
    site.set(budget=Budget(per_day=3))
    worker = await site.worker("a")
    await push(worker, *map(page, range(5)))
    assert await pop(worker, 5) == [0, 1, 2]
    reply = await worker.exchange(Batch(want=5))
    assert not reply.handed_out
    assert 0 < reply.shut <= 24 * HOUR * 1000
    assert reply.reason == "the budget of the day is spent"


async def test_what_is_left_of_the_day_is_told_to_all_workers(site: Site) -> None:
    site.set(budget=Budget(per_day=5))
    worker, other = await site.worker("a"), await site.worker("b")
    assert (await worker.exchange(Batch())).left == 5
    await push(worker, *map(page, range(8)))
    assert len(await pop(worker, 2)) == 2
    reply = await other.exchange(Batch(spent=1))
    assert (reply.left, reply.waiting, reply.workers) == (2, 6, 2)
    assert (await worker.exchange(Batch(spent=4))).left == 0


async def test_a_site_without_a_budget_has_no_end_of_it(site: Site) -> None:
    worker = await site.worker("a")
    assert (await worker.exchange(Batch())).left is None


async def test_requests_given_back_unsent_are_not_taken_from_the_day(site: Site) -> None:
    site.set(budget=Budget(per_day=3))
    worker = await site.worker("a")
    await push(worker, *map(page, range(5)))
    assert await pop(worker, 3) == [0, 1, 2]
    await worker.exchange(Batch(ends=[(fingerprint_of(number), "back", "") for number in (1, 2)], unsent=2))
    assert sorted(await pop(worker, 5)) == [1, 2]
    assert (await worker.exchange(Batch(want=1))).spent


async def test_day_that_is_spent_is_spent_for_those_with_another_source_too(site: Site) -> None:
    site.set(budget=Budget(per_day=2))
    worker = await site.worker("a")
    await push(worker, *map(page, range(5)))
    assert await pop(worker, 5) == [0, 1]
    reply = await worker.exchange(Batch(want=5, regardless=True))
    assert (reply.handed_out, reply.spent) == ([], True)


async def test_one_request_tries_for_all_until_its_outcome_is_known(site: Site) -> None:
    a, b = await site.worker("a"), await site.worker("b")
    await push(a, *map(page, range(3)))
    await a.exchange(Batch(refusal=("no", 50)))
    await asyncio.sleep(0.1)
    assert (await a.exchange(Batch(want=3))).probing
    # It is asked for nothing else meanwhile, and may go on with that one.
    again = await a.exchange(Batch(want=3))
    assert (again.handed_out, again.probing) == ([], True)
    waiting = await b.exchange(Batch(want=3))
    assert (waiting.handed_out, waiting.probing, waiting.reason) == ([], False, "no")
    # It ended without telling: the next one may try, wherever.
    await a.exchange(ends("failed", 0))
    assert (await b.exchange(Batch(want=3))).probing
    # Its worker dies.
    await site.client.zadd(site.keys.workers, {"b": 0})
    await site.client.hset(site.keys.circuit, "probe", 0)
    assert await a.reap("b") == (1, 0)
    assert (await a.exchange(Batch(want=3))).probing
    await a.exchange(Batch(answered=True))
    assert not await site.client.exists(site.keys.circuit)


async def test_site_that_refuses_again_is_left_alone_for_longer(site: Site) -> None:
    worker = await site.worker("a")
    await push(worker, *map(page, range(5)))
    assert (await worker.exchange(Batch(refusal=("no", 100)))).shut <= 100
    assert (await worker.exchange(Batch(refusal=("in flight", 100)))).shut <= 100
    await asyncio.sleep(0.15)
    probe = await worker.exchange(Batch(want=3))
    assert (probe.probing, len(probe.handed_out)) == (True, 1)
    assert 150 < (await worker.exchange(Batch(refusal=("no", 100)))).shut <= 200
    await site.client.hset(site.keys.circuit, mapping={"until": 1, "trips": 30})
    week = 7 * 24 * HOUR * 1000
    assert week - 60_000 < (await worker.exchange(Batch(refusal=("no", 100)))).shut <= week


async def test_one_worker_seeds_and_another_takes_over_when_it_dies(site: Site) -> None:
    a, b = await site.worker("a", digest="x"), await site.worker("b", digest="x")
    other = await site.worker("c", digest="y")
    assert await a.seeding() == "seed"
    assert await b.seeding() == "wait"
    assert await other.seeding() == "seed"
    await site.client.zrem(site.keys.workers, "a")
    assert await b.seeding() == "seed"
    assert await b.seeding("done") == "done"
    assert await a.seeding(ago=1) == "done"


async def test_run_that_is_gone_is_an_error(site: Site) -> None:
    worker = await site.worker("a")
    await site.client.flushdb()
    with pytest.raises(RunGoneError):
        await worker.exchange(Batch(want=1))
    await site.worker("b")
    with pytest.raises(RunGoneError):
        await worker.exchange(Batch(want=1))


async def test_full_redis_acknowledges_nothing_whose_follow_ups_are_not_queued(own_site: Site) -> None:
    worker = await own_site.worker("a")
    await push(worker, page(1))
    assert await pop(worker, 1) == [1]
    await own_site.client.config_set("maxmemory", "1")
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        await worker.exchange(Batch(pushes=[page(2)], ends=[(fingerprint_of(1), "done", "")]))
    assert (await worker.exchange(Batch())).open == 1
    assert (await worker.exchange(ends("done", 1))).open == 0


async def test_redis_that_throws_keys_away_is_told_of(own_site: Site) -> None:
    worker = await own_site.worker("a")
    await own_site.client.config_set("maxmemory-policy", "volatile-lru")
    assert await worker.eviction() is None
    await own_site.client.config_set("maxmemory", str(2**30))
    assert await worker.eviction() == "volatile-lru"


async def test_a_user_of_redis_needs_neither_channels_nor_its_figures(own_site: Site) -> None:
    await own_site.client.acl_setuser(
        "few", enabled=True, nopass=True, keys=["*"], reset_channels=True, categories=["+@all", "-@dangerous"]
    )
    await own_site.client.aclose()
    own_site.client = connect(own_site.url.replace("//", "//few:any@"))
    a, b = await own_site.worker("a"), await own_site.worker("b")
    assert await a.eviction() is None
    await push(a, page(1), page(2))
    assert await pop(b, 1) == [1]
    assert (await b.exchange(ends("done", 1))).open == 1


async def test_requests_whose_handing_out_never_arrived_go_back(site: Site) -> None:
    worker = await site.worker("a")
    ours = WorkerQueue(worker, "here")
    for number in range(4):
        ours.add(page(number))
    assert numbers(await ours.exchange(Batch(want=1))) == [0]
    await worker.exchange(Batch(want=2))  # its answer is lost
    assert (await ours.exchange(Batch())).waiting == 1
    assert (await ours.exchange(Batch())).waiting == 3
    assert ours.held == {fingerprint_of(0)}


async def test_request_is_queued_once_though_the_answer_was_lost(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = await site.worker("a")
    ours = WorkerQueue(worker, "here")
    for number in range(3):
        ours.add(page(number, filtered=False))
    with monkeypatch.context() as patch:
        exchange = worker.exchange

        async def lose_the_answer(batch: Batch) -> Reply:
            await exchange(batch)
            raise redis.exceptions.TimeoutError

        patch.setattr(worker, "exchange", lose_the_answer)
        with pytest.raises(redis.exceptions.TimeoutError):
            await ours.exchange(Batch())
    ours.add(page(3, filtered=False))
    assert (await ours.exchange(Batch())).open == 4
    ours.add(page(0, filtered=False))
    assert (await ours.exchange(Batch())).open == 5
    await worker.exchange(Batch(leave=True))
    assert not [name for name in await site.client.hkeys(site.keys.state) if name.startswith(b"pushed:")]


async def test_lease_ends_only_once_what_came_of_it_is_queued(site: Site) -> None:
    ours = WorkerQueue(await site.worker("a"), "here")
    ours.add(page(0))
    await ours.exchange(Batch(want=1))
    for number in range(1, 1001):
        ours.add(page(number))
    ours.end(fingerprint_of(0), "done", "")
    assert (await ours.exchange(Batch())).held == 1
    reply = await ours.exchange(Batch())
    assert (reply.held, reply.open, ours.pushes, ours.ends) == (0, 1000, 0, 0)


async def test_page_is_not_done_twice_at_once_by_a_worker(site: Site) -> None:
    worker = await site.worker("a")
    await push(worker, page(1), page(1, filtered=False), page(2))
    assert await pop(worker, 3) == [1]
    assert await pop(worker, 1) == [2]
    assert await pop(worker, 1) == []
    assert (await worker.exchange(ends("done", 1, 2))).open == 1
    assert await pop(worker, 1) == [1]
    assert (await worker.exchange(ends("done", 1))).open == 0


async def test_page_that_passes_the_dupefilter_is_remembered_by_it(site: Site) -> None:
    worker = await site.worker("a")
    await push(worker, page(1, filtered=False))
    assert (await push(worker, page(1))).dropped == 1


async def test_what_failed_is_tried_again_only_when_nothing_else_is_left(site: Site) -> None:
    worker = await site.worker("a")
    await push(worker, *map(page, range(4)))
    await pop(worker, 4)
    await worker.exchange(ends("failed", 0, 1, 2))
    assert await worker.revive() == 0
    await worker.exchange(ends("done", 3))
    assert await worker.revive() == 3
    assert await worker.revive() == 0
    assert sorted(await pop(worker, 4)) == [0, 1, 2]
    reply = await worker.exchange(ends("done", 0, 1, 2))
    assert reply.open == 0
    [report] = await read_runs(site.client)
    assert (report.total, report.done, report.failed) == (4, 4, 0)


async def test_any_number_of_failures_is_tried_again(site: Site) -> None:
    worker = await site.worker("a")
    for start in range(0, 1200, 400):
        await push(worker, *map(page, range(start, start + 400)))
    while got := await pop(worker, 500):
        await worker.exchange(ends("failed", *got))
    assert await worker.revive() == 1200
    assert (await worker.exchange(Batch())).waiting == 1200


async def test_who_was_asked_after_a_round_was_over_begins_the_next_and_others_take_part(site: Site) -> None:
    def named(number: int) -> Push:
        return msgspec.structs.replace(page(number), by_round=True)

    worker = await site.worker("a", digest="x", limit=2)
    assert await worker.seeding() == "seed"
    assert (await push(worker, named(1), named(1), page(2))).dropped == 1
    assert await worker.seeding("done") == "done"
    # Not over: whoever comes helps, also a worker that has begun anew.
    late = await site.worker("b", digest="x", limit=2)
    assert await late.seeding() == "done"
    assert sorted(await pop(worker, 5)) == [1]
    assert sorted(await pop(late, 5)) == [2]
    for one, number in ((worker, 1), (late, 2)):
        await one.exchange(Batch(ends=[(fingerprint_of(number), "done", "")]))
    # Over: one that was asked before is late.
    assert await late.seeding(ago=60) == "done"
    await asyncio.sleep(0.01)
    assert await late.seeding() == "seed"
    # What the arguments name is asked for in the new round, once though the seeder dies; what a link leads to is known.
    assert (await push(late, named(1), page(2))).dropped == 1
    await site.client.zrem(site.keys.workers, "b")
    assert await worker.seeding() == "seed"
    assert (await push(worker, named(1), page(3), page(4))).dropped == 2  # the limit counts anew, and is 2
    assert await worker.seeding("done") == "done"


async def test_round_that_is_over_is_told_from_other_work_of_the_run(site: Site) -> None:
    weekly, other = await site.worker("a", digest="x"), await site.worker("b", digest="y")
    assert await weekly.seeding() == "seed"
    assert await weekly.seeding("done") == "done"  # there was nothing to do
    await asyncio.sleep(0.01)
    assert await other.seeding() == "seed"
    await push(other, page(1))
    await asyncio.sleep(0.01)
    assert await weekly.seeding() == "seed"


async def test_round_that_was_never_over_goes_on_after_the_window(site: Site) -> None:
    site.set(window=1.0)
    worker = await site.worker("a", digest="x")
    assert await worker.seeding() == "seed"
    named = msgspec.structs.replace(page(1), by_round=True)
    await push(worker, named)
    assert await worker.seeding("done") == "done"
    await asyncio.sleep(1.1)
    assert await worker.seeding() == "seed"
    assert (await push(worker, named)).dropped == 1  # it still waits


async def test_runs_of_one_site_are_apart(site: Site) -> None:
    one = await site.worker("a")
    await push(one, page(1))
    site.keys = Keys("imdb", "other")
    two = await site.worker("b")
    assert await pop(two, 1) == []
    assert (await push(two, page(1))).dropped == 0
    assert {report.run for report in await read_runs(site.client)} == {"test", "other"}


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        *(
            ("budget", field, value)
            for field in ("next", "day", "used")
            for value in ("rubbish", "nan", "inf", "9e99", "-1")
        ),
        *(("circuit", field, "rubbish") for field in ("probe", "trips", "trial")),
        *(
            ("state", field, value)
            for field in ("total", "done", "failed", "pops", "generation")
            for value in ("x", "1.5")
        ),
        *(("nodes", field, "x") for field in ("here done", "here failed")),
        ("budget", "", ""),
        ("circuit", "", ""),
    ],
)
async def test_damaged_field_stops_no_crawl_and_heals(site: Site, name: str, field: str, value: str) -> None:
    site.set(budget=Budget(per_second=1000.0, burst=10, per_day=100))
    queue = await site.worker("a")
    await push(queue, page(1), page(2))
    key = getattr(site.keys, name)
    if field:
        await site.client.hset(key, field, value)
        assert (await read_runs(site.client))[0].queued == 2
    else:  # a key of another type
        await site.client.delete(key)
        await site.client.set(key, "rubbish")
    reply = await queue.exchange(Batch(want=1, refusal=("no", 1) if name == "circuit" and field else None))
    if name == "circuit" and field:
        assert reply.shut
        await asyncio.sleep(0.01)
        reply = await queue.exchange(Batch(want=1))
    assert len(reply.handed_out) == 1
    lease = reply.handed_out[0][0][3:35].decode()
    reply = await queue.exchange(Batch(want=2, ends=[(lease, "done", "")], answered=True))
    assert (len(reply.handed_out), reply.damaged) == (1, [])
    await site.worker("b")
    [run] = await read_runs(site.client)
    assert run.done == 1


async def test_site_that_has_refused_us_is_left_alone_when_nobody_knows_until_when(site: Site) -> None:
    queue = await site.worker("a")
    await push(queue, page(1))
    await queue.exchange(Batch(refusal=("enough", 60_000)))
    await site.client.hset(site.keys.circuit, "until", "for ever")
    reply = await queue.exchange(Batch(want=1))
    assert reply.damaged == ["until in {imdb}:circuit"]
    assert (reply.handed_out, reply.reason) == ([], "enough")
    assert 0 < reply.shut <= 3_600_000
