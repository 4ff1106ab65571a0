"""How crawls end: the exit code, the five lines, and what is stored.

Each row of the table is a crawl that meets something, and `ends.toml` says how it must end.
"""

import json
import re
import signal
import sqlite3
import subprocess
import tomllib
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import convert

from moviecrawler.items import Site as SiteName
from moviecrawler.replica.process import ReplicaProcess
from tests.accounts import Summary, check_crawl
from tests.crawling import Finished, change, counts, crawl, scrapy
from tests.dataset_files import put
from tests.due_crawls import Due
from tests.forked_programs import forked_programs
from tests.limited import IMPATIENT
from tests.processes import FAST, Process, crawl_command, environment, start
from tests.scripted_site import Site, Told
from tests.services.redis import RedisServer
from tests.services.replica import COLLECTION, IDS
from tests.services.s3 import CREDENTIALS
from tests.shared import PROJECT
from tests.waiting import wait_for

SOON = {"FRONTIER_PATIENCE": "3"}
"""Settings with which nobody waits long for what is away."""
AWAY = "http://127.0.0.1:1"
"""A server that is not there."""
METACRITIC = [site_id for site_id in COLLECTION.ids["metacritic"].values() if "movie/" in site_id]
TITLES = {"imdb": IDS, "metacritic": METACRITIC}
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
    """How a crawl must end, as `ends.toml` says it."""

    code: int
    titles: str
    next: str
    reason: str = "finished"
    stores: str = "…"
    stored: list[int | str] = field(default_factory=list)
    site: Literal["imdb", "metacritic"] = "imdb"
    queues: list[str] = field(default_factory=lambda: ["sqlite"])
    is_long: bool = False
    has_traceback: bool = False
    """Whether the log shows where our own code, or a plugin, is at fault."""


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
            front.answers.update(answers)
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


