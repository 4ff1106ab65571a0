"""Pages a second of 1, 2, 4 and 8 workers on a site that takes 500 ms to answer.

usage: PYTHONPATH=. python tests/benchmarks/frontier_scaling.py [CONCURRENT] [SECONDS]

Each worker has CONCURRENT requests in flight (default 4), so that the machine's cores are not what limits 8 of them. What
counts is the time from when all workers are up, in which each may do CONCURRENT × 2 pages a second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.frontier.workers import Workers
from tests.services.redis import RedisServer

LATENCY = 0.5


def pages_per_second(workers: int, concurrent: int, seconds: int) -> float:
    """Return what so many workers do."""
    titles = round(workers * concurrent / LATENCY * (seconds + 15))
    catalogue = Catalogue(1, titles)
    with (
        tempfile.TemporaryDirectory() as name,
        RedisServer() as server,
        ReplicaProcess(titles=titles, light=True, latency=LATENCY * 1000) as replica,
    ):
        folder = Path(name)
        (folder / "ids").write_text("\n".join(catalogue.movie(index).imdb_id for index in range(titles)))
        slots = f'{{"127.0.0.1": {{"delay": 0.0, "concurrency": {concurrent}}}}}'
        with Workers(
            *("imdb", f"file={folder / 'ids'}"),
            data=folder,
            replica=replica,
            redis_url=server.url,
            CONCURRENT_REQUESTS=str(concurrent),
            DOWNLOAD_SLOTS=slots,
            CSV_ENABLED="0",
            FRONTIER_LEASE="30",
        ) as running:
            running.start(workers)
            client = server.client
            while client.hlen("{imdb}:default:nodes") < workers:
                time.sleep(0.1)
            time.sleep(2)

            def done() -> int:
                return int(client.hget("{imdb}:default:state", "done") or 0)

            before, began = done(), time.monotonic()
            time.sleep(seconds)
            return (done() - before) / (time.monotonic() - began)


def main() -> None:
    concurrent = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    one = 0.0
    print(f"{'workers':>8}{'pages/s':>10}{'of linear':>11}")
    for workers in (1, 2, 4, 8):
        speed = pages_per_second(workers, concurrent, seconds)
        one = one or speed
        print(f"{workers:8}{speed:10.1f}{speed / one / workers:11.0%}", flush=True)


if __name__ == "__main__":
    main()
