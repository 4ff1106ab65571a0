"""CPU time that choosing proxies and watching what becomes of requests costs a request, beside the same without rotation.

usage: python -m tests.benchmarks.proxies_overhead [REQUESTS] [ROUNDS]

Requests and answers pass through the project's chain of downloader middlewares in one process; the network is left out: a
page of realistic size is answered at once. Log lines are formatted and written to a file, as in a crawl. The ways take turns,
so that a machine whose speed drifts favours none.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import tempfile
import time
from pathlib import Path

from scrapy import Request
from scrapy.http import HtmlResponse, Response

from tests.benchmarks.harness import numbers, table
from tests.proxies.chain import Chain

LIMIT = 0.15
"""Milliseconds of CPU time a request over none."""
BODY = b"<!DOCTYPE html><html><head><title>A title</title></head><body>" + b"x" * 1_850_000
IN_FLIGHT = 16


class Load:
    """So many requests at once, through so many proxies."""

    def __init__(self, proxies: int, folder: Path, resting: int = 0) -> None:
        self.chain = Chain(proxies, folder, _answer)
        self.sent = 0
        if self.chain.rotation is not None:
            health = self.chain.rotation.health
            for proxy in self.chain.rotation.pools["datacenter"].proxies[:resting]:
                health.quarantine(proxy.id, "403 refusal", health.now())

    async def run(self, requests: int) -> float:
        """Return the milliseconds of CPU time a request."""

        async def worker() -> None:
            for _ in range(requests // IN_FLIGHT):
                self.sent += 1
                await self.chain.send(f"https://www.imdb.com/title/tt{self.sent:07}/")

        began = time.process_time()
        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        return (time.process_time() - began) / (requests // IN_FLIGHT * IN_FLIGHT) * 1000


async def _answer(request: Request) -> Response:
    await asyncio.sleep(0)
    request.meta["download_latency"] = 0.1
    return HtmlResponse(request.url, body=BODY, headers={"Content-Type": "text/html"}, request=request)


async def measure(requests: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logging.basicConfig(filename=folder / "log", level=logging.INFO, force=True)
        loads = {
            "none": Load(0, folder),
            "12 proxies": Load(12, folder),
            "1,000 proxies": Load(1000, folder),
            "… half resting": Load(1000, folder, resting=500),
        }
        costs: dict[str, list[float]] = {label: [] for label in loads}
        for load in loads.values():
            await load.run(2000)  # until every proxy has answered
        for _ in range(rounds):
            for label, load in loads.items():
                costs[label].append(await load.run(requests))
    base = statistics.median(costs["none"])
    rows = []
    for label, spent in costs.items():
        over = statistics.median(one - none for one, none in zip(spent, costs["none"], strict=True))
        median = statistics.median(spent)
        rows.append((label, f"{median:.4f} ms", f"{over:.4f} ms", f"{median / base:.2f}"))
    table(("", "a request", "over none", "ratio"), rows)
    print(f"limit: {LIMIT} ms over none")


def main() -> None:
    asyncio.run(measure(*numbers(4000, 7, least=(IN_FLIGHT, 1))))


if __name__ == "__main__":
    main()