PLAYS: dict[str, Play] = {
    # --- Titles -----------------------------------------------------------------------------------
    "all is stored": meeting(ids(3)),
    "titles are absent": meeting(f"{ids(1)},tt0000001"),
    "errors of the site": meeting(ids(2), faults={"500": 1}, RETRY_TIMES="1"),
    "after errors, the same command again": twice(
        meeting(ids(2), faults={"500": 1}, RETRY_TIMES="0"), meeting(ids(2))
    ),
    "truncated pages": meeting(ids(2), faults={"truncated": 1}, RETRY_TIMES="0"),
    "broken connections": meeting(ids(1), faults={"reset": 1}, RETRY_TIMES="0"),
    "no answer in time": meeting(
        ids(1), faults={"timeout": 1}, RETRY_TIMES="0", DOWNLOAD_TIMEOUT="0.5"
    ),
    "a page of no title": answered({page(0): Told(200, FULL)}, ids(2)),
    "a page of another title": others_page,
    "a page that redirects to itself": answered(
        {page(0): Told(302, b"", {"Location": page(0)})}, ids(2)
    ),
    "pages that robots.txt disallows": answered(
        {"/robots.txt": FORBIDDING}, f"ids={METACRITIC[0]}", site="metacritic"
    ),
    "a robots.txt that can't be had": answered(
        {"/robots.txt": Told(503, b"busy")},
        f"ids={METACRITIC[0]}",
        site="metacritic",
        FRONTIER_PATIENCE="0.5",
    ),
    "a site that is away": meeting(
        f"ids={METACRITIC[0]}", site="metacritic", METACRITIC_URL=AWAY, FRONTIER_PATIENCE="0.5"
    ),
    # --- Refusals ---------------------------------------------------------------------------------
    "a refusal of the first page": meeting(ids(3), faults={"403": 1}, CONCURRENT_REQUESTS="1"),
    "a refusal in the middle": answered({page(2): DENIED}, ids(4), CONCURRENT_REQUESTS="1"),
    "a challenge": meeting(ids(2), faults={"challenge": 1}, CONCURRENT_REQUESTS="1"),
    "too many requests": meeting(ids(2), faults={"429": 1}, CONCURRENT_REQUESTS="1"),
    "pages that are too small": meeting(
        ids(4), faults={"throttle": 1}, CONCURRENT_REQUESTS="1", RETRY_TIMES="0"
    ),
    "a site that has refused us before": twice(
        meeting(ids(2), faults={"403": 1}, CONCURRENT_REQUESTS="1"), meeting(ids(2))
    ),
    # --- Lists ------------------------------------------------------------------------------------
    "a list": meeting("list=top", "limit=2"),
    "a list that is refused": meeting("list=top", faults={"403": 1}),
    "a list that can't be fetched": meeting("list=top", faults={"500": 1}, RETRY_TIMES="0"),
    "a list that can't be read": answered({"/chart/top/": Told(200, FULL)}, "list=top"),
    "a list that redirects to itself": answered(
        {"/chart/top/": Told(302, b"", {"Location": "/chart/top/"})}, "list=top"
    ),
    "a list that names nothing": answered(
        {"/finder/metacritic/web": Told(200, b'{"data": {"items": [], "totalResults": 0}}')},
        "list=new",
        setting="METACRITIC_API_URL",
        site="metacritic",
    ),
    "a part of a list that can't be fetched": a_list_in_two_parts(Told(500)),
    "a part of a list that is cut off": a_list_in_two_parts(
        Told(200, b"<urlset><url><loc>https://www.metacritic.c")
    ),
    # --- Ends before the end ----------------------------------------------------------------------
    "the day's budget": meeting(
        ids(4), SITE_BUDGETS='{"127.0.0.1": {"per_second": 50, "per_day": 2}}'
    ),
    "FRONTIER_MAX_PAGES": meeting(ids(4), FRONTIER_MAX_PAGES="2"),
    "FRONTIER_MAX_PAGES with a failure": answered(
        {page(0): Told(200, FULL)}, ids(4), FRONTIER_MAX_PAGES="2"
    ),
    "Scrapy's CLOSESPIDER_ITEMCOUNT": meeting(
        ids(6), CLOSESPIDER_ITEMCOUNT="1", CONCURRENT_REQUESTS="1"
    ),
    "SIGTERM": told_to_end(signal.SIGTERM),
    "SIGINT": told_to_end(signal.SIGINT),
    "after SIGTERM, the same command again": twice(told_to_end(signal.SIGTERM), meeting(ids(6))),
    "after kill -9, the same command again": killed,
    # --- Several workers and passes ---------------------------------------------------------------
    "another worker has failed a title": after_another_worker_failed,
    "FRONTIER_RUN a second time": twice(
        meeting(ids(2), FRONTIER_RUN="weekly"), meeting(ids(2), FRONTIER_RUN="weekly")
    ),
    "FRONTIER_RUN a second time, after failures": twice(
        meeting(ids(2), faults={"500": 1}, FRONTIER_RUN="weekly", RETRY_TIMES="0"),
        meeting(ids(2), FRONTIER_RUN="weekly"),
    ),
    "FRONTIER_RUN with other arguments": twice(
        meeting(ids(1), FRONTIER_RUN="weekly"), meeting(ids(2), FRONTIER_RUN="weekly")
    ),
    # --- Dead letters -----------------------------------------------------------------------------
    "a pipeline that breaks": with_a_broken_pipeline,
    "dead letters that were queued again": requeued,
    "a bad seed": seeded,
    # --- Stores -----------------------------------------------------------------------------------
    "Postgres is away": meeting(ids(2), DATABASE_URL="postgresql://me:s3cret@127.0.0.1:1/films"),
    "Mongo is away": meeting(
        ids(2), MONGO_URL="mongodb://me:s3cret@127.0.0.1:1/films?serverSelectionTimeoutMS=50"
    ),
    "S3 is away": with_s3_away,
    "a bucket of a wrong name": meeting(ids(2), S3_BUCKET="no bucket's name"),
    "a store that stays away": meeting(
        ids(2),
        DATABASE_URL="postgresql://127.0.0.1:1/films",
        STORE_UNREACHABLE="wait",
        ITEM_PIPELINES=IMPATIENT,
        FRONTIER_PATIENCE="0.5",
    ),
    "a database that somebody else has locked": with_a_locked_database,
    "after a locked database, the same command again": twice(
        with_a_locked_database, meeting(ids(2))
    ),
    "a store that writes while nobody may wait": meeting(ids(3), FRONTIER_PATIENCE="0"),
    "a store that rejects a title": with_a_store_that_refuses,
    "nowhere to write what was rejected": with_nowhere_to_write_what_is_rejected,
    # --- IMDb's datasets --------------------------------------------------------------------------
    "datasets": of_datasets([KETTLE], "list=all"),
    "datasets with a damaged row": of_datasets([KETTLE, DAMAGED], "list=all"),
    "datasets with a row without a title": of_datasets([KETTLE, UNTITLED], "list=all"),
    "datasets while the site refuses us": twice(
        meeting(ids(1), faults={"403": 1}), of_datasets([KETTLE], "ids=tt0900001")
    ),
    "datasets without a title": of_datasets([KETTLE], "ids=tt0900001,tt0900009"),
    "datasets that can't be fetched": of_datasets(
        [KETTLE], "ids=tt0900001", **{"title.basics": Told(404)}
    ),
    "datasets without rows": of_datasets([], "list=all"),
    "datasets that are away": meeting(
        "via=datasets", "list=all", IMDB_DATASETS_URL=AWAY, FRONTIER_PATIENCE="0.5"
    ),
    # --- What is due ------------------------------------------------------------------------------
    "all that is due is stored": due(),
    "due titles that fail": due({"500": 1}, RETRY_TIMES="0"),
    "the day's budget of what is due": due(SITE_BUDGETS='{"127.0.0.1": {"per_day": 2}}'),
    "a site that refuses what is due": due({"403": 1}),
    # --- The queue --------------------------------------------------------------------------------
    "Redis is away": meeting(ids(2), REDIS_URL="redis://127.0.0.1:1/0"),
    "Redis goes away": with_redis_gone,
    "a damaged file of the queue": with_a_damaged_queue,
    "a queue of a later version": with_a_newer_queue,
    "a folder where the queue should be": with_a_folder_as_queue,
}
ENDS = convert(
    tomllib.loads(Path(__file__).with_name("ends.toml").read_text("utf-8")), dict[str, Ending]
)


