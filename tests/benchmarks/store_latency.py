"""How long a crawl takes whose pages and stores all answer late.

usage: python -m tests.benchmarks.store_latency [PAGES]

One process crawls small pages (2,100 unless given) of a replica that answers after 100 ms, 64 at a time: once into CSV files
alone, once into MongoDB and S3 as well, which answer after 20 ms. Each store is then asked whether it has them all.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from moviecrawler.replica.process import ReplicaProcess
from tests.benchmarks.harness import numbers, options, unhindered, write_ids
from tests.crawling import scrapy
from tests.services.mongo import MongoServer, mongo_movies
from tests.services.proxy import Proxy
from tests.services.s3 import CREDENTIALS, S3Server, s3_client, s3_movies

PAGE_LATENCY = 100  # milliseconds
STORE_LATENCY = 0.02  # seconds
CONCURRENT = 64
BUCKET = "benchmark"
TARGET = 15.0


def crawl(ids: Path, replica: ReplicaProcess, **stores: str) -> float:
    """Return the seconds of a crawl of all titles."""
    data = Path(tempfile.mkdtemp(dir=ids.parent))
    started = time.perf_counter()
    ended = scrapy(
        "crawl", "imdb", "-a", f"file={ids}", *options(unhindered(CONCURRENT)), data=data, replica=replica, **stores
    )
    if ended.code:
        sys.exit(ended.log)
    return time.perf_counter() - started


def main() -> None:
    """Print how long each crawl took."""
    (pages,) = numbers(2_100, least=(100,))
    os.environ.update(CREDENTIALS)
    with (
        tempfile.TemporaryDirectory() as name,
        ReplicaProcess(titles=pages, light=True, latency=PAGE_LATENCY) as replica,
        S3Server() as s3,
        MongoServer() as mongo,
        Proxy("127.0.0.1", urlsplit(mongo.url).port or 0) as slow_mongo,
    ):
        s3_client(s3.url).create_bucket(Bucket=BUCKET)
        ids = write_ids(Path(name), pages)
        alone = crawl(ids, replica)
        slow_mongo.latency = s3.latency = STORE_LATENCY
        both = crawl(
            ids,
            replica,
            MONGO_URL=f"mongodb://{slow_mongo.address}/benchmark?directConnection=true",
            S3_BUCKET=BUCKET,
            S3_ENDPOINT_URL=s3.url,
            **CREDENTIALS,
        )
        slow_mongo.latency = s3.latency = 0
        stored = len(mongo_movies(f"{mongo.url}/benchmark")), len(s3_movies(s3.url, BUCKET))
    print(f"{pages:,} pages after {PAGE_LATENCY} ms each, {CONCURRENT} at a time, one process\n")
    print(f"{'into CSV files':44} {alone:7.2f} s")
    print(f"{'and MongoDB and S3, each answer after 20 ms':44} {both:7.2f} s   (at most {TARGET:.0f} s)")
    print(f"{'ratio':44} {both / alone:7.2f}")
    print(f"{'titles in MongoDB, in S3':44} {stored[0]:,}, {stored[1]:,}")


if __name__ == "__main__":
    main()
