"""Series from an empty database to every score of three sites, on two workers a site that share one Redis and one Postgres.

usage: python -m tests.benchmarks.series_run [SERIES]

1,000 series have 4,000 seasons and 40,000 episodes. Printed is how long each step takes, what was asked of each site, and every
stored score, episode or joined title that is not as the replica has it. A second run is to ask for no title.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.benchmarks.harness import numbers
from tests.catalogue.series_crawl import TITLES, SeriesCrawl
from tests.crawling import reset
from tests.services.postgres import PostgresServer, execute, new_database
from tests.services.redis import RedisServer

SHOWN = 20


def main() -> int:
    (series,) = numbers(1_000, least=(20,))
    with (
        tempfile.TemporaryDirectory() as folder,
        PostgresServer() as postgres,
        RedisServer() as redis,
        ReplicaProcess(titles=TITLES, series=series, light=True) as replica,
    ):
        database = new_database(postgres.url)
        crawl = SeriesCrawl(Path(folder), replica, Catalogue(1, TITLES, series), database, redis.url)
        crawl.longest = 7_200.0
        for name in ("first", "second"):
            for what, step in (("import", crawl.import_all), ("crawl", crawl.crawl_all)):
                began = time.monotonic()
                step()
                print(f"{name} {what}: {time.monotonic() - began:.0f} s", flush=True)
            for site, (pages, seasons) in crawl.title_pages().items():
                print(f"{name} crawl, {site}: {pages:,} titles' pages, {seasons:,} of seasons")
            asked = sum(pages for pages, _ in crawl.title_pages().values())
            reset(replica)
        wrong = crawl.differences()
        stored = "SELECT count(*) FILTER (WHERE kind = 'series'), count(*) FILTER (WHERE kind = 'season') FROM titles"
        print(
            "series, seasons:",
            *execute(database, stored)[0],
            "episodes:",
            *execute(database, "SELECT count(*) FROM imdb_episodes")[0],
        )
        print(f"differences from the truth: {len(wrong):,}", *wrong[:SHOWN], sep="\n")
    return int(bool(wrong or asked))


if __name__ == "__main__":
    sys.exit(main())
