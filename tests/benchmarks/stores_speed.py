"""A crawl with all four stores, beside a bare Scrapy spider that reads nothing, and beside what is usually written.

usage: PYTHONPATH=. python tests/benchmarks/stores_speed.py [PAGES] [ROUNDS]

The replica serves IMDb title pages of realistic size; PostgreSQL, a Mongo-protocol server and an S3 endpoint run beside it.
Each crawl runs in a process of its own with 64 requests at a time, and the operating system counts its CPU time and its
memory. What is usually written: CSS selectors on the page, and pipelines that write one item at a time to each store from
the event loop. Start-up is taken out of the CPU time by crawling few and many pages and dividing the difference.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import boto3

from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.services.mongo import MongoServer
from tests.services.postgres import PostgresServer, new_database
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


@dataclass(frozen=True)
class Spent:
    """What a crawl cost."""

    cpu: float
    wall: float
    peak: float
    """MB."""


def run(command: list[str], folder: Path, environment: dict[str, str]) -> Spent:
    """Run a command in a folder."""
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or "Traceback" in errors:
        sys.exit(f"{command} failed: {errors}")
    return Spent(usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1024)


def options(**settings: object) -> list[str]:
    """Return command line options."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def other(folder: Path, program: str, ids: Path, home: str, services: dict[str, str]) -> Spent:
    """Run a spider of a single file with Scrapy's own settings, but for how many requests go out at a time."""
    file = folder / "spider.py"
    file.write_text(program)
    environment = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"} | services
    concurrency = options(
        CONCURRENT_REQUESTS=CONCURRENT, CONCURRENT_REQUESTS_PER_DOMAIN=CONCURRENT, LOG_LEVEL="WARNING"
    )
    arguments = ["-a", f"file={ids}", "-a", f"home={home}", *concurrency]
    return run([sys.executable, "-m", "scrapy", "runspider", str(file), *arguments], folder, environment)


def ours(folder: Path, ids: Path, home: str, services: dict[str, str]) -> Spent:
    """Crawl with all stores."""
    data = tempfile.mkdtemp(dir=folder)
    environment = {**os.environ, **services, "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings"}
    environment |= {"IMDB_URL": home, "DATA_DIR": data, "LOG_LEVEL": "WARNING", "PROGRESS": "off"}
    slots = json.dumps({"127.0.0.1": {"delay": 0, "concurrency": CONCURRENT}})
    concurrency = options(CONCURRENT_REQUESTS=CONCURRENT, DOWNLOAD_SLOTS=slots)
    return run(
        [sys.executable, "-m", "scrapy", "crawl", "imdb", "-a", f"file={ids}", *concurrency], folder, environment
    )


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    os.environ.update(CREDENTIALS)
    with (
        tempfile.TemporaryDirectory() as name,
        ReplicaProcess(titles=many) as replica,
        PostgresServer() as postgres,
        MongoServer() as mongo,
        S3Server() as s3,
    ):
        folder, catalogue, home = Path(name), Catalogue(1, many), replica.settings["IMDB_URL"]
        titles = [catalogue.imdb_id(index) for index in range(many)]
        few, all_ = folder / "few", folder / "all"
        few.write_text("\n".join(titles[:FEW]))
        all_.write_text("\n".join(titles))

        def services() -> dict[str, str]:
            mark = uuid.uuid4().hex
            with closing(boto3.session.Session().client("s3", endpoint_url=s3.url)) as client:
                client.create_bucket(Bucket=f"b-{mark}")
            stores = {"DATABASE_URL": new_database(postgres.url), "MONGO_URL": f"{mongo.url}/b_{mark}"}
            return {**stores, "S3_ENDPOINT_URL": s3.url, "S3_BUCKET": f"b-{mark}", **CREDENTIALS}

        crawls: dict[str, Callable[[Path], Spent]] = {
            "bare Scrapy, reads nothing": lambda ids: other(folder, BARE, ids, home, {}),
            "moviecrawler, four stores": lambda ids: ours(folder, ids, home, services()),
            "selectors, a write an item": lambda ids: other(folder, USUAL, ids, home, services()),
        }
        cpu: dict[str, list[float]] = {label: [] for label in crawls}
        wall: dict[str, list[float]] = {label: [] for label in crawls}
        peak: dict[str, float] = dict.fromkeys(crawls, 0.0)
        for number in range(rounds):
            for label, crawl in crawls.items():
                first, whole = crawl(few), crawl(all_)
                cpu[label].append((whole.cpu - first.cpu) / (many - FEW) * 1000)
                wall[label].append((whole.wall - first.wall) / (many - FEW) * 1000)
                peak[label] = max(peak[label], whole.peak)
            print(f"round {number + 1} of {rounds} is done", flush=True)
    bare = next(iter(crawls))
    print(f"\n{'a page, median':28} {'CPU':>9} {'to bare':>8} {'pages/s':>8} {'peak':>8}")
    for label in crawls:
        ratio = statistics.median(own / base for own, base in zip(cpu[label], cpu[bare], strict=True))
        rate = 1000 / statistics.median(wall[label])
        print(f"{label:28} {statistics.median(cpu[label]):6.2f} ms {ratio:8.2f} {rate:8.0f} {peak[label]:5.0f} MB")


if __name__ == "__main__":
    main()
