"""What a page costs with all four stores and the shared frontier, beside a bare Scrapy spider.

usage: python -m tests.benchmarks.stores_speed [PAGES] [ROUNDS] [--light] [--instructions]

The bare spider reads nothing. The replica serves IMDb title pages of realistic size (1.3 MB), or of
10 kB with `--light`; PostgreSQL, a Mongo-protocol server, an S3 endpoint and Redis run beside it.
Each crawl runs in a process of its own with 64 requests at a time. Start-up is taken out of the
processor time by crawling few and many pages and dividing the difference; it is the median of all
rounds, as chance in a start would count as pages. The crawls take turns, and each round gives a
ratio, of which the median counts.

scrapy-redis runs with this project's spider, readers and pipelines. Two workers share one frontier
and its pages: what a page costs them both, beside what one worker alone takes, says what the second
core is worth when nothing else uses it.
"""

import json
import os
import statistics
import sys
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import boto3

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.benchmarks.harness import (
    ScrapyRedis,
    Spent,
    bare,
    figure,
    numbers,
    options,
    ours,
    run,
    table,
    with_add_on,
)
from tests.services.mongo import MongoServer
from tests.services.postgres import PostgresServer, new_database
from tests.services.redis import RedisServer
from tests.services.s3 import CREDENTIALS, S3Server

FEW = 20
CONCURRENT = "64"
BARE = """
import scrapy

class Bare(scrapy.Spider):
    name = "bare"
    async def start(self):
        for line in open(self.file):
            yield scrapy.Request(f"{self.home}/title/{line.strip()}/")
    def parse(self, response):
        pass
"""
BARE_SETTINGS = {
    "CONCURRENT_REQUESTS": CONCURRENT,
    "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENT,  # so many connections are kept open, too
    "LOG_LEVEL": "WARNING",
}
SETTINGS = {
    **BARE_SETTINGS,
    "DOWNLOAD_SLOTS": json.dumps({"127.0.0.1": {"delay": 0.0, "concurrency": int(CONCURRENT)}}),
}
"""Nothing holds a crawl of the replica back."""
STORES = ("DATABASE_URL", "MONGO_URL", "S3_BUCKET")
SHARED = (*STORES, "REDIS_URL")


GOALS = {
    "ours, CSV files": 1.0,
    "ours, four stores": 1.1,
    "ours, four stores and frontier": 1.1,
}
"""Processor of a page of realistic size, beside a bare spider's."""


def main() -> None:
    many, rounds = numbers(400, 5, least=(FEW + 1, 1))
    os.environ.update(CREDENTIALS)
    with (
        tempfile.TemporaryDirectory() as name,
        ReplicaProcess(titles=many, light="--light" in sys.argv) as replica,
        PostgresServer() as postgres,
        MongoServer() as mongo,
        S3Server() as s3,
        RedisServer() as redis,
    ):
        folder = Path(name)
        spider = folder / "spider.py"
        spider.write_text(BARE)
        for pages in (FEW, many):
            (folder / f"ids-{pages}").write_text("\n".join(Collection(1, many).imdb_ids[:pages]))

        def reads_nothing(pages: int) -> Spent:
            arguments = ["-a", f"file={folder}/ids-{pages}", "-a", f"home={replica.urls['imdb']}"]
            return run(
                bare("runspider", str(spider), *arguments, *options(BARE_SETTINGS), folder=folder)
            )

        def crawl(
            stores: Sequence[str],
            pages: int,
            settings: Mapping[str, str] = SETTINGS,
            workers: int = 1,
            code: int = 0,
        ) -> Spent:
            """Crawl with CSV files and the other stores named, which hold nothing yet."""
            mark = uuid.uuid4().hex
            with closing(boto3.session.Session().client("s3", endpoint_url=s3.url)) as client:
                client.create_bucket(Bucket=f"b-{mark}")
            redis.client.flushall()
            services = {
                "DATABASE_URL": new_database(postgres.url),
                "MONGO_URL": f"{mongo.url}/b_{mark}",
                "S3_BUCKET": f"b-{mark}",
                "REDIS_URL": redis.url,
            }
            variables = {name: services[name] for name in stores}
            variables |= {"S3_ENDPOINT_URL": s3.url, "IMDB_URL": replica.urls["imdb"]}
            arguments = [
                "-m",
                "scrapy",
                "crawl",
                "imdb",
                "-a",
                f"file={folder}/ids-{pages}",
                *options(settings),
            ]
            data = [tempfile.mkdtemp(dir=folder) for _ in range(workers)]
            commands = [
                ours(*arguments, folder=folder, DATA_DIR=each, **variables) for each in data
            ]
            return run(*(command._replace(code=code) for command in commands))

        crawls: dict[str, Callable[[int], Spent]] = {
            "bare Scrapy, reads nothing": reads_nothing,
            "ours, CSV files": partial(crawl, ()),
            "ours, four stores": partial(crawl, STORES),
            "ours, four stores and frontier": partial(crawl, SHARED),
            "ours, the same by two workers": partial(crawl, SHARED, workers=2),
            # Its scheduler keeps no account, so that the crawl ends as one that has found nothing.
            "scrapy-redis, same pipelines": partial(
                crawl, SHARED, settings=SETTINGS | with_add_on(ScrapyRedis), code=1
            ),
        }
        spent: dict[tuple[str, int], list[Spent]] = defaultdict(list)
        for number in range(rounds):
            for label, way in crawls.items():
                for pages in (FEW, many):
                    spent[label, pages].append(way(pages))
            print(f"round {number + 1} of {rounds} is done", flush=True)

    def a_page(label: str, figure: str) -> list[float]:
        """Return the ms that a page took in each round, without the start.

        The start is what the same crawl of few pages takes.
        """
        start = statistics.median(getattr(one, figure) for one in spent[label, FEW])
        return [(getattr(one, figure) - start) / (many - FEW) * 1000 for one in spent[label, many]]

    rows = []
    beside_bare = {}
    for label in crawls:
        cpu = a_page(label, "cpu")
        ratios = [
            value / base
            for value, base in zip(cpu, a_page("bare Scrapy, reads nothing", "cpu"), strict=True)
        ]
        beside_bare[label] = statistics.median(ratios)
        beside = f"{beside_bare[label]:.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        speed = f"{1000 / statistics.median(a_page(label, 'wall')):.0f}"
        peak = max(one.peak for one in spent[label, many])
        rows.append((label, f"{statistics.median(cpu):.2f} ms", beside, speed, f"{peak:.0f} MB"))
    table(("a page, median", "processor", "beside bare (range)", "pages/s", "peak"), rows)
    for label, goal in GOALS.items():
        figure(f"{label}, beside bare Scrapy", beside_bare[label], at_most=goal)


if __name__ == "__main__":
    main()
