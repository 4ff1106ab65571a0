"""How crawls end: the exit code, the five lines, and what is stored.

Each row of the table is a crawl that meets something. In an expected line, "…" is anything.
"""

import gzip
import json
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Collection
from contextlib import ExitStack, closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.items import Site as SiteName
from moviecrawler.pipelines.warc import read_record, read_records, write_record
from moviecrawler.replica.process import ReplicaProcess
from tests.accounts import Summary, check_crawl
from tests.crawling import FAST, Finished, change, counts, crawl, crawl_command, environment, scrapy
from tests.dataset_files import put
from tests.due_crawls import Due
from tests.limited import IMPATIENT
from tests.processes import Process, start
from tests.scripted_site import Site, Told
from tests.services.redis import RedisServer
from tests.services.replica import COLLECTION, IDS
from tests.services.s3 import CREDENTIALS, objects
from tests.shared import PROJECT
from tests.waiting import wait_for

SOON = {"FRONTIER_PATIENCE": "3"}
"""Settings with which nobody waits long for what is away."""
AWAY = "http://127.0.0.1:1"
"""A server that is not there."""
METACRITIC = [site_id for site_id in COLLECTION.ids["metacritic"].values() if "movie/" in site_id]
LONGEST = 60.0
"""Seconds that a crawl may take."""


def ids(count: int, first: int = 0) -> str:
    """Return the argument that names so many titles of the replica's IMDb."""
    return f"ids={','.join(IDS[first : first + count])}"


def page(number: int) -> str:
    """Return the path of a title's page."""
    return f"/title/{IDS[number]}/"


class Stage:
    """What a crawl meets: a replica of the sites, services, and a folder of its own."""

    def __init__(self, request: pytest.FixtureRequest, queue: str) -> None:
        self.replica: ReplicaProcess = request.getfixturevalue("replica")
        self.data: Path = request.getfixturevalue("tmp_path")
        self.request = request
        self.closing = ExitStack()
        self._queue: dict[str, str] = {}
        if queue == "redis":
            self._queue["REDIS_URL"] = request.getfixturevalue("redis_url")

    def crawl(self, *arguments: str, site: SiteName = "imdb", **settings: str) -> Finished:
        """Crawl the replica, or the hosts that settings name."""
        given = {**SOON, **self._queue, **settings}
        return crawl(site, *arguments, data=self.data, replica=self.replica, **given)

    def scrapy(self, *arguments: str, **settings: str) -> Finished:
        """Run another command, on the same queue."""
        given = {**self._queue, **settings}
        data = Path(given.pop("DATA_DIR", self.data))
        return scrapy(*arguments, data=data, replica=self.replica, **given)

    def started(self, *arguments: str, **settings: str) -> Process:
        """Start a crawl of IMDb, whose log is the file `log`."""
        command = crawl_command("imdb", *arguments, **{**SOON, **self._queue, **settings})
        env = environment(self.data, self.replica)
        with (self.data / "log").open("wb") as log:
            process = start(command, env=env, cwd=self.data, stderr=log)
        self.closing.callback(process.kill)
        return process

    def ended(self, process: Process) -> Finished:
        """Wait until a crawl that was started has ended."""
        code = process.wait(LONGEST)
        finished = Finished(code, "", (self.data / "log").read_text(), self.data)
        queue = {"DATA_DIR": str(self.data), **self._queue}
        check_crawl(["crawl", "imdb"], queue, finished.log, code)
        return finished


Play = Callable[[Stage], Finished]


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A crawl, and how it must end."""

    play: Play
    code: int
    titles: str
    """The first line between the site's name and its last part."""
    next: str
    reason: str = "finished"
    stores: str = "…"
    stored: Collection[str] = ()
    """The ids that are stored; "…" where that depends on the moment."""
    queues: tuple[str, ...] = ("sqlite",)
    is_long: bool = False
    has_traceback: bool = False
    """Whether the log shows where our own code, or a plugin, is at fault."""


BOTH = ("sqlite", "redis")


# --- What crawls meet -----------------------------------------------------------------------------


def meeting(
    *arguments: str, site: SiteName = "imdb", faults: dict[str, float] | None = None, **given: str
) -> Play:
    """Crawl while requests meet faults."""

    def play(stage: Stage) -> Finished:
        change(stage.replica, faults=faults or {})
        return stage.crawl(*arguments, site=site, **given)

    return play


def answered(
    answers: dict[str, Told],
    *arguments: str,
    site: SiteName = "imdb",
    setting: str = "",
    **given: str,
) -> Play:
    """Crawl while the site, or the host of a setting, has other answers for some paths."""

    def play(stage: Stage) -> Finished:
        with Site(stage.replica.urls[site]) as front:
            front.answers = answers
            host = {setting or f"{site.upper()}_URL": front.url}
            return stage.crawl(*arguments, site=site, **host, **given)

    return play


def twice(first: Play, second: Play) -> Play:
    """Crawl once more in the same folder."""

    def play(stage: Stage) -> Finished:
        first(stage)
        return second(stage)

    return play


FULL = b"<html><body>" + b"<p>a page of something else</p>" * 200 + b"</body></html>"
DENIED = Told(403, b"<html><title>Access Denied</title></html>")
FORBIDDING = Told(200, b"User-agent: *\nDisallow: /title/\nDisallow: /movie/\n")
OPEN = Told(200, b"User-agent: *\nAllow: /\n")


