"""What a page costs with all four stores and the shared frontier, beside a bare Scrapy spider that reads nothing.

usage: python -m tests.benchmarks.stores_speed [PAGES] [ROUNDS] [--light] [--only WORD,…]

The replica serves IMDb title pages of realistic size (1.3 MB), or of 10 kB with `--light`; PostgreSQL, a Mongo-protocol server, an S3 endpoint
and Redis run beside it. Each crawl runs in a process of its own with 64 requests at a time, and the operating system counts its processor time
and its memory. Start-up is taken out of the processor time by crawling few and many pages and dividing the difference. The crawls take turns,
and each round gives a ratio, of which the median counts. `--only` names the crawls, by a word of their labels; the bare one always runs.

scrapy-redis runs with this project's spider, readers and pipelines. Two workers share one frontier and its pages: what a page costs them both,
beside what one worker alone takes, says what the second core is worth when nothing else uses it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Self

import boto3

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.benchmarks.harness import SCRAPY_REDIS, Command, Spent, options, run_together, table
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
    "SITE_BUDGETS": json.dumps({"127.0.0.1": {"per_day": 1_000_000}}),
}
"""Nothing holds a crawl of the replica back."""
ALL_STORES = frozenset({"DATABASE_URL", "MONGO_URL", "S3_BUCKET", "REDIS_URL"})


class Bench:
    """The replica and the servers, while the `with` block runs, and commands that crawl so many of the replica's titles."""

    def __init__(self, folder: Path, titles: int, *, light: bool = False) -> None:
        self.folder = folder
        self._ids = Collection(1, titles).imdb_ids
        self._replica = ReplicaProcess(titles=titles, light=light)
        self._postgres, self._mongo, self._s3, self._redis = PostgresServer(), MongoServer(), S3Server(), RedisServer()
        self._running = ExitStack()

    def __enter__(self) -> Self:
        os.environ.update(CREDENTIALS)
        for server in (self._replica, self._postgres, self._mongo, self._s3, self._redis):
            self._running.enter_context(server)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _file(self, pages: int) -> str:
        file = self.folder / f"ids-{pages}"
        file.write_text("\n".join(self._ids[:pages]))
        return f"file={file}"

    def bare(self, pages: int) -> Command:
        """Return a spider that reads nothing, with Scrapy's own settings but for how many requests go out at a time."""
        file = self.folder / "spider.py"
        file.write_text(BARE)
        environment = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"}
        arguments = ["-a", self._file(pages), "-a", f"home={self._replica.urls['imdb']}"]
        return Command(["runspider", str(file), *arguments, *options(BARE_SETTINGS)], self.folder, environment)

    def ours(
        self, pages: int, stores: frozenset[str] = ALL_STORES, settings: Mapping[str, str] | None = None
    ) -> Command:
        """Return this project's spider with CSV files and the other stores named, which hold nothing yet."""
        mark = uuid.uuid4().hex
        with closing(boto3.session.Session().client("s3", endpoint_url=self._s3.url)) as client:
            client.create_bucket(Bucket=f"b-{mark}")
        self._redis.client.flushall()
        services = {
            "DATABASE_URL": new_database(self._postgres.url),
            "MONGO_URL": f"{self._mongo.url}/b_{mark}",
            "S3_BUCKET": f"b-{mark}",
            "REDIS_URL": self._redis.url,
        }
        environment = {
            **os.environ,
            **CREDENTIALS,
            "S3_ENDPOINT_URL": self._s3.url,
            **{name: url for name, url in services.items() if name in stores},
            "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings",
            "IMDB_URL": self._replica.urls["imdb"],
            "DATA_DIR": tempfile.mkdtemp(dir=self.folder),
        }
        given = options(SETTINGS | dict(settings or {}))
        return Command(["crawl", "imdb", "-a", self._file(pages), *given], self.folder, environment)

    def two_workers(self, pages: int) -> list[Command]:
        """Return two workers of one crawl."""
        one = self.ours(pages)
        return [one, replace(one, environment={**one.environment, "DATA_DIR": tempfile.mkdtemp(dir=self.folder)})]


def spread(values: Sequence[float], bases: Sequence[float]) -> str:
    """Return the ratios of values to those of a baseline, round by round: their median, with the range."""
    ratios = [value / base for value, base in zip(values, bases, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", type=int, nargs="?", default=400)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if given.pages <= FEW:
        parser.error(f"PAGES is {given.pages}; give more than {FEW}, which are crawled beside them")
    many, rounds = given.pages, given.rounds
    without = ALL_STORES - {"REDIS_URL"}
    with tempfile.TemporaryDirectory() as name, Bench(Path(name), many, light=given.light) as bench:
        crawls: dict[str, Callable[[int], Spent]] = {
            "bare Scrapy, reads nothing": lambda pages: bench.bare(pages).run(),
            "ours, CSV files": lambda pages: bench.ours(pages, frozenset()).run(),
            "ours, four stores": lambda pages: bench.ours(pages, without).run(),
            "ours, four stores and frontier": lambda pages: bench.ours(pages).run(),
            "ours, the same by two workers": lambda pages: run_together(bench.two_workers(pages)),
            "scrapy-redis, same pipelines": lambda pages: bench.ours(pages, settings=SCRAPY_REDIS).run(),
        }
        bare = next(iter(crawls))
        words = given.only.split(",")
        chosen = {
            label: crawl for label, crawl in crawls.items() if label == bare or any(word in label for word in words)
        }
        cpu: dict[str, list[float]] = {label: [] for label in chosen}
        wall: dict[str, list[float]] = {label: [] for label in chosen}
        peak: dict[str, float] = dict.fromkeys(chosen, 0.0)
        for number in range(rounds):
            for label, crawl in chosen.items():
                first, whole = crawl(FEW), crawl(many)
                cpu[label].append((whole.cpu - first.cpu) / (many - FEW) * 1000)
                wall[label].append((whole.wall - first.wall) / (many - FEW) * 1000)
                peak[label] = max(peak[label], whole.peak)
            print(f"round {number + 1} of {rounds} is done", flush=True)
    rows = [
        (
            *(label, f"{statistics.median(cpu[label]):.2f} ms", spread(cpu[label], cpu[bare])),
            *(f"{1000 / statistics.median(wall[label]):.0f}", f"{peak[label]:.0f} MB"),
        )
        for label in chosen
    ]
    table(("a page, median", "processor", "beside bare (range)", "pages/s", "peak"), rows)


if __name__ == "__main__":
    main()
