"""What several processes that write to one database at the same time do together, and what their taking turns costs.

usage: python -m tests.benchmarks.postgres_writers [TITLES] [WRITERS,…]

Into a database with TITLES (200,000 unless given), 1, 4, 16 and 50 writers store batches of 500 titles with 15 credits, at least 16 batches
in all: one writer at a time, as versions before did, and beside each other. `locked` is the share of time during which one of them
keeps the others from settling titles, or from writing at all: near 100 %, more writers are of no use. `a batch` is that time by batch (ms).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from contextlib import closing
from multiprocessing.synchronize import Barrier

import psycopg2

from moviecrawler.database.titles import SETTLE_BESIDE_OTHERS, WRITE_ALONE, WRITE_BESIDE_OTHERS
from moviecrawler.errors import MovieCrawlerError
from moviecrawler.pipelines import postgres
from moviecrawler.pipelines.postgres import PostgresStore
from tests.benchmarks.harness import BATCH, numbers
from tests.benchmarks.postgres_speed import fill, make_movies
from tests.pipelines.runs import record_of
from tests.pipelines.stored import opened
from tests.services.postgres import GIVEN_URL, PostgresServer, new_database

BATCHES = 16
_BESIDE_OTHERS = (WRITE_BESIDE_OTHERS, SETTLE_BESIDE_OTHERS)
_HELD = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock')"
_LOOK_SECONDS = 0.01


def write(url: str, first: int, batches: int, begin: Barrier, failed: multiprocessing.Queue[str]) -> None:
    """Store so many batches, from a number on, once all writers are ready."""
    records = [record_of(movie) for movie in make_movies("imdb", first, batches * BATCH)]
    with opened(PostgresStore(url)) as store:
        begin.wait()
        for number in range(batches):
            try:
                store.write(records[number * BATCH : (number + 1) * BATCH])
            except MovieCrawlerError as error:
                failed.put(str(error))


def measure(url: str, writers: int, first: int) -> tuple[float, float, float, int]:
    """Return titles a second, the share of time that the lock was held, the ms of that by batch, and how many batches failed."""
    context = multiprocessing.get_context("fork")
    begin, failed = context.Barrier(writers + 1), context.Queue()
    batches = max(1, BATCHES // writers)
    processes = [
        context.Process(target=write, args=(url, first + number * batches * BATCH, batches, begin, failed))
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        begin.wait()
        started, looks, held = time.monotonic(), 0, 0
        while any(process.is_alive() for process in processes):
            cursor.execute(_HELD)
            held += cursor.fetchall()[0][0]
            looks += 1
            time.sleep(_LOOK_SECONDS)
        seconds = time.monotonic() - started
    lost = failed.qsize()
    stored = writers * batches - lost
    return stored * BATCH / seconds, held / looks, 1000 * seconds * held / looks / stored, lost


def main() -> None:
    """Print the table."""
    (titles,) = numbers(200_000, least=(50,))
    writers_of_runs = [int(number) for number in sys.argv[2].split(",")] if len(sys.argv) > 2 else [1, 4, 16, 50]
    with PostgresServer() as server:
        home = GIVEN_URL or server.url
        databases = [new_database(home), new_database(home)]
        for url in databases:
            fill(url, titles)
        print(f"{titles:,} titles, batches of {BATCH}; load of the machine {os.getloadavg()[0]:.1f}", flush=True)
        columns = f"{'titles/s':>10}{'locked':>8}{'a batch':>9}{'failed':>8}"
        print(f"{'':8}{'one at a time':>35}{'beside each other':>35}\n{'writers':>8}{columns}{columns}{'ratio':>8}")
        first = 3_000_000
        for writers in writers_of_runs:
            line, rates = f"{writers:8}", []
            for url, locks in zip(databases, ((WRITE_ALONE, WRITE_ALONE), _BESIDE_OTHERS), strict=True):
                vars(postgres).update(WRITE_BESIDE_OTHERS=locks[0], SETTLE_BESIDE_OTHERS=locks[1])
                rate, held, each, lost = measure(url, writers, first)
                rates.append(rate)
                line += f"{rate:10,.0f}{held:8.0%}{each:9,.0f}{lost:8}"
            first += max(BATCHES, writers) * BATCH
            print(f"{line}{rates[1] / rates[0]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
