"""The frontier's two backends beside scrapy-redis: a crawl, and a million queued requests.

usage: python -m tests.benchmarks.frontier_speed [PAGES] [ROUNDS] [QUEUED] [--instructions]

One process crawls a list of pages (3,000 unless given) of 2 kB that a server in another process
serves, with the project's settings but without a delay or robots.txt: with this frontier over Redis
and over SQLite, with scrapy-redis' scheduler, queue and dupefilter, and with Scrapy's own in
memory. They take turns, and the median of the rounds (3 unless given) counts. Redis stands behind a
proxy that counts its answers. What counts is the time from the first page to the last, so neither
start-up nor the end, but queueing the list does. Then so many requests (1,000,000 unless given) are
queued, and some of them taken and acknowledged.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import redis
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler
from scrapy_redis.queue import PriorityQueue

from moviecrawler import settings as project_settings
from moviecrawler.frontier.contract import ARGUMENTS, TITLES, Backend, End, Push, RunName, Worker
from moviecrawler.frontier.redis_backend import RedisBackend
from moviecrawler.frontier.redis_client import connect
from moviecrawler.frontier.sqlite_backend import SqliteBackend
from moviecrawler.spiders.imdb import ImdbSpider
from tests.benchmarks.harness import (
    COUNTS_INSTRUCTIONS,
    ScrapyAlone,
    ScrapyRedis,
    figure,
    numbers,
    options,
    ours,
    run,
    table,
    with_add_on,
)
from tests.services.proxy import Proxy
from tests.services.redis import RedisServer

OURS = "this frontier, Redis"
LOCAL = "this frontier, SQLite"
THEIRS = "scrapy-redis"
ALONE = "Scrapy alone"
WAYS: dict[str, dict[str, str]] = {
    OURS: {},
    LOCAL: {"REDIS_URL": ""},
    THEIRS: with_add_on(ScrapyRedis),
    ALONE: {"REDIS_URL": "", **with_add_on(ScrapyAlone)},
}
FEW = 200
BATCH = 32
TAKEN = 3_200
"""Pages of a crawl that counts as a start; requests that a worker takes at once, and that are taken
of those that are queued."""
BODY = (
    '["parse_title","https://www.imdb.com/title/tt%07d/",'
    '{"site_id":"tt%07d","found":null},"page",0]'
)
SITE = """
import socket
from aiohttp import web

async def page(request):
    return web.Response(body=b"<html>" + b"x" * 2100 + b"</html>", content_type="text/html")

app = web.Application()
app.router.add_get("/{path:.*}", page)
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
web.run_app(app, sock=listening, access_log=None, print=None)
"""
"""Serves the same page under every address, and prints its port."""


class PagesSpider(ImdbSpider):
    """Asks for so many titles, reads nothing, and prints how long it took."""

    name = "pages"

    async def requests_of_arguments(self) -> AsyncIterator[Request]:
        for number in range(self.settings.getint("PAGES")):
            yield self.title_request(f"tt{number:07}", None)

    async def start(self) -> AsyncIterator[Request]:
        self.times: list[tuple[float, float]] = []
        async for request in super().start():
            yield request

    def parse_title(
        self, response: Response, site_id: str | None = None, found: Any = None, due: Any = None
    ) -> Iterator[Any]:
        del response, found, due
        self.times.append((time.monotonic(), time.process_time()))
        yield {"site_id": site_id}

    def closed(self, reason: str) -> None:
        del reason
        first, cpu_before = self.times[0]
        last, cpu = self.times[-1]
        print(json.dumps([len(self.times), last - first, cpu - cpu_before]), flush=True)


def crawl(
    folder: str, site: str, redis: Proxy, pages: int, settings: dict[str, str]
) -> tuple[float, float, float]:
    """Crawl all pages once, and return what that took.

    Pages a second, and a page's seconds of processor time and round trips to Redis.
    """
    settings = {
        "IMDB_URL": site,
        "REDIS_URL": f"redis://{redis.address}/0",
        "PAGES": str(pages),
        "DATA_DIR": folder,
        "CSV_ENABLED": "0",
        "LOG_LEVEL": "ERROR",
        "ROBOTSTXT_OBEY": "0",
        **settings,
    }
    before = redis.answers
    ended = run(
        ours("-m", "scrapy", "runspider", __file__, *options(settings), PYTHONWARNINGS="ignore")
    )
    crawled, seconds, cpu = json.loads(ended.printed)
    if COUNTS_INSTRUCTIONS:
        cpu = ended.cpu
        if pages > FEW:  # the start is taken out
            of_few = FEW * crawl(folder, site, redis, FEW, settings)[1]
            cpu = (cpu - of_few) * pages / (pages - FEW)
    if crawled != pages:
        sys.exit(f"{crawled} of {pages} pages were crawled")
    return pages / seconds, cpu / pages, (redis.answers - before) / pages


def measure(pages: int, rounds: int) -> dict[str, list[tuple[float, float, float]]]:
    """Return the crawls by way."""
    results: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    with (
        subprocess.Popen([sys.executable, "-c", SITE], stdout=subprocess.PIPE, text=True) as site,
        tempfile.TemporaryDirectory() as folder,
        RedisServer() as server,
        Proxy("127.0.0.1", server.port) as proxy,
    ):
        assert site.stdout is not None
        try:
            address = f"http://127.0.0.1:{int(site.stdout.readline())}"
            for _ in range(rounds):
                for way, settings in WAYS.items():
                    server.client.flushall()
                    results[way].append(crawl(folder, address, proxy, pages, settings))
        finally:
            site.kill()
    return results


def processor_time(url: str) -> float:
    """Return the seconds of processor time that this process and Redis have taken."""
    with redis.Redis.from_url(url) as client:
        info: Any = client.info("cpu")
    return time.process_time() + float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


async def fill(backend: Backend, count: int, clock: Callable[[], float]) -> float:
    """Queue so many requests; return the seconds by `clock` that one takes to be done."""
    worker = Worker(run=RunName("imdb", "many"), name="one")
    await backend.open(worker, requested_at=None, age=0.0)
    for begin in range(0, count, 500):
        some = range(begin, min(begin + 500, count))
        pushes = [
            Push(level=TITLES, id=f"{number:014x}", body=BODY % (number, number)) for number in some
        ]
        await backend.push(worker, pushes)
    [arguments] = (await backend.take(worker, 1)).deliveries
    assert arguments.id.startswith(ARGUMENTS)
    await backend.finish(worker, [End(id=arguments.id, kind="done", number=1)])
    began = clock()
    for _ in range(0, TAKEN, BATCH):
        deliveries = (await backend.take(worker, BATCH)).deliveries
        stored = {"stored": 1}
        ends = [End(id=one.id, kind="done", number=1, outcomes=stored) for one in deliveries]
        await backend.finish(worker, ends)
    seconds = clock() - began
    await backend.close()
    return seconds / TAKEN


def fill_ours(url: str, count: int) -> float:
    """Return the seconds of processor time that a request takes to be done, over Redis."""
    return asyncio.run(fill(RedisBackend(connect(url)), count, lambda: processor_time(url)))


def fill_local(count: int) -> tuple[float, float]:
    """Return the bytes of a queued request in SQLite's file, and its seconds until it is done."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = asyncio.run(fill(SqliteBackend(Path(folder)), count, time.process_time))
        size = sum(path.stat().st_size for path in Path(folder).glob("queue.sqlite3*"))
        return size / count, seconds