def others_page(stage: Stage) -> Finished:
    """Crawl while the address of one title gives the page of another."""
    with urllib.request.urlopen(stage.replica.urls["imdb"] + page(1)) as answer:
        body = answer.read()
    return answered({page(0): Told(200, body)}, ids(2))(stage)


def a_list_in_two_parts(second: Told) -> Play:
    """Crawl a list whose first part names two titles."""

    def play(stage: Stage) -> Finished:
        with Site(stage.replica.urls["metacritic"]) as front:
            parts = [f"{front.url}/movies/{number}.xml" for number in (1, 2)]
            titles = [f"{front.url}/{site_id}/" for site_id in METACRITIC[:2]]
            front.answers = {
                "/movies.xml": Told(200, sitemap("sitemapindex", "sitemap", parts)),
                "/movies/1.xml": Told(200, sitemap("urlset", "url", titles)),
                "/movies/2.xml": second,
            }
            return stage.crawl(
                "list=sitemap", site="metacritic", METACRITIC_URL=front.url, RETRY_TIMES="0"
            )

    return play


def sitemap(root: str, element: str, urls: list[str]) -> bytes:
    rows = "".join(f"<{element}><loc>{url}</loc></{element}>" for url in urls)
    return f"<{root}>{rows}</{root}>".encode()


def told_to_end(number: int) -> Play:
    """Send a signal to a crawl in its middle."""

    def play(stage: Stage) -> Finished:
        change(stage.replica, latency=300)
        process = stage.started(ids(6), CONCURRENT_REQUESTS="1")
        wait_for(lambda: counts(stage.replica)["requests"] >= 2)
        process.send_signal(number)
        return stage.ended(process)

    return play


def killed(stage: Stage) -> Finished:
    change(stage.replica, latency=200)
    process = stage.started(ids(4), CONCURRENT_REQUESTS="1", FRONTIER_LEASE="1")
    wait_for(lambda: counts(stage.replica)["requests"] >= 2)
    process.kill()
    process.wait(LONGEST)
    change(stage.replica, latency=0)
    return stage.crawl(ids(4))


BROKEN = """
class Pipeline:
    def process_item(self, item):
        raise RuntimeError("it is broken")
"""
PIPELINES = json.dumps({"broken.Pipeline": 50})


def with_a_broken_pipeline(stage: Stage) -> Finished:
    (stage.data / "broken.py").write_text(BROKEN)
    return stage.crawl(ids(2), ITEM_PIPELINES=PIPELINES)


def requeued(stage: Stage) -> Finished:
    with_a_broken_pipeline(stage)
    assert stage.scrapy("deadletters", "requeue", "--all").code == 0
    return stage.crawl(ids(2))


def seeded(stage: Stage) -> Finished:
    stage.request.getfixturevalue("redis_client").rpush("imdb:start_urls", "rubbish")
    return stage.crawl(ids(1))


def after_another_worker_failed(stage: Stage) -> Finished:
    change(stage.replica, faults={"500": 1})
    first = stage.crawl(ids(3), FRONTIER_MAX_PAGES="1", RETRY_TIMES="0", CONCURRENT_REQUESTS="1")
    assert first.code == 1, first.log
    change(stage.replica, faults={})
    return stage.crawl(ids(3))


# --- Stores ---------------------------------------------------------------------------------------


