"""What one worker holds while it crawls many pages into four stores, with its requests in Redis.

usage: PYTHONPATH=. python tests/benchmarks/long_run.py [PAGES] [MINUTES]

PAGES (200,000 unless given) are light: what could pile up is one entry a page, whatever its size. Memory, open files and threads of
the worker are looked at every second, and their means over each tenth of the pages are printed, then the ratio of the last tenth to
the second, and what is left in Redis. After MINUTES (60 unless given) the crawl is ended as Ctrl-C does, and what was done by then is
reported. Takes half an hour on two quiet cores.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import boto3
import psycopg2
import redis

from moviecrawler.frontier.keys import Keys
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import environment
from tests.services.mongo import MongoServer
from tests.services.postgres import PostgresServer, new_database
from tests.services.redis import RedisServer
from tests.services.s3 import CREDENTIALS, S3Server

CONCURRENT = 32
TENTHS = 10


@dataclass(frozen=True)
class Sample:
    """What the worker held at one moment."""

    pages: int
    """That were done by then."""
    memory: float
    """MB, resident."""
    files: int
    threads: int


def sample(process: int, pages: int) -> Sample:
    """Look at a process."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    files = len(list(Path(f"/proc/{process}/fd").iterdir()))
    return Sample(pages, int(status["VmRSS"].split()[0]) / 1024, files, int(status["Threads"]))


def pages_done(client: redis.Redis) -> int:
    """Return how many requests of the crawl are over."""
    return int(client.hget(Keys("imdb", "default").state, "done") or 0)


def settings(folder: Path, redis: str, postgres: str, mongo: str, s3: str) -> dict[str, str]:
    """Return the environment of a crawl into four stores that nothing holds back."""
    bucket = f"b-{uuid.uuid4().hex}"
    with closing(boto3.session.Session().client("s3", endpoint_url=s3)) as client:
        client.create_bucket(Bucket=bucket)
    stores = {"DATABASE_URL": new_database(postgres), "MONGO_URL": f"{mongo}/movies", "S3_ENDPOINT_URL": s3}
    speed = {
        "CONCURRENT_REQUESTS": str(CONCURRENT),
        "DOWNLOAD_SLOTS": json.dumps({"127.0.0.1": {"delay": 0.0, "concurrency": CONCURRENT}}),
        "SITE_BUDGETS": "{}",
        "PROGRESS": "off",
        "LOG_LEVEL": "INFO",
        "DATA_DIR": str(folder / "data"),
    }
    return {**stores, "S3_BUCKET": bucket, **CREDENTIALS, "REDIS_URL": redis, **speed}


def main() -> None:
    """Crawl, and print what was seen."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    os.environ.update(CREDENTIALS)
    with (
        tempfile.TemporaryDirectory() as name,
        ReplicaProcess(titles=pages, light=True) as replica,
        RedisServer() as server,
        PostgresServer() as postgres,
        MongoServer() as mongo,
        S3Server() as s3,
    ):
        folder, catalogue = Path(name), Catalogue(1, pages)
        (folder / "ids").write_text("\n".join(catalogue.imdb_id(index) for index in range(pages)))
        given = settings(folder, server.url, postgres.url, mongo.url, s3.url)
        options = [part for key, value in given.items() for part in ("-s", f"{key}={value}") if key in SPEED]
        command = [sys.executable, "-m", "scrapy", "crawl", "imdb", "-a", f"file={folder / 'ids'}", *options]
        samples: list[Sample] = []
        began, is_in_time = time.monotonic(), True
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                command, env={**environment(folder, replica), **given}, cwd=folder, stderr=log, stdout=log
            )
            while process.poll() is None:
                time.sleep(1)
                if is_in_time and time.monotonic() - began > minutes * 60:
                    is_in_time = False
                    process.send_signal(signal.SIGINT)
                try:
                    samples.append(sample(process.pid, pages_done(server.client)))
                except (FileNotFoundError, KeyError):
                    break  # it has just ended
            code = process.wait()
        seconds = time.monotonic() - began
        if code and is_in_time:
            sys.exit(f"exit code {code}:\n{(folder / 'log').read_text()[-3000:]}")
        with closing(psycopg2.connect(given["DATABASE_URL"])) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM records")
            (stored,) = cursor.fetchone() or (0,)
        done = pages_done(server.client)
        print(f"{done:,} of {pages:,} pages in {seconds:,.0f} s; {stored:,} titles in Postgres")
        report(samples, done)
        held = server.client.info("memory")["used_memory_dataset"] / 1e6
        print(f"left in Redis: {server.client.dbsize()} keys, {held:.1f} MB")


SPEED = {"CONCURRENT_REQUESTS", "DOWNLOAD_SLOTS", "SITE_BUDGETS", "LOG_LEVEL"}
"""Settings that are given as options, as they are Scrapy's or not read from the environment."""


def report(samples: list[Sample], pages: int) -> None:
    """Print the means of each tenth, and how the last one compares with the second."""
    print(f"{'tenth':>6}{'memory':>12}{'files':>8}{'threads':>9}")
    memory = []
    for tenth in range(TENTHS):
        within = [one for one in samples if pages * tenth <= one.pages * TENTHS < pages * (tenth + 1)] or samples[-1:]
        memory.append(statistics.mean(one.memory for one in within))
        files, threads = max(one.files for one in within), max(one.threads for one in within)
        print(f"{tenth + 1:6}{memory[-1]:9.0f} MB{files:8}{threads:9}")
    print(f"last tenth to second: {memory[-1] / memory[1]:.2f} (at most 1.1)")


if __name__ == "__main__":
    main()