def fill_theirs(url: str, count: int) -> float:
    """Queue so many requests as scrapy-redis does.

    Return the seconds of processor time that it takes to pop one.
    """
    values = {name: value for name, value in vars(project_settings).items() if name.isupper()}
    spider = ImdbSpider.from_crawler(get_crawler(ImdbSpider, values), ids="tt0000000")
    client = redis.Redis.from_url(url)
    queue = PriorityQueue(client, spider, "%(spider)s:requests")
    one: bytes = queue._encode_request(spider.title_request("tt0000000", None))
    for begin in range(0, count, 500):
        pipe = client.pipeline(transaction=False)
        for number in range(begin, min(begin + 500, count)):
            pipe.zadd(queue.key, {one.replace(b"tt0000000", b"tt%07d" % number): 0})
            pipe.sadd("imdb:dupefilter", f"{number:040x}")
        pipe.execute()
    began = processor_time(url)
    for _ in range(TAKEN):
        queue.pop()
    seconds = processor_time(url) - began
    client.close()
    return seconds / TAKEN


def main() -> None:
    pages, rounds, queued = numbers(3000, 3, 1_000_000, least=(1_000, 1, 2 * TAKEN))
    results = measure(pages, rounds)
    fills = {
        OURS: lambda url: fill_ours(url, queued),
        THEIRS: lambda url: fill_theirs(url, queued),
    }
    print(
        f"{pages:,} pages, median of {rounds}; {queued:,} queued; "
        f"load of the machine {os.getloadavg()[0]:.1f}"
    )
    rows = []
    medians = {}
    to_end = {}
    for way, crawls in results.items():
        speed, cpu, trips = map(statistics.median, zip(*crawls, strict=True))
        medians[way] = (speed, cpu, trips)
        row = [way, f"{speed:.0f}", f"{cpu * 1e3:.2f} ms", f"{trips:.3f}", "", ""]
        if way in fills:
            with RedisServer() as server:
                before = server.client.info("memory")["used_memory"]
                seconds = fills[way](server.url)
                grown = server.client.info("memory")["used_memory"] - before
                to_end[way] = (grown / (queued - TAKEN), seconds)
                row[4:] = f"{to_end[way][0]:.0f}", f"{seconds * 1e6:.0f} µs"
        elif way == LOCAL:
            size, seconds = fill_local(queued)
            row[4:] = f"{size:.0f}", f"{seconds * 1e6:.0f} µs"
        rows.append(row)
    header = (
        "",
        "pages/s",
        "processor a page",
        "trips a page",
        "bytes a request",
        "processor to take one",
    )
    table(header, rows)
    figure(
        f"processor of a page with {LOCAL}, beside {ALONE}",
        medians[LOCAL][1] / medians[ALONE][1],
        at_most=1.08,
    )
    figure(f"pages a second, beside {THEIRS}", medians[OURS][0] / medians[THEIRS][0], at_least=1.3)
    figure("round trips to Redis a page", medians[OURS][2], at_most=0.2)
    figure(
        f"bytes of a queued request, beside {THEIRS}",
        to_end[OURS][0] / to_end[THEIRS][0],
        at_most=1,
    )
    figure(f"to take and end it, beside {THEIRS}", to_end[OURS][1] / to_end[THEIRS][1], at_most=1)


if __name__ == "__main__":
    main()
