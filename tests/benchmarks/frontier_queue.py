"""What the shared queue and its dupefilters cost: time a request at an empty and at a long queue, memory, false positives.

usage: python -m tests.benchmarks.frontier_queue [--full]

About a minute at a tenth of the size; `--full` queues 1,000,000 requests and remembers 10,000,000 URLs in each dupefilter,
which takes about ten minutes and 2 GB. Time is that of whole exchanges: this process' part, the way to Redis, and Redis.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
import uuid
from hashlib import blake2b
from typing import Any

from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.queue import LISTS, TITLES, Batch, Push, SharedQueue
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import connect
from tests.services.redis import RedisServer

QUEUED, URLS, PROBES = 1_000_000, 10_000_000, 1_000_000
MOST_RATIO, MOST_BYTES_A_URL, MOST_FALSE = 1.5, 2.0, 0.001
AT_ONCE = 1000
BATCH = 32
"""Requests of an exchange whose time counts, as many as a worker's by default."""
SAMPLES = 300
ELSEWHERE = 10**12
"""Numbers of pages from here on are not among those that were queued."""
REQUEST = (
    '[1,"https://www.imdb.com/title/tt0111161/","imdb","parse_title","title_failed",'
    '{"site_id":"tt0111161","found":{"list_name":"top","list_rank":1,"entry":{"site_id":"tt0111161","title":"An invented title"}}},'
    '"page",0,1,1795178579.175,0,null,null]'
)


def pages(start: int, count: int, level: int = TITLES, request: str = REQUEST) -> list[Push]:
    """Return requests for pages of these numbers, which their fingerprints stand for."""
    return [
        Push(level, blake2b(b"%d" % number, digest_size=16).hexdigest(), request, True, True)
        for number in range(start, start + count)
    ]


async def memory(client: Any) -> int:
    """Return the bytes that Redis uses."""
    return int((await client.info("memory"))["used_memory"])


async def busy(client: Any) -> float:
    """Return the seconds that Redis has spent in scripts."""
    return float((await client.info("commandstats"))["cmdstat_evalsha"]["usec"]) / 1e6


async def worker(client: Any, run: str, **options: Any) -> SharedQueue:
    """Return the queue of a new run, as its only worker sees it."""
    settings = FrontierOptions(url="redis://", run=run, lease=86_400, **options)
    queue = SharedQueue(client, Keys("imdb", run), settings, worker=run)
    await queue.open(uuid.uuid4().hex)
    await queue.exchange(Batch(join=True))
    return queue


async def dupefilter_key(client: Any, queue: SharedQueue) -> str:
    """Return the key of the generation that is being filled."""
    return queue.keys.dupefilter(int(await client.hget(queue.keys.state, "generation")))


async def push_and_pop(queue: SharedQueue, start: int) -> tuple[float, float]:
    """Return the seconds that a request takes to be queued, and to be handed out and acknowledged."""
    pushing, popping = [], []
    for number in range(SAMPLES):
        batch = pages(start + number * BATCH, BATCH, LISTS)
        began = time.perf_counter()
        await queue.exchange(Batch(pushes=batch))
        pushed = time.perf_counter()
        reply = await queue.exchange(Batch(want=BATCH))
        await queue.exchange(Batch(ends=[(entry[3:35].decode(), "done", "") for entry, _ in reply.handed_out]))
        pushing.append(pushed - began)
        popping.append(time.perf_counter() - pushed)
    return statistics.median(pushing) / BATCH, statistics.median(popping) / BATCH


async def queue_costs(client: Any, queued: int) -> None:
    """Print what a request costs at an empty queue and at a long one."""
    queue = await worker(client, "queue")
    await push_and_pop(queue, ELSEWHERE)  # warm up
    empty = await push_and_pop(queue, 2 * ELSEWHERE)
    before = await memory(client)
    for start in range(0, queued, AT_ONCE):
        await queue.exchange(Batch(pushes=pages(start, AT_ONCE)))
    grown = await memory(client) - before
    busy_before = await busy(client)
    full = await push_and_pop(queue, 3 * ELSEWHERE)
    a_page = (await busy(client) - busy_before) / SAMPLES / BATCH
    print(f"{'':28}{'push':>10}{'pop and acknowledge':>22}")
    for label, (push, pop) in (("empty queue", empty), (f"queue of {queued:,}", full)):
        print(f"{label:28}{push * 1e6:7.1f} µs{pop * 1e6:19.1f} µs")
    print(f"{'ratio':28}{full[0] / empty[0]:10.2f}{full[1] / empty[1]:22.2f}   (at most {MOST_RATIO})")
    seen = int(await client.memory_usage(await dupefilter_key(client, queue), samples=0))
    print(
        f"Redis itself: {a_page * 1e6:.1f} µs a request for all three, so one carries {1 / a_page:,.0f} a second at most"
    )
    print(
        f"memory: {(grown - seen) / queued:.0f} bytes a queued request, besides {seen / queued:.0f} in the dupefilter\n"
    )


async def dupefilter_costs(client: Any, kind: str, urls: int, probes: int) -> None:
    """Print what it costs to remember URLs, and how many others are then taken for known ones."""
    await client.flushdb()
    queue = await worker(client, kind, dupefilter=kind, capacity=urls)
    requests = queue.keys.requests(TITLES)
    known = 0
    began = time.perf_counter()
    for start in range(0, urls, AT_ONCE):
        known += (await queue.exchange(Batch(pushes=pages(start, AT_ONCE, request="")))).dropped
        if start % (100 * AT_ONCE) == 0:
            await client.unlink(requests)
    spent = (time.perf_counter() - began) / urls
    key = await dupefilter_key(client, queue)
    size = int(await client.memory_usage(key, samples=0))
    dropped = 0
    if kind == "bloom":
        # Asking for a page is remembering it, so each lot of probes finds the filter as it was.
        await client.copy(key, "{imdb}:filled")
        for start in range(0, probes, AT_ONCE):
            dropped += (await queue.exchange(Batch(pushes=pages(ELSEWHERE + start, AT_ONCE, request="")))).dropped
            await client.copy("{imdb}:filled", key, replace=True)
    told = f"{kind:6}{urls:12,} URLs{size / 1e6:9.1f} MB{size / urls:8.2f} bytes a URL{spent * 1e6:8.1f} µs a URL"
    if kind == "bloom":
        told += f"   (at most {MOST_BYTES_A_URL:.0f} bytes with --full)\n{'':6}{dropped:12,} of {probes:,} other URLs taken for known ones: "
        told += f"{dropped / probes:.3%} (at most {MOST_FALSE:.1%}); {known / urls:.3%} while it was filled"
    print(told, flush=True)


async def main() -> None:
    """Measure all."""
    share = 1 if "--full" in sys.argv[1:] else 10
    with RedisServer() as server:
        client = connect(server.url, socket_timeout=60)
        await client.config_set("auto-aof-rewrite-percentage", 0)  # which would run in the midst of a measurement
        await queue_costs(client, QUEUED // share)
        for kind in ("bloom", "set"):
            await dupefilter_costs(client, kind, URLS // share, PROBES // share)
        await client.aclose()


if __name__ == "__main__":
    asyncio.run(main())