def with_a_locked_database(stage: Stage) -> Finished:
    """Crawl while somebody else writes to the database."""
    stage.crawl(ids(1))
    with closing(sqlite3.connect(stage.data / "movies.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        return stage.crawl(
            ids(2), ITEM_PIPELINES=IMPATIENT, FRONTIER_PATIENCE="0.5", FRESHNESS_MARGIN="0"
        )


def with_a_store_that_refuses(stage: Stage, title: int = 1) -> Finished:
    """Crawl while the database refuses one title."""
    stage.crawl(ids(1))
    with closing(sqlite3.connect(stage.data / "movies.sqlite3")) as database, database:
        database.execute(
            f"CREATE TRIGGER refuses BEFORE INSERT ON records WHEN new.site_id = '{IDS[title]}'"
            " BEGIN SELECT raise(ABORT, 'it is refused'); END"
        )
    return stage.crawl(ids(3))


def with_nowhere_to_write_what_is_rejected(stage: Stage) -> Finished:
    (stage.data / "rejected.jsonl").mkdir()
    return with_a_store_that_refuses(stage)


def with_s3_away(stage: Stage) -> Finished:
    command = crawl_command("imdb", ids(2), S3_BUCKET="films", S3_ENDPOINT_URL=AWAY)
    return stage.scrapy(*command, **CREDENTIALS)


# --- IMDb's datasets ------------------------------------------------------------------------------

KETTLE = r"tt0900001|movie|The Kettle|\N|1999|\N|118|Comedy"
DAMAGED = r"tt0900002|movie|The Lid|\N|in May|\N|90|Drama"
UNTITLED = r"tt0900003|movie|\N|\N|2024|\N|90|Drama"
RATINGS = [f"tt090000{number}|8.{number}|30000" for number in (1, 2, 3)]


def of_datasets(rows: list[str], *arguments: str, **answers: Told) -> Play:
    """Crawl datasets that hold these rows, or give other answers than the files."""

    def play(stage: Stage) -> Finished:
        folder = stage.data / "files"
        folder.mkdir()
        files = [put(folder, "title.basics", *rows), put(folder, "title.ratings", *RATINGS)]
        with Site() as site:
            site.answers = {f"/{file.name}": Told(200, file.read_bytes()) for file in files}
            site.answers |= {f"/{name}.tsv.gz": answer for name, answer in answers.items()}
            return stage.crawl(
                "via=datasets",
                *arguments,
                IMDB_DATASETS="ratings",
                IMDB_DATASETS_URL=site.url,
                RETRY_TIMES="0",
            )

    return play


# --- What is due ----------------------------------------------------------------------------------


def due(faults: dict[str, float] | None = None, **settings: str) -> Play:
    """Crawl what the catalogue says is due, which are four titles."""

    def play(stage: Stage) -> Finished:
        url = stage.request.getfixturevalue("database_url")
        Due(url, stage.replica, stage.data).know(4)
        change(stage.replica, faults=faults or {})
        given = {"DATABASE_URL": url, "CONCURRENT_REQUESTS": "1", **settings}
        return stage.crawl("lane=due", **given)

    return play


# --- Archived pages -------------------------------------------------------------------------------


def replayed(damage: Callable[[bytes], bytes]) -> Play:
    """Replay the archived pages of two titles, of which one is damaged."""

    def play(stage: Stage) -> Finished:
        url = stage.request.getfixturevalue("s3_url")
        bucket = stage.request.getfixturevalue("bucket_name")
        given = {"S3_BUCKET": bucket, "S3_ENDPOINT_URL": url, **CREDENTIALS}
        done = stage.scrapy(*crawl_command("imdb", ids(2)), **given)
        assert done.code == 0, done.log
        files = objects(url, bucket, "raw/")
        records = [
            read_record(bytes(record))
            for packed in files.values()
            for record in read_records(BytesIO(packed))
        ]
        first = next(record for record in records if record.site_id == IDS[0])
        first.body = damage(first.body)
        path = stage.data / "archive" / next(iter(files))
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(write_record(record).record for record in records))
        return stage.scrapy("replay", str(stage.data / "archive"), DATA_DIR=str(stage.data / "new"))

    return play


# --- The queue ------------------------------------------------------------------------------------


def with_redis_gone(stage: Stage) -> Finished:
    """Crawl while Redis ends."""
    with RedisServer() as server:
        change(stage.replica, latency=100)
        process = stage.started(
            ids(20), REDIS_URL=server.url, CONCURRENT_REQUESTS="1", FRONTIER_PATIENCE="1"
        )
        wait_for(lambda: counts(stage.replica)["requests"] >= 2)
        server.stop()
        finished = Finished(process.wait(LONGEST), "", (stage.data / "log").read_text(), stage.data)
        server.start()
    return finished


def with_a_damaged_queue(stage: Stage) -> Finished:
    (stage.data / "queue.sqlite3").write_bytes(b"no database" * 1000)
    return stage.crawl(ids(2))


def with_a_newer_queue(stage: Stage) -> Finished:
    with closing(sqlite3.connect(stage.data / "queue.sqlite3")) as database, database:
        database.execute("PRAGMA user_version = 99")
        database.execute("CREATE TABLE runs (run)")
    return stage.crawl(ids(2))


def with_a_folder_as_queue(stage: Stage) -> Finished:
    (stage.data / "queue.sqlite3").mkdir()
    return stage.crawl(ids(2))