def cases() -> list[Any]:
    """Return each play and its ending with each of its queues."""
    return [
        pytest.param(
            play,
            ENDS[name],
            queue,
            id=f"{name} ({queue})",
            marks=pytest.mark.long if ENDS[name].is_long else (),
        )
        for name, play in PLAYS.items()
        for queue in ENDS[name].queues
    ]


def is_like(expected: str, text: str) -> bool:
    """Return whether a text is as expected."""
    return bool(re.fullmatch(re.escape(expected).replace("…", ".*"), text))


@pytest.mark.promise(
    "Every requested title ends as stored, as a miss with its reason, or as a dead letter."
)
@pytest.mark.parametrize(("play", "ending", "queue"), cases())
def test_a_crawl_ends(
    play: Play, ending: Ending, queue: str, request: pytest.FixtureRequest
) -> None:
    stage = Stage(request, queue)
    with stage.closing:
        finished = play(stage)
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
    assert "s3cret" not in finished.log
    if "…" not in ending.stored:
        known = TITLES[ending.site]
        stored = {known[one] if isinstance(one, int) else one for one in ending.stored}
        assert {movie.site_id for movie in finished.movies} == stored


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
    env = environment(tmp_path, replica, **{**FAST, **SOON, **settings})
    (tmp_path / "imdb.log").write_text("the log of yesterday\n" * 9)
    with forked_programs() as programs:
        command = command.replace(".venv/bin", str(programs))
        ended = subprocess.run(
            ["sh", "-c", command],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
    assert ended.stderr == ""
    if is_mailed:
        assert Summary.read(ended.stdout).site == "imdb"
        assert len(ended.stdout.splitlines()) == 5
    else:
        assert ended.stdout == ""
