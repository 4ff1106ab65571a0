"""How long the dashboard's pages take at full size, beside the plain queries that they do without.

usage: python -m tests.benchmarks.dashboard_pages [TITLES]

A real node, of a cluster of 50 whose others only send heartbeats, with 10,000 jobs in Redis, each a crawl of its own, 5,000 dead
letters, 1,000 refused items and TITLES (1,000,000) titles in Postgres, half of them with records and scores. Each page is asked
for 15 times, one after the other.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import redis

from moviecrawler.cluster.jobs import Job, Outcome
from moviecrawler.cluster.keys import Keys
from moviecrawler.cluster.state import NodeInfo, Process
from moviecrawler.database.connection import open_database
from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.rejected_items import record_of
from moviecrawler.frontier.keys import Keys as FrontierKeys
from moviecrawler.items import Movie, Site
from moviecrawler.monitors.alarm_store import open_alarm_store
from moviecrawler.monitors.places import Seen
from tests.benchmarks.harness import numbers, seconds
from tests.cluster.nodes import cluster
from tests.dashboard.filling import fill
from tests.services.postgres import PostgresServer, execute, new_database
from tests.services.redis import RedisServer
from tests.waiting import wait_for

NODES = 50
JOBS = 10_000
LETTERS, REFUSED = 5000, 1000
TIMES = 15
LIMIT = 300.0
"""Milliseconds that a page may take."""
PLAIN = {
    "status of the catalogue, counted anew": (
        "SELECT site, count(*) FILTER (WHERE next_due <= now()), count(*) FILTER (WHERE site_id IS NOT NULL)"
        " FROM title_sites GROUP BY site"
    ),
    "search by LIKE": "SELECT title FROM titles WHERE title ILIKE '%%harbor zebra%%' ORDER BY popularity DESC LIMIT 50",
}


def fill_cluster(url: str, client: redis.Redis, keys: Keys) -> None:
    """Put heartbeats and jobs into Redis, as nodes write them."""
    now = time.time()
    pipe = client.pipeline(transaction=False)
    for number in range(1, NODES):
        name = f"far{number:02}"
        processes = {f"moviecrawler/r{number}-{slot}": Process(1000 + slot, 130 * 2**20) for slot in range(4)}
        info = NodeInfo(
            id=f"{name}:x",
            name=name,
            url="",
            slots=6,
            started_at=now,
            draining=False,
            memory=2**26,
            processes=processes,
        )
        pipe.hset(keys.node_infos, info.id, msgspec.json.encode(info))
        pipe.zadd(keys.nodes, {info.id: (now + 3600) * 1000})
        for key in processes:
            job = Job(project="moviecrawler", spider="imdb", id=key.partition("/")[2])
            pipe.hset(keys.jobs, key, msgspec.json.encode(job))
            pipe.hset(keys.running, key, msgspec.json.encode({"node": info.id, "score": 0, "at": now * 1000}))
    for number in range(JOBS):
        job = Job(project="moviecrawler", spider="imdb", id=f"j{number}", arguments={"list": "top"}, version="absent")
        if number % 2:
            pipe.hset(keys.jobs, job.key, msgspec.json.encode(job))
            pipe.zadd(keys.pending, {f"{number:016}{job.key}": 0})
        else:
            told = Outcome(
                node="far01:x", started_at=now * 1000, ended_at=now * 1000 + number, reason="finished", items=3
            )
            pipe.zadd(keys.finished, {job.key: told.ended_at})
            pipe.hset(keys.results, job.key, msgspec.json.encode(told) + b"\n" + msgspec.json.encode(job))
    pipe.execute()
    book = open_alarm_store({"REDIS_URL": url})
    for site in ("imdb", "metacritic", "rottentomatoes"):
        for day in range(30):
            name = time.strftime("%Y-%m-%d", time.gmtime(now - 86_400 * day))
            book.learn(site, name, Seen(1000, Counter({f"field_{number}": 900 + number for number in range(25)})))
    book.close()


def fill_frontier(client: redis.Redis) -> None:
    """Put a crawl for each job into the Redis that crawls share: all but some are over. With what stores refused."""
    now = time.time()
    pipe = client.pipeline(transaction=False)
    for number in range(JOBS):
        site: Site = ("imdb", "metacritic", "rottentomatoes")[number % 3]
        run, at = FrontierKeys(site, f"j{number}"), round(1000 * (now - 100 * number - 7200))
        over = number % 100
        figures: dict[Any, Any] = {
            "born": "x",
            "started_at": at,
            "ended_at": at,
            "total": 25,
            "done": 25 if over else 20,
            "failed": 0,
        }
        pipe.hset(run.state, mapping=figures)
        pipe.hset(run.nodes, mapping={"far01 done": 20, "far02 done": 5})
        pipe.zadd(run.runs, {run.run: at})
        if not over:
            pipe.zadd(run.current, {run.run: at})
    letters = FrontierKeys("imdb", "j0").dead_letters
    for number in range(LETTERS):
        head = msgspec.json.encode({"reason": "it kills its workers", "at": 1000 * now})
        pipe.hset(letters, f"{number:032x}", head + b"\n" + b"20%032x" % number + b'[1,"https://www.imdb.com/"]' * 8)
    for number in range(REFUSED):
        site_id = f"tt{number:07}"
        url = f"https://www.imdb.com/title/{site_id}/"
        movie = Movie(site="imdb", site_id=site_id, url=url, title="A title", kind="movie", plot="Rain. " * 1000)
        item = record_of("postgres", "out of range", movie, run="default", node="far01", now=now)
        pipe.xadd(CrawlKeys.REJECTED, {"item": msgspec.json.encode(item)})
    pipe.execute()


def main() -> None:
    (titles,) = numbers(1_000_000, least=(1_000,))
    with RedisServer() as server, PostgresServer() as postgres, tempfile.TemporaryDirectory() as folder:
        database_url = new_database(postgres.url)
        open_database(database_url).close()
        (took,) = seconds(lambda: fill(database_url, titles))
        print(f"{titles:,} titles filled in within {took:.0f} s")
        options = {"REDIS_URL": server.url, "DATABASE_URL": database_url, "SCRAPYD_FINISHED_TO_KEEP": "20000"}
        with cluster(Path(folder), server.url, 1, **options, SCRAPYD_MAX_PROC="1") as running:
            [node] = running.nodes
            fill_cluster(server.url, server.client, Keys("test"))
            fill_frontier(server.client)
            wait_for(lambda: server.client.get("{test}:dashboard:counts"), 120, lambda: node.log)
            counted = msgspec.json.decode(server.client.get("{test}:dashboard:counts") or b"")
            print(f"The catalogue is counted within {counted['took']:.2f} s, by one node at a time\n")
            slowest = 0.0
            searches = ("the", "harbor", "silent harbor", "tt0500000", "zzz", "a", "lost kingdom of", "7")
            for path in (
                *("", "crawls", "crawls?pending=100&finished=100", "crawls/moviecrawler/j0", "crawls/moviecrawler/j1"),
                *(f"crawls?before={round(1000 * time.time() - 3e8)}", "metrics", "nodes", "stores"),
                *("stores?letters=imdb/j0/1", "quality", "quality?after=2_100_metacritic_", "titles"),
                "titles?after=20_400000",
                *("titles/1", f"titles/{titles // 2}", *(f"titles?q={quote(text)}" for text in searches)),
                "titles?q=the&page=20",
            ):
                assert (answer := node.get(path)).code == 200, (path, answer.text)
                times = [1000 * taken for taken in seconds(lambda path=path: node.get(path), TIMES)]  # type: ignore[misc]
                slowest = max(slowest, statistics.median(times))
                print(f"/{path:36} median {statistics.median(times):6.1f} ms, slowest {max(times):6.1f} ms")
            print(f"\nslowest median: {slowest:.0f} ms of {LIMIT:.0f}\n")
            (took,) = seconds(lambda: node.get("progress.json"))
            runs = len(node.get("progress.json").json["runs"])
            print(f"without the list of current crawls: all {runs:,} crawls are read within {1000 * took:,.0f} ms")
        for name, query in PLAIN.items():
            (took,) = seconds(lambda query=query: execute(database_url, query))  # type: ignore[misc]
            print(f"without counters and indexes: {name}: {1000 * took:,.0f} ms")
        assert slowest < LIMIT


if __name__ == "__main__":
    main()