ENDS: dict[str, Ending] = {
    # --- Titles -----------------------------------------------------------------------------------
    "all is stored": Ending(
        play=meeting(ids(3)),
        code=0,
        titles="3 titles asked for: 3 stored",
        stores="sqlite 3 durable in … batches",
        next="nothing is left",
        stored=IDS[:3],
        queues=BOTH,
    ),
    "titles are absent": Ending(
        play=meeting(f"{ids(1)},tt0000001"),
        code=0,
        titles="2 titles asked for: 1 stored, 1 absent (1 HTTP status 404)",
        next="nothing is left",
        stored=IDS[:1],
        queues=BOTH,
    ),
    "errors of the site": Ending(
        play=meeting(ids(2), faults={"500": 1}, RETRY_TIMES="1"),
        code=1,
        titles="2 titles asked for: 2 failed (2 HTTP status 500)",
        next="2 failed, and the same command requests them anew",
        queues=BOTH,
    ),
    "after errors, the same command again": Ending(
        play=twice(meeting(ids(2), faults={"500": 1}, RETRY_TIMES="0"), meeting(ids(2))),
        code=0,
        titles="2 titles asked for: 2 stored",
        next="nothing is left",
        stored=IDS[:2],
    ),
    "truncated pages": Ending(
        play=meeting(ids(2), faults={"truncated": 1}, RETRY_TIMES="0"),
        code=1,
        titles="2 titles asked for: 2 failed (2 …)",
        next="2 failed, and the same command requests them anew",
    ),
    "broken connections": Ending(
        play=meeting(ids(1), faults={"reset": 1}, RETRY_TIMES="0"),
        code=1,
        titles="1 titles asked for: 1 failed"
        " (1 DownloadFailedError: Connection was closed cleanly)",
        next="1 failed, and the same command requests them anew",
    ),
    "no answer in time": Ending(
        play=meeting(ids(1), faults={"timeout": 1}, RETRY_TIMES="0", DOWNLOAD_TIMEOUT="0.5"),
        code=1,
        titles="1 titles asked for: 1 failed (1 …)",
        next="1 failed, and the same command requests them anew",
    ),
    "a page of no title": Ending(
        play=answered({page(0): Told(200, FULL)}, ids(2)),
        code=1,
        titles="2 titles asked for: 1 stored, 1 failed (1 …)",
        next="1 failed, and the same command requests them anew",
        stored=IDS[1:2],
    ),
    "a page of another title": Ending(
        play=others_page,
        code=1,
        titles="2 titles asked for: 1 stored, 1 failed (1 …the page is that of …)",
        next="1 failed, and the same command requests them anew",
        stored=IDS[1:2],
    ),
    "a page that redirects to itself": Ending(
        play=answered({page(0): Told(302, b"", {"Location": page(0)})}, ids(2)),
        code=1,
        titles="2 titles asked for: 1 stored, 1 failed (1 …)",
        next="1 failed, and the same command requests them anew",
        stored=IDS[1:2],
    ),
    "pages that robots.txt disallows": Ending(
        play=answered({"/robots.txt": FORBIDDING}, f"ids={METACRITIC[0]}", site="metacritic"),
        code=1,
        titles="1 titles asked for: 1 disallowed (1 …)",
        next="1 failed, and the same command requests them anew",
    ),
    "a robots.txt that can't be had": Ending(
        play=answered(
            {"/robots.txt": Told(503, b"busy")},
            f"ids={METACRITIC[0]}",
            site="metacritic",
            FRONTIER_PATIENCE="0.5",
        ),
        code=1,
        reason="site_unreachable",
        titles="1 titles asked for: 1 waiting in the queue",
        next="metacritic can't be reached: robots.txt can't be fetched: HTTP status 503; 1 requests"
        " wait in the queue, and the same command goes on with them",
        queues=BOTH,
    ),
    "a site that is away": Ending(
        play=meeting(
            f"ids={METACRITIC[0]}",
            site="metacritic",
            METACRITIC_URL=AWAY,
            FRONTIER_PATIENCE="0.5",
        ),
        code=1,
        reason="site_unreachable",
        titles="1 titles asked for: 1 waiting in the queue",
        next="metacritic can't be reached: …refused; 1 requests wait in the queue, and the same"
        " command goes on with them",
    ),
    # --- Refusals ---------------------------------------------------------------------------------
    "a refusal of the first page": Ending(
        play=meeting(ids(3), faults={"403": 1}, CONCURRENT_REQUESTS="1"),
        code=1,
        reason="site_stopped",
        titles="3 titles asked for: 3 waiting in the queue",
        next="imdb is blocking us (…); imdb is paused until … UTC; 3 requests wait in the"
        " queue, and the same command goes on with them",
        queues=BOTH,
    ),
    "a refusal in the middle": Ending(
        play=answered({page(2): DENIED}, ids(4), CONCURRENT_REQUESTS="1"),
        code=1,
        reason="site_stopped",
        titles="4 titles asked for: 2 stored, 2 waiting in the queue",
        next="imdb is blocking us (…; 2 requests wait in the queue, and the same command goes on"
        " with them",
        stored=IDS[:2],
    ),
    "a challenge": Ending(
        play=meeting(ids(2), faults={"challenge": 1}, CONCURRENT_REQUESTS="1"),
        code=1,
        reason="site_stopped",
        titles="2 titles asked for: 2 waiting in the queue",
        next="imdb is blocking us (…",
    ),
    "too many requests": Ending(
        play=meeting(ids(2), faults={"429": 1}, CONCURRENT_REQUESTS="1"),
        code=1,
        reason="site_stopped",
        titles="2 titles asked for: 2 waiting in the queue",
        next="imdb is blocking us (…",
    ),
    "pages that are too small": Ending(
        play=meeting(ids(4), faults={"throttle": 1}, CONCURRENT_REQUESTS="1", RETRY_TIMES="0"),
        code=1,
        reason="site_stopped",
        titles="4 titles asked for: 2 failed (2 …unexpected page…), 2 waiting in the queue",
        next="imdb is blocking us (…; 2 requests wait in the queue, …; 2 failed, and the same"
        " command requests them anew once these are done",
    ),
    "a site that has refused us before": Ending(
        play=twice(meeting(ids(2), faults={"403": 1}, CONCURRENT_REQUESTS="1"), meeting(ids(2))),
        code=1,
        reason="site_stopped",
        titles="2 titles asked for: 2 waiting in the queue",
        next="imdb is blocking us (…); imdb is paused until … UTC; 2 requests wait in the"
        " queue, and the same command goes on with them",
        queues=BOTH,
    ),
    # --- Lists ------------------------------------------------------------------------------------
    "a list": Ending(
        play=meeting("list=top", "limit=2"),
        code=0,
        titles="2 titles asked for: 2 stored",
        next="nothing is left",
        stored="…",
    ),
    "a list that is refused": Ending(
        play=meeting("list=top", faults={"403": 1}),
        code=1,
        reason="site_stopped",
        titles="0 titles asked for: the crawl ended first",
        next="imdb is blocking us (…; 1 requests wait in the queue, and the same command goes on"
        " with them",
    ),
    "a list that can't be fetched": Ending(
        play=meeting("list=top", faults={"500": 1}, RETRY_TIMES="0"),
        code=1,
        titles="0 titles asked for: the list could not be read (1 …)",
        next="1 failed, and the same command requests them anew",
    ),
    "a list that can't be read": Ending(
        play=answered({"/chart/top/": Told(200, FULL)}, "list=top"),
        code=1,
        titles="0 titles asked for: the list could not be read (1 …)",
        next="1 failed, and the same command requests them anew",
    ),
    "a list that redirects to itself": Ending(
        play=answered({"/chart/top/": Told(302, b"", {"Location": "/chart/top/"})}, "list=top"),
        code=1,
        titles="0 titles asked for: the list could not be read (1 …)",
        next="1 failed, and the same command requests them anew",
    ),
    "a list that names nothing": Ending(
        play=answered(
            {"/finder/metacritic/web": Told(200, b'{"data": {"items": [], "totalResults": 0}}')},
            "list=new",
            setting="METACRITIC_API_URL",
            site="metacritic",
        ),
        code=0,
        titles="0 titles asked for: nothing found",
        next="nothing is left",
    ),
    "a part of a list that can't be fetched": Ending(
        play=a_list_in_two_parts(Told(500)),
        code=1,
        titles="2 titles asked for: 2 stored, 1 list pages could not be read (1 HTTP status 500)",
        next="1 failed, and the same command requests them anew",
        stored=METACRITIC[:2],
    ),
    "a part of a list that is cut off": Ending(
        play=a_list_in_two_parts(Told(200, b"<urlset><url><loc>https://www.metacritic.c")),
        code=1,
        titles="2 titles asked for: 2 stored, 1 list pages could not be read (1 …)",
        next="1 failed, and the same command requests them anew",
        stored=METACRITIC[:2],
    ),
    # --- Ends before the end ----------------------------------------------------------------------
    "the day's budget": Ending(
        play=meeting(ids(4), SITE_BUDGETS='{"127.0.0.1": {"per_second": 50, "per_day": 2}}'),
        code=3,
        reason="budget_spent",
        titles="4 titles asked for: 2 stored, 2 waiting in the queue",
        next="the daily budget is exhausted; imdb is paused until … 00:00 UTC; 2 requests wait"
        " in the queue, and the same command goes on with them",
        stored=IDS[:2],
        queues=BOTH,
    ),
    "FRONTIER_MAX_PAGES": Ending(
        play=meeting(ids(4), FRONTIER_MAX_PAGES="2"),
        code=3,
        reason="recycled",
        titles="4 titles asked for: 2 stored, 2 waiting in the queue",
        next="2 requests wait in the queue, and the same command goes on with them",
        stored=IDS[:2],
        queues=BOTH,
    ),
    "FRONTIER_MAX_PAGES with a failure": Ending(
        play=answered({page(0): Told(200, FULL)}, ids(4), FRONTIER_MAX_PAGES="2"),
        code=1,
        reason="recycled",
        titles="4 titles asked for: 1 stored, 1 failed (1 …), 2 waiting in the queue",
        next="2 requests wait in the queue, and the same command goes on with them; 1 failed, and"
        " the same command requests them anew once these are done",
        stored=IDS[1:2],
    ),
    "Scrapy's CLOSESPIDER_ITEMCOUNT": Ending(
        play=meeting(ids(6), CLOSESPIDER_ITEMCOUNT="1", CONCURRENT_REQUESTS="1"),
        code=3,
        reason="closespider_itemcount",
        titles="6 titles asked for: … stored, … waiting in the queue",
        next="… requests wait in the queue, and the same command goes on with them",
        stored="…",
    ),
    "SIGTERM": Ending(
        play=told_to_end(signal.SIGTERM),
        code=3,
        reason="shutdown",
        titles="6 titles asked for: … stored, … waiting in the queue",
        next="… requests wait in the queue, and the same command goes on with them",
        queues=BOTH,
        stored="…",
    ),
    "SIGINT": Ending(
        play=told_to_end(signal.SIGINT),
        code=3,
        reason="shutdown",
        titles="6 titles asked for: … stored, … waiting in the queue",
        next="… requests wait in the queue, and the same command goes on with them",
        stored="…",
    ),
    "after SIGTERM, the same command again": Ending(
        play=twice(told_to_end(signal.SIGTERM), meeting(ids(6))),
        code=0,
        titles="6 titles asked for: 6 stored",
        next="nothing is left",
        stored=IDS[:6],
    ),
    "after kill -9, the same command again": Ending(
        play=killed,
        code=0,
        titles="4 titles asked for: 4 stored",
        next="nothing is left",
        stored=IDS[:4],
        queues=BOTH,
    ),
    # --- Several workers and passes ---------------------------------------------------------------
    "another worker has failed a title": Ending(
        play=after_another_worker_failed,
        code=1,
        titles="3 titles asked for: 2 stored, 1 failed",
        next="1 failed, and the same command requests them anew",
        stored=IDS[1:3],
        queues=BOTH,
    ),
    "FRONTIER_RUN a second time": Ending(
        play=twice(meeting(ids(2), FRONTIER_RUN="weekly"), meeting(ids(2), FRONTIER_RUN="weekly")),
        code=0,
        titles="2 titles asked for: 2 stored",
        stores="…",
        next="nothing is left",
        stored=IDS[:2],
        queues=BOTH,
    ),
    "FRONTIER_RUN a second time, after failures": Ending(
        play=twice(
            meeting(ids(2), faults={"500": 1}, FRONTIER_RUN="weekly", RETRY_TIMES="0"),
            meeting(ids(2), FRONTIER_RUN="weekly"),
        ),
        code=1,
        titles="2 titles asked for: 2 failed",
        next="2 failed, and another FRONTIER_RUN requests them anew",
    ),
    "FRONTIER_RUN with other arguments": Ending(
        play=twice(meeting(ids(1), FRONTIER_RUN="weekly"), meeting(ids(2), FRONTIER_RUN="weekly")),
        code=1,
        reason="frontier_refused",
        titles="0 titles asked for: the crawl ended first",
        next="run 'weekly' was started with …; this worker has …; nothing was requested",
        stored=IDS[:1],
        queues=BOTH,
    ),
    # --- Dead letters -----------------------------------------------------------------------------
    "a pipeline that breaks": Ending(
        play=with_a_broken_pipeline,
        code=1,
        has_traceback=True,
        titles="2 titles asked for: 2 dead letters",
        next="`scrapy deadletters` has 2 requests that were given up",
        queues=BOTH,
    ),
    "dead letters that were queued again": Ending(
        play=requeued,
        code=0,
        titles="… titles asked for: … stored",
        next="nothing is left",
        stored=IDS[:2],
        queues=BOTH,
    ),
    "a bad seed": Ending(
        play=seeded,
        code=1,
        titles="… titles asked for: 1 stored…",
        next="`scrapy deadletters` has 1 requests that were given up",
        stored=IDS[:1],
        queues=("redis",),
    ),
    # --- Stores -----------------------------------------------------------------------------------
    "Postgres is away": Ending(
        play=meeting(ids(2), DATABASE_URL="postgresql://127.0.0.1:1/films"),
        code=1,
        reason="store_unavailable",
        titles="0 titles asked for: the crawl ended first",
        stores="…postgres can't be used…",
        next="postgres can't be used, so nothing is crawled: …127.0.0.1…; nothing was requested;"
        " the same command begins again; the catalogue can't be asked",
    ),
    "Mongo is away": Ending(
        play=meeting(ids(2), MONGO_URL="mongodb://127.0.0.1:1/films?serverSelectionTimeoutMS=50"),
        code=1,
        reason="store_unavailable",
        titles="0 titles asked for: the crawl ended first",
        stores="…mongo can't be used…",
        next="mongo can't be used, so nothing is crawled: …; nothing was requested; the same"
        " command begins again",
    ),
    "S3 is away": Ending(
        play=with_s3_away,
        code=1,
        reason="store_unavailable",
        titles="0 titles asked for: the crawl ended first",
        stores="…can't be used…",
        next="… can't be used, so nothing is crawled: …; nothing was requested; the same command"
        " begins again",
    ),
    "a store that stays away": Ending(
        play=meeting(
            ids(2),
            DATABASE_URL="postgresql://127.0.0.1:1/films",
            STORE_UNREACHABLE="wait",
            ITEM_PIPELINES=IMPATIENT,
            FRONTIER_PATIENCE="0.5",
        ),
        code=1,
        reason="store_unavailable",
        titles="2 titles asked for: 2 waiting in the queue",
        stores="postgres 0 durable, 2 spooled …",
        next="postgres has taken nothing for 0.5 s, and nothing else is left to do; 2 requests wait"
        " in the queue, and the same command goes on with them; 2 items are spooled, and the next"
        " crawl stores them; the catalogue can't be asked",
        stored=IDS[:2],
    ),
    "a database that somebody else has locked": Ending(
        play=with_a_locked_database,
        code=1,
        reason="store_unavailable",
        titles="2 titles asked for: 2 waiting in the queue",
        stores="sqlite 0 durable, 2 spooled in …",
        next="sqlite has taken nothing for 0.5 s, and nothing else is left to do; 2 requests wait"
        " in the queue, and the same command goes on with them; 2 items are spooled, and the next"
        " crawl stores them",
        stored=IDS[:1],
        is_long=True,
    ),
    "after a locked database, the same command again": Ending(
        play=twice(with_a_locked_database, meeting(ids(2))),
        code=0,
        titles="2 titles asked for: 2 stored",
        next="nothing is left",
        stored=IDS[:2],
        is_long=True,
    ),
    "a store that writes while nobody may wait": Ending(
        play=meeting(ids(3), FRONTIER_PATIENCE="0"),
        code=0,
        titles="3 titles asked for: 3 stored",
        next="nothing is left",
        stored=IDS[:3],
        queues=BOTH,
    ),
    "a store that rejects a title": Ending(
        play=with_a_store_that_refuses,
        code=1,
        titles="3 titles asked for: 2 stored, 1 failed (1 rejected by sqlite)",
        stores="sqlite 2 durable, 1 rejected in … batches",
        next="1 failed, and the same command requests them anew",
        stored=[IDS[0], IDS[2]],
    ),
    "nowhere to write what was rejected": Ending(
        play=with_nowhere_to_write_what_is_rejected,
        code=1,
        titles="3 titles asked for: 2 stored, 1 failed (1 rejected by sqlite)",
        stores="…; 1 rejected items could not be written to rejected.jsonl",
        next="1 failed, and the same command requests them anew",
        stored=[IDS[0], IDS[2]],
    ),
    # --- IMDb's datasets --------------------------------------------------------------------------
    "datasets": Ending(
        play=of_datasets([KETTLE], "list=all"),
        code=0,
        titles="1 titles asked for: 1 stored",
        next="nothing is left",
        stored=["tt0900001"],
        queues=BOTH,
    ),
    "datasets with a damaged row": Ending(
        play=of_datasets([KETTLE, DAMAGED], "list=all"),
        code=1,
        titles="2 titles asked for: 1 stored, 1 failed (1 …)",
        next="1 failed, and the same command requests them anew",
        stored=["tt0900001"],
    ),
    "datasets with a row without a title": Ending(
        play=of_datasets([KETTLE, UNTITLED], "list=all"),
        code=0,
        titles="2 titles asked for: 1 stored, 1 absent (1 …)",
        next="nothing is left",
        stored=["tt0900001"],
    ),
    "datasets while the site refuses us": Ending(
        play=twice(meeting(ids(1), faults={"403": 1}), of_datasets([KETTLE], "ids=tt0900001")),
        code=0,
        titles="1 titles asked for: 1 stored",
        next="nothing is left",
        stored=["tt0900001"],
        queues=BOTH,
    ),
    "datasets without a title": Ending(
        play=of_datasets([KETTLE], "ids=tt0900001,tt0900009"),
        code=0,
        titles="2 titles asked for: 1 stored, 1 absent (1 …)",
        next="nothing is left",
        stored=["tt0900001"],
    ),
    "datasets that can't be fetched": Ending(
        play=of_datasets([KETTLE], "ids=tt0900001", **{"title.basics": Told(404)}),
        code=1,
        titles="1 titles asked for: 1 failed (1 IMDb's datasets: …)",
        next="1 failed, and the same command requests them anew",
    ),
    "datasets without rows": Ending(
        play=of_datasets([], "list=all"),
        code=1,
        titles="0 titles asked for: the list could not be read (1 …no rows…)",
        next="1 failed, and the same command requests them anew",
    ),
    "datasets that are away": Ending(
        play=meeting("via=datasets", "list=all", IMDB_DATASETS_URL=AWAY, FRONTIER_PATIENCE="0.5"),
        code=1,
        reason="site_unreachable",
        titles="0 titles asked for: the crawl ended first",
        next="imdb-datasets can't be reached: …refused; 1 requests wait in the queue, and the same"
        " command goes on with them",
    ),
    # --- What is due ------------------------------------------------------------------------------
    "all that is due is stored": Ending(
        play=due(),
        code=0,
        titles="4 titles asked for: 4 stored",
        next="nothing is left; 0 titles are due now, the next one on …",
        stored=IDS[:4],
    ),
    "due titles that fail": Ending(
        play=due({"500": 1}, RETRY_TIMES="0"),
        code=1,
        titles="4 titles asked for: 4 failed (4 HTTP status 500)",
        next="4 failed, and the catalogue has them requested when they are due again; 0 titles are"
        " due now, the next one on …",
    ),
    "the day's budget of what is due": Ending(
        play=due(SITE_BUDGETS='{"127.0.0.1": {"per_day": 2}}'),
        code=3,
        reason="budget_spent",
        titles="4 titles asked for: 2 stored, 2 waiting in the queue",
        next="…daily budget is exhausted; …; 3 requests wait in the queue, and the same command"
        " goes on with them; 2 titles are due now, the next one on …",
        stored=IDS[:2],
    ),
    "a site that refuses what is due": Ending(
        play=due({"403": 1}),
        code=1,
        reason="site_stopped",
        titles="4 titles asked for: 4 waiting in the queue",
        next="imdb is blocking us (…; 5 requests wait in the queue, and the same command goes on…",
    ),
    # --- Archived pages ---------------------------------------------------------------------------
    "a replay": Ending(
        play=replayed(lambda body: body),
        code=0,
        titles="2 titles asked for: 2 stored",
        next="nothing is left",
        stored=IDS[:2],
    ),
    "a replay of a page that can't be read": Ending(
        play=replayed(lambda _: gzip.compress(FULL)),
        code=1,
        titles="2 titles asked for: 1 stored, 1 failed (1 …)",
        next="1 failed, and the same command requests them anew",
        stored=IDS[1:2],
    ),
    "a replay of a damaged page": Ending(
        play=replayed(lambda body: body[: len(body) // 2]),
        code=1,
        titles="2 titles asked for: 1 stored, 1 failed (1 …)",
        next="1 failed, and the same command requests them anew",
        stored=IDS[1:2],
    ),
    # --- The queue --------------------------------------------------------------------------------
    "Redis is away": Ending(
        play=meeting(ids(2), REDIS_URL="redis://127.0.0.1:1/0"),
        code=1,
        reason="frontier_unreachable",
        titles="0 titles asked for: the crawl ended first",
        next="Redis at REDIS_URL can't be used: …; nothing was requested; the same command begins"
        " again",
    ),
    "Redis goes away": Ending(
        play=with_redis_gone,
        code=1,
        reason="frontier_unreachable",
        titles="20 titles asked for: … waiting in the queue",
        next="Redis at REDIS_URL can't be used: …, for 1 s; … requests wait in the queue,"
        " and the same command goes on with them",
        stored="…",
    ),
    "a damaged file of the queue": Ending(
        play=with_a_damaged_queue,
        code=0,
        titles="2 titles asked for: 2 stored",
        next="nothing is left",
        stored=IDS[:2],
    ),
    "a queue of a later version": Ending(
        play=with_a_newer_queue,
        code=1,
        reason="frontier_refused",
        titles="0 titles asked for: the crawl ended first",
        next="…queue.sqlite3 was made by a newer version of moviecrawler …; nothing was requested",
    ),
    "a folder where the queue should be": Ending(
        play=with_a_folder_as_queue,
        code=1,
        reason="frontier_unreachable",
        titles="0 titles asked for: the crawl ended first",
        next="…; nothing was requested; the same command begins again",
    ),
}


def cases() -> list[Any]:
    """Return each ending with each of its queues."""
    return [
        pytest.param(
            ending, queue, id=f"{name} ({queue})", marks=pytest.mark.long if ending.is_long else ()
        )
        for name, ending in ENDS.items()
        for queue in ending.queues
    ]


def is_like(expected: str, text: str) -> bool:
    """Return whether a text is as expected."""
    return bool(re.fullmatch(re.escape(expected).replace("…", ".*"), text))


@pytest.mark.promise(
    "Every requested title ends as stored, as a miss with its reason, or as a dead letter."
)
@pytest.mark.parametrize(("ending", "queue"), cases())
def test_a_crawl_ends(ending: Ending, queue: str, request: pytest.FixtureRequest) -> None:
    stage = Stage(request, queue)
    with stage.closing:
        finished = ending.play(stage)
    assert finished.code == ending.code, finished.log
    said = finished.summary
    told = {
        "titles": f"{said.asked:,} titles asked for: {said.titles}",
        "reason": said.reason,
        "stores": said.stores,
        "next": said.next,
    }
    wrong = {name: text for name, text in told.items() if not is_like(getattr(ending, name), text)}
    assert not wrong, finished.log
    assert ("Traceback" in finished.log) == ending.has_traceback
    if ending.stored != "…":
        assert {movie.site_id for movie in finished.movies} == set(ending.stored)


@pytest.mark.promise(
    "A crawl ends with five lines: titles, stores, refusals, missing fields, and what comes next."
)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"FRONTIER_MAX_PAGES": "1"},
        {"DATABASE_URL": "postgresql://127.0.0.1:1/films"},
        {"REDIS_URL": "redis://127.0.0.1:1/0"},
        {"IMDB_URL": AWAY, "FRONTIER_PATIENCE": "0.5"},
    ],
    ids=["in order", "unfinished", "without its store", "without its queue", "without its site"],
)
def test_without_a_log_there_are_the_five_lines_and_nothing_else(
    settings: dict[str, str], replica: ReplicaProcess, tmp_path: Path
) -> None:
    command = [*crawl_command("imdb", ids(2), **{**SOON, **settings}), "--nolog"]
    finished = scrapy(*command, data=tmp_path, replica=replica)
    assert len(finished.log.splitlines()) == 5, finished.log


