"""Pages a second of 1, 2, 4 and 8 workers of one crawl, on a site that takes 500 ms to answer.

usage: python -m tests.benchmarks.frontier_scaling [SECONDS] [CONCURRENT]

Each worker has CONCURRENT requests in flight (2 unless given), so that it is the site's latency that limits it, and not this
machine's cores, which 8 workers share. What counts is what the site answers in SECONDS (15 unless given) from when all workers
have work: start-up is not part of it. Takes a minute and a half.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from moviecrawler.frontier.keys import Keys
from moviecrawler.replica.process import ReplicaProcess
from tests.benchmarks.harness import numbers, unhindered, write_ids
from tests.crawling import counts
from tests.frontier.workers import Workers
from tests.services.redis import RedisServer
from tests.waiting import wait_for

LATENCY = 0.5
WORKERS = (1, 2, 4, 8)
LEAST = 0.95
STARTING = 60.0
"""Seconds that all workers may take to begin."""


def pages_per_second(workers: int, concurrent: int, seconds: float) -> float:
    """Return what so many workers do."""
    titles = round(workers * concurrent / LATENCY * (seconds + STARTING / 2))
    with (
        tempfile.TemporaryDirectory() as name,
        RedisServer() as server,
        ReplicaProcess(titles=titles, light=True, latency=LATENCY * 1000) as replica,
        Workers(
            *("imdb", f"file={write_ids(Path(name), titles)}"),
            data=Path(name),
            replica=replica,
            redis_url=server.url,
            environment=None,
            **unhindered(concurrent) | {"CSV_ENABLED": "0", "FRONTIER_LEASE": "30"},
        ) as running,
    ):
        running.start(workers)
        leases = Keys("imdb", "default").leases("*")
        wait_for(lambda: len(server.client.keys(leases)) == workers, STARTING)
        time.sleep(1)  # until their first pages are here
        before, began = counts(replica)["requests"], time.monotonic()
        time.sleep(seconds)
        after, ended = counts(replica)["requests"], time.monotonic()
    if after >= titles:
        sys.exit(f"the workers ran out of titles: there are {titles}")
    return float(after - before) / (ended - began)


def main() -> None:
    """Print the speed of each number of workers beside that of one."""
    seconds, concurrent = numbers(15.0, 2, least=(1.0, 1))
    one = 0.0
    print(f"{concurrent} requests in flight each, so at most {concurrent / LATENCY:.0f} pages a second and worker")
    print(f"{'workers':>8}{'pages/s':>10}{'of linear':>11}   (at least {LEAST:.0%}){'load':>8}")
    for workers in WORKERS:
        speed = pages_per_second(workers, concurrent, seconds)
        one = one or speed
        print(f"{workers:8}{speed:10.1f}{speed / one / workers:11.1%}{'':17}{os.getloadavg()[0]:8.1f}", flush=True)


if __name__ == "__main__":
    main()
