"""What a page costs with all four stores and the shared frontier, beside a bare Scrapy spider that reads nothing, and beside what is usually written.

usage: PYTHONPATH=. python tests/benchmarks/stores_speed.py [PAGES] [ROUNDS] [--light] [--only WORD,…]

The replica serves IMDb title pages of realistic size (1.3 MB), or of 10 kB with `--light`; PostgreSQL, a Mongo-protocol server, an S3 endpoint
and Redis run beside it. Each crawl runs in a process of its own with 64 requests at a time, and the operating system counts its processor time
and its memory. Start-up is taken out of the processor time by crawling few and many pages and dividing the difference. The crawls take turns,
and each round gives a ratio, of which the median counts. `--only` names the crawls, by a word of their labels; the bare one always runs.

What is usually written: CSS selectors on the page, and pipelines that write one item at a time to each store from the event loop. scrapy-redis
runs with this project's spider, readers and pipelines. Two workers share one frontier and its pages: what a page costs them both, beside what
one worker alone takes, says what the second core is worth when nothing else uses it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import boto3

from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.services.mongo import MongoServer
from tests.services.postgres import PostgresServer, new_database
from tests.services.redis import RedisServer
from tests.services.s3 import CREDENTIALS, S3Server

FEW = 20
CONCURRENT = 64
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
USUAL = """
import csv, json, os
import boto3, psycopg2, pymongo, scrapy

class Csv:
    def open_spider(self):
        self.file = open("movies.csv", "w", newline="")
        self.writer = csv.writer(self.file)
    def process_item(self, item):
        self.writer.writerow(item.values())
        return item

class Postgres:
    def open_spider(self):
        self.connection = psycopg2.connect(os.environ["DATABASE_URL"])
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS movies (id text PRIMARY KEY, item jsonb)")
    def process_item(self, item):
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO movies VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET item = excluded.item",
                (item["id"], json.dumps(item)),
            )
        return item

class Mongo:
    def open_spider(self):
        self.movies = pymongo.MongoClient(os.environ["MONGO_URL"]).get_default_database().movies
    def process_item(self, item):
        self.movies.replace_one({"_id": item["id"]}, {**item, "_id": item["id"]}, upsert=True)
        return item

class S3:
    def open_spider(self):
        self.s3 = boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT_URL"], region_name="us-east-1")
    def process_item(self, item):
        self.s3.put_object(Bucket=os.environ["S3_BUCKET"], Key=f"{item['id']}.json", Body=json.dumps(item).encode())
        return item

class Usual(scrapy.Spider):
    name = "usual"
    custom_settings = {"ITEM_PIPELINES": {Csv: 1, Postgres: 2, Mongo: 3, S3: 4}}
    async def start(self):
        for line in open(self.file):
            yield scrapy.Request(f"{self.home}/title/{line.strip()}/", cb_kwargs={"id": line.strip()})
    def parse(self, response, id):
        data = json.loads(response.css("script#__NEXT_DATA__::text").get())["props"]["pageProps"]
        linked = json.loads(response.css('script[type="application/ld+json"]::text').get())
        yield {
            "id": id,
            "title": response.css("title::text").get(),
            "canonical": response.css("link[rel=canonical]::attr(href)").get(),
            "image": response.css('meta[property="og:image"]::attr(content)').get(),
            "rating": data["aboveTheFoldData"]["ratingsSummary"]["aggregateRating"],
            "cast": [edge["node"]["name"]["nameText"]["text"] for edge in data["mainColumnData"]["cast"]["edges"]],
            "linked": linked,
        }
"""


_SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SPIDER_MIDDLEWARES": "{}",
    "REDIS_PARAMS": "{}",  # which it can't read when it is empty
}
ALL_STORES = frozenset({"postgres", "mongo", "s3", "redis"})


@dataclass(frozen=True)
class Spent:
    """What a crawl cost."""

    cpu: float
    """Seconds, user and system."""
    wall: float
    """Seconds."""
    peak: float
    """MB."""


@dataclass(frozen=True)
class Command:
    """A command of Scrapy's, to be run in a folder."""

    arguments: list[str]
    folder: Path
    environment: dict[str, str]

    def run(self, before: Sequence[str] = (sys.executable, "-m", "scrapy")) -> Spent:
        """Run it; `before` is what stands for `scrapy`."""
        return run_together([self], before)


def run_together(commands: list[Command], before: Sequence[str] = (sys.executable, "-m", "scrapy")) -> Spent:
    """Run commands at the same time, and return what all of them cost: the peak is that of the largest process."""
    started = time.monotonic()
    with ExitStack() as stack:
        errors = [stack.enter_context(tempfile.TemporaryFile()) for _ in commands]
        processes = [
            subprocess.Popen([*before, *one.arguments], cwd=one.folder, env=one.environment, stderr=file)
            for one, file in zip(commands, errors, strict=True)
        ]
        cpu = peak = 0.0
        for one, process, file in zip(commands, processes, errors, strict=True):
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                peak = max(peak, peak_memory(process.pid))
                time.sleep(0.1)
            _, status, usage = ended
            process.returncode = os.waitstatus_to_exitcode(status)
            file.seek(0)
            said = file.read().decode()
            if process.returncode or "Traceback" in said:
                sys.exit(f"scrapy {' '.join(one.arguments)} failed: {said}")
            cpu += usage.ru_utime + usage.ru_stime
    return Spent(cpu, time.monotonic() - started, peak)


def peak_memory(process: int) -> float:
    """Return the most that a process has held, in MB. What `wait4` says of it includes what its parent held when it was started."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(status.get("VmHWM", "0").split()[0]) / 1024  # none when it has just ended


def options(settings: Mapping[str, object]) -> list[str]:
    """Return command line options."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


