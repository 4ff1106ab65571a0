"""The shared frontier beside scrapy-redis: round trips a page, pages a second, and both with a slower way to Redis.

usage: PYTHONPATH=. python tests/benchmarks/frontier_speed.py [PAGES] [ROUNDS]

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
import subprocess
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
from tests.services.proxy import Proxy
from tests.services.redis import RedisServer

WAYS: dict[str, dict[str, str]] = {
    "this frontier": {},
    "scrapy-redis": {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SPIDER_MIDDLEWARES": "{}",
        "REDIS_PARAMS": "{}",  # which it can't read when it is empty
    },
}
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
    options = {
        "IMDB_URL": site,
        "REDIS_URL": f"redis://{redis.address}/0",
        "PAGES": str(pages),
        "DATA_DIR": str(folder / "data"),
        "CSV_ENABLED": "0",
        "LOG_LEVEL": "ERROR",
        "PROGRESS": "off",
        "ROBOTSTXT_OBEY": "0",
        **settings,
    }
    command = [sys.executable, "-m", "scrapy", "runspider", __file__]
    command += [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings", "PYTHONWARNINGS": "ignore"}
    before = redis.answers
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    figures = json.loads(ended.stdout)
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
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    results = measure(pages, rounds)

    def median(way: str, delay: float, figure: str) -> float:
        return statistics.median(float(getattr(crawl, figure)) for crawl in results[way, delay])

    print(f"{pages:,} pages, median of {rounds}; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'':16}{'pages/s':>9}{'with 2 ms':>11}{'share kept':>12}{'processor a page':>18}{'round trips a page':>20}")
    speed, cpu = {}, {}
    for way in WAYS:
        near, far = (median(way, delay, "per_second") for delay in (0.0, SLOW))
        trips = median(way, 0.0, "round_trips")
        speed[way], cpu[way] = near, median(way, 0.0, "cpu")
        print(f"{way:16}{near:9.0f}{far:11.0f}{far / near:12.0%}{cpu[way] * 1e3:15.2f} ms{trips:20.3f}")
    print(f"{'wanted':16}{'':20}{f'at least {LEAST_KEPT:.0%}':>12}{'':18}{f'at most {MOST_ROUND_TRIPS}':>20}")
    ours, theirs = WAYS
    print(
        f"{ours} over {theirs}: {speed[ours] / speed[theirs]:.2f} times the pages a second (at least {LEAST_RATIO}), "
        f"{cpu[ours] / cpu[theirs]:.2f} times the processor time a page"
    )


if __name__ == "__main__":
    main()