@pytest.mark.promise(
    "A wrong argument or setting ends a crawl before its first request, in one sentence."
)
@pytest.mark.parametrize(
    "wrong", [["-a", "list=best"], ["-a", "limit=0"], ["-s", "SITE_BUDGETS=none"]], ids=" ".join
)
def test_wrong_usage_has_a_code_of_its_own_and_no_summary(
    wrong: list[str], replica: ReplicaProcess, tmp_path: Path
) -> None:
    finished = scrapy("crawl", "imdb", *wrong, data=tmp_path, replica=replica)
    assert finished.code == 2
    assert "titles asked for" not in finished.log
    assert counts(replica)["robots"] == 0


CRON = re.search(
    r"^    15 6 \* \* \*  (.*)$",
    (PROJECT / "moviecrawler/guides/every_day.md").read_text("utf-8"),
    re.MULTILINE,
)


@pytest.mark.promise(
    "A crawl ends with five lines: titles, stores, refusals, missing fields, and what comes next."
)
@pytest.mark.parametrize(
    ("settings", "is_mailed"),
    [
        ({}, False),
        ({"FRONTIER_MAX_PAGES": "1"}, False),
        ({"DATABASE_URL": "postgresql://127.0.0.1:1/films"}, True),
        ({"IMDB_URL": AWAY, "IMDB_DATASETS_URL": AWAY, "FRONTIER_PATIENCE": "0.5"}, True),
    ],
    ids=["complete", "unfinished", "without its store", "without its site"],
)
def test_cron_mails_the_five_lines_of_a_crawl_that_lacks_something(
    settings: dict[str, str], is_mailed: bool, replica: ReplicaProcess, tmp_path: Path
) -> None:
    assert CRON is not None
    command = CRON[1].replace("~/moviecrawler", str(tmp_path))
    command = command.replace(".venv/bin/scrapy", f"{sys.executable} -m scrapy")
    env = environment(tmp_path, replica, **{**FAST, **SOON, **settings})
    (tmp_path / "imdb.log").write_text("the log of yesterday\n" * 9)
    ended = subprocess.run(
        ["sh", "-c", command], env=env, capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert ended.stderr == ""
    if is_mailed:
        assert Summary.read(ended.stdout).site == "imdb"
        assert len(ended.stdout.splitlines()) == 5
    else:
        assert ended.stdout == ""
