"""The shared frontier beside scrapy-redis: round trips a page, pages a second, and both with a slower way to Redis.

usage: python -m tests.benchmarks.frontier_speed [PAGES] [ROUNDS]

One process crawls a list of pages (3,000 unless given) of 2 kB that a server in another process serves, with the project's
settings but without a delay or robots.txt: with this frontier, and with scrapy-redis' scheduler, queue and dupefilter. They
take turns, and the median of the rounds (3 unless given) counts. Redis stands behind a proxy that counts its answers and,
every other time, delays each by 2 ms. What counts is the time from the first page to the last, so neither start-up nor the end,
but queueing the list does. Processor time is the crawling process' alone, and tells the two apart on a busy machine too.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from aiohttp import web
from scrapy import Request
from scrapy.http import Response

from moviecrawler.spiders.imdb import ImdbSpider
from tests.benchmarks.harness import SCRAPY_REDIS, numbers, options, run, table
from tests.services.proxy import Proxy
from tests.services.redis import RedisServer

WAYS: dict[str, dict[str, str]] = {"this frontier": {}, "scrapy-redis": SCRAPY_REDIS}
SLOW = 0.002
"""Seconds that each answer of Redis takes longer."""
LEAST_RATIO, LEAST_KEPT, MOST_ROUND_TRIPS = 1.3, 0.9, 0.2


class PagesSpider(ImdbSpider):
    """Asks for so many titles, reads nothing, and prints how long it took."""

    name = "pages"

    async def start(self) -> AsyncIterator[Request]:
        self.times: list[tuple[float, float]] = []
        for number in range(self.settings.getint("PAGES")):
            yield self.title_request(f"tt{number:07}", None)

    def parse_title(self, response: Response, site_id: str, found: Any, due: Any = None) -> Iterator[Any]:
        del response, found, due
        self.times.append((time.monotonic(), time.process_time()))
        yield {"site_id": site_id}

    def closed(self, reason: str) -> None:
        del reason
        (first, cpu_before), (last, cpu) = self.times[0], self.times[-1]
        figures = {"pages": len(self.times), "seconds": last - first, "cpu": cpu - cpu_before}
        print(json.dumps(figures), flush=True)


@dataclass(frozen=True)
class Crawl:
    """What one crawl took."""

    per_second: float
    cpu: float
    """Seconds of processor time a page."""
    round_trips: float
    """To Redis, a page."""


def serve(port: Connection) -> None:
    """Serve the same page under every address, and tell the port."""

    async def page(request: web.Request) -> web.Response:
        del request
        return web.Response(body=b"<html>" + b"x" * 2100 + b"</html>", content_type="text/html")

    async def run() -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", page)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


def crawl(folder: Path, site: str, redis: Proxy, pages: int, settings: dict[str, str]) -> Crawl:
    """Crawl all pages once."""
    settings = {
        "IMDB_URL": site,
        "REDIS_URL": f"redis://{redis.address}/0",
        "PAGES": str(pages),
        "DATA_DIR": str(folder / "data"),
        "CSV_ENABLED": "0",
        "LOG_LEVEL": "ERROR",
        "ROBOTSTXT_OBEY": "0",
        **settings,
    }
    before = redis.answers
    ended = run("-m", "scrapy", "runspider", __file__, *options(settings), PYTHONWARNINGS="ignore")
    figures = json.loads(ended.printed)
    if figures["pages"] != pages:
        sys.exit(f"{figures['pages']} of {pages} pages were crawled")
    return Crawl(pages / figures["seconds"], figures["cpu"] / pages, (redis.answers - before) / pages)


def measure(pages: int, rounds: int) -> dict[tuple[str, float], list[Crawl]]:
    """Return the crawls by way and delay."""
    results = defaultdict(list)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    site = context.Process(target=serve, args=(theirs,), daemon=True)
    site.start()
    try:
        address = f"http://127.0.0.1:{ours.recv()}"
        with (
            tempfile.TemporaryDirectory() as name,
            RedisServer() as server,
            Proxy("127.0.0.1", server.port) as proxy,
        ):
            for _ in range(rounds):
                for way, settings in WAYS.items():
                    for delay in (0.0, SLOW):
                        server.client.flushall()
                        proxy.latency = delay
                        results[way, delay].append(crawl(Path(name), address, proxy, pages, settings))
    finally:
        site.kill()
    return results


def main() -> None:
    """Print both ways' figures."""
    pages, rounds = numbers(3000, 3, least=(1_000, 1))
    results = measure(pages, rounds)

    def median(way: str, delay: float, figure: str) -> float:
        return statistics.median(float(getattr(crawl, figure)) for crawl in results[way, delay])

    print(f"{pages:,} pages, median of {rounds}; load of the machine {os.getloadavg()[0]:.1f}")
    speed, cpu, rows = {}, {}, []
    for way in WAYS:
        near, far = (median(way, delay, "per_second") for delay in (0.0, SLOW))
        trips = median(way, 0.0, "round_trips")
        speed[way], cpu[way] = near, median(way, 0.0, "cpu")
        rows.append((way, f"{near:.0f}", f"{far:.0f}", f"{far / near:.0%}", f"{cpu[way] * 1e3:.2f} ms", f"{trips:.3f}"))
    rows.append(("wanted", "", "", f"at least {LEAST_KEPT:.0%}", "", f"at most {MOST_ROUND_TRIPS}"))
    table(("", "pages/s", "with 2 ms", "share kept", "processor a page", "round trips a page"), rows)
    ours, theirs = WAYS
    print(
        f"{ours} over {theirs}: {speed[ours] / speed[theirs]:.2f} times the pages a second (at least {LEAST_RATIO}), "
        f"{cpu[ours] / cpu[theirs]:.2f} times the processor time a page"
    )


if __name__ == "__main__":
    main()