class Bench:
    """The replica and the servers, while the `with` block runs, and commands that crawl so many of the replica's titles."""

    def __init__(self, folder: Path, titles: int, *, light: bool = False) -> None:
        self.folder = folder
        self._ids = [Catalogue(1, titles).imdb_id(index) for index in range(titles)]
        self._replica = ReplicaProcess(titles=titles, light=light)
        self._postgres, self._mongo, self._s3, self.redis = PostgresServer(), MongoServer(), S3Server(), RedisServer()
        self._servers = ExitStack()

    def __enter__(self) -> Self:
        os.environ.update(CREDENTIALS)
        for server in (self._replica, self._postgres, self._mongo, self._s3, self.redis):
            self._servers.enter_context(server)
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    @property
    def _home(self) -> str:
        return self._replica.settings["IMDB_URL"]

    def _file(self, pages: int) -> Path:
        file = self.folder / f"ids-{pages}"
        file.write_text("\n".join(self._ids[:pages]))
        return file

    def _services(self) -> dict[str, str]:
        """Return the settings of stores that hold nothing yet; Redis is emptied."""
        mark = uuid.uuid4().hex
        with closing(boto3.session.Session().client("s3", endpoint_url=self._s3.url)) as client:
            client.create_bucket(Bucket=f"b-{mark}")
        self.redis.client.flushall()
        return {
            "DATABASE_URL": new_database(self._postgres.url),
            "MONGO_URL": f"{self._mongo.url}/b_{mark}",
            "S3_ENDPOINT_URL": self._s3.url,
            "S3_BUCKET": f"b-{mark}",
            **CREDENTIALS,
        }

    def _other(self, program: str, pages: int, services: dict[str, str]) -> Command:
        """Return a spider of a single file with Scrapy's own settings, but for how many requests go out at a time."""
        file = self.folder / "spider.py"
        file.write_text(program)
        environment = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"} | services
        concurrency = options(
            {
                "CONCURRENT_REQUESTS": CONCURRENT,
                "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENT,
                "LOG_LEVEL": "WARNING",
            }
        )
        arguments = ["-a", f"file={self._file(pages)}", "-a", f"home={self._home}", *concurrency]
        return Command(["runspider", str(file), *arguments], self.folder, environment)

    def bare(self, pages: int) -> Command:
        """Return a spider that reads nothing."""
        return self._other(BARE, pages, {})

    def usual(self, pages: int) -> Command:
        """Return a spider and pipelines as they are usually written."""
        return self._other(USUAL, pages, self._services())

    def ours(
        self, pages: int, stores: frozenset[str] = ALL_STORES, settings: Mapping[str, str] | None = None
    ) -> Command:
        """Return this project's spider with CSV files and the other stores named; `redis` is the shared frontier."""
        names = {"postgres": ("DATABASE_URL",), "mongo": ("MONGO_URL",), "s3": ("S3_ENDPOINT_URL", "S3_BUCKET")}
        services = self._services()
        given = {name: services[name] for store in stores & names.keys() for name in names[store]}
        if "redis" in stores:
            given["REDIS_URL"] = self.redis.url
        environment = {**os.environ, **CREDENTIALS, **given, "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings"}
        data = tempfile.mkdtemp(dir=self.folder)
        environment |= {"IMDB_URL": self._home, "DATA_DIR": data, "LOG_LEVEL": "WARNING", "PROGRESS": "off"}
        unhindered = {
            "CONCURRENT_REQUESTS": CONCURRENT,
            "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENT,  # so many connections are kept open, too
            "DOWNLOAD_SLOTS": json.dumps({"127.0.0.1": {"delay": 0, "concurrency": CONCURRENT}}),
            "SITE_BUDGETS": json.dumps({"127.0.0.1": {"per_day": 1_000_000}}),
        }
        arguments = ["-a", f"file={self._file(pages)}", *options(unhindered | dict(settings or {}))]
        return Command(["crawl", "imdb", *arguments], self.folder, environment)

    def two_workers(self, pages: int) -> list[Command]:
        """Return two workers of one crawl."""
        one = self.ours(pages)
        return [one, replace(one, environment=one.environment | {"DATA_DIR": tempfile.mkdtemp(dir=self.folder)})]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", type=int, nargs="?", default=400)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    many, rounds = given.pages, given.rounds
    without = ALL_STORES - {"redis"}
    with tempfile.TemporaryDirectory() as name, Bench(Path(name), many, light=given.light) as bench:
        crawls: dict[str, Callable[[int], Spent]] = {
            "bare Scrapy, reads nothing": lambda pages: bench.bare(pages).run(),
            "ours, CSV files": lambda pages: bench.ours(pages, frozenset()).run(),
            "ours, four stores": lambda pages: bench.ours(pages, without).run(),
            "ours, four stores and frontier": lambda pages: bench.ours(pages).run(),
            "ours, the same by two workers": lambda pages: run_together(bench.two_workers(pages)),
            "scrapy-redis, same pipelines": lambda pages: bench.ours(pages, settings=_SCRAPY_REDIS).run(),
            "selectors, a write an item": lambda pages: bench.usual(pages).run(),
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
    print(f"\n{'a page, median':32}{'processor':>12}{'beside bare (range)':>24}{'pages/s':>10}{'peak':>9}")
    for label in chosen:
        ratios = [own / base for own, base in zip(cpu[label], cpu[bare], strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        rate = 1000 / statistics.median(wall[label])
        print(f"{label:32}{statistics.median(cpu[label]):9.2f} ms{spread:>24}{rate:10.0f}{peak[label]:6.0f} MB")


if __name__ == "__main__":
    main()
