"""What a page costs in Postgres, of the crawl's processor time and of the server's.

usage: python -m tests.benchmarks.postgres_speed [TITLES]

The pages of the replica's TITLES films and of its series, of all sites and in no order, are stored
in batches of 100, as a crawl does it: matched, and brought into the catalogue. Ten days later they
are read again, with more votes. The baseline copies the same items as JSON, with their ids, into a
table that has an index of these alone. The server's time is that of the session's process.
"""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import psycopg2

from moviecrawler.basics.clock import utc_now
from moviecrawler.database.postgres import copy_rows
from moviecrawler.items import Movie
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.store import Record
from moviecrawler.replica.collection import Collection
from moviecrawler.sites import SITES
from tests.benchmarks.harness import figure, numbers, table
from tests.services.postgres import PostgresServer, execute, new_database

BATCH = 100
PIDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"


class Spent(NamedTuple):
    """Milliseconds of processor time per page."""

    crawl: float
    server: float


def pages(titles: int) -> list[Movie]:
    """Return the items of all pages, as they are read now."""
    collection = Collection(1, titles)
    found = [movie for site in SITES for movie in collection.pages(site)]
    random.Random(1).shuffle(found)  # noqa: S311 - no secret
    for movie in found:
        movie.scraped_at = utc_now() - timedelta(days=10)
    return found


def read_again(movies: Sequence[Movie]) -> None:
    """Change items into those of ten days later."""
    for movie in movies:
        movie.scraped_at = utc_now()
        for score in movie.scores:
            score.count = score.count and score.count + 1


def server_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def cost(url: str, records: Sequence[Record], write: Callable[[Sequence[Record]], object]) -> Spent:
    """Return what it costs to write records."""
    ((pid,),) = execute(url, f"{PIDS} AND pid <> pg_backend_pid()")
    server = -server_seconds(int(str(pid)))
    crawl = -time.process_time()
    for begin in range(0, len(records), BATCH):
        write(records[begin : begin + BATCH])
    crawl += time.process_time()
    server += server_seconds(int(str(pid)))
    return Spent(crawl * 1000 / len(records), server * 1000 / len(records))


def main() -> None:
    (titles,) = numbers(500, least=(10,))
    movies = pages(titles)

    def records() -> list[Record]:
        return [Record(movie, msgspec.json.encode(movie), 0.0) for movie in movies]

    with PostgresServer() as server:
        url = new_database(server.url)
        execute(url, "CREATE TABLE items (id text PRIMARY KEY, item jsonb)")
        with closing(psycopg2.connect(url)) as connection:

            def copy(batch: Sequence[Record]) -> None:
                rows = ((f"{r.item.site} {r.item.site_id}", r.encoded.decode()) for r in batch)
                with connection, connection.cursor() as cursor:
                    copy_rows(cursor, "items", rows)

            found = {"copied as JSON": cost(url, records(), copy)}
        url = new_database(server.url)
        with closing(PostgresStore(url, margin=0)) as store:
            store.open()
            found["stored"] = cost(url, records(), store.write)
            read_again(movies)
            found["read again"] = cost(url, records(), store.write)
    base = sum(found["copied as JSON"])
    beside = {what: sum(spent) / base for what, spent in found.items()}
    table(
        (f"a page of {len(movies):,}", "crawl", "server", "beside JSON"),
        [
            (what, f"{ms.crawl:.2f} ms", f"{ms.server:.2f} ms", f"{beside[what]:.1f}")
            for what, ms in found.items()
        ],
    )
    figure("a page in Postgres, beside a copy of it as JSON", beside["stored"], at_most=8)
    figure("the same page again", beside["read again"], at_most=5)


if __name__ == "__main__":
    main()
