"""The pages of a cluster in a state that is made for them, served without the cluster's processes.

Stores are real; what nodes and workers would write there is written by the functions that they use.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote

import msgspec
import psycopg2
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader
from werkzeug import Request, Response

from moviecrawler.cluster import keys
from moviecrawler.cluster.jobs import Job, Outcome, Result
from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import Argument, ClusterState, Egg, NodeInfo
from moviecrawler.dashboard.pages import Page, PageRequest
from moviecrawler.dashboard.rendering import STATIC
from moviecrawler.dashboard.site import make_pages
from moviecrawler.dashboard.sources import Sources
from moviecrawler.database.connection import Database
from moviecrawler.frontier.contract import RunName, Worker
from moviecrawler.frontier.runs import describe_arguments, name_of_arguments
from tests.dashboard_views import DONE, FAILED, RUNNING, StageState
from tests.page_texts import HOSTILE
from tests.passes import make_pass
from tests.run_keys import RunKeys, SiteKeys
from tests.scripted_site import Site, Told, target_of
from tests.services.postgres import PostgresServer, new_database
from tests.services.redis import RedisServer

_HOUR = 3600
_MEBIBYTE = 1024 * 1024
_LONG_REASON = (
    "frontier_refused: run 'weekly' was begun with "
    "ids=tt0111161,tt0068646,tt0468569,tt0071562,tt0050083,tt0108052,tt0167260,tt0110912 limit=250"
    " list=top, and this worker has limit=5 list=top; start it with these arguments, or choose"
    " another FRONTIER_RUN (https://nodes.example/a/very/long/path/that/has/no/place/to/be/broken)"
)
_LONG_IDS = ",".join(f"tt{111161 + 7919 * number:07}" for number in range(60))
_TITLES = 400
_WORDS = (
    "the a of silent lost harbor kingdom night river garden winter stone letters mountain glass "
    "crimson summer distant shadow orchard seventh broken paper golden"
)


class Pages(Site):
    """Answers as a node would, without a password."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        super().__init__()
        self._pages = pages

    def usual_answer(self, request: Request) -> Response:
        """Return a page, or one of the files that pages need."""
        path = target_of(request).partition("?")[0]
        _, first, *rest = map(unquote, path.split("/"))
        if first == "static":
            file = Path(str(STATIC), *rest)
            kind = "text/css" if file.suffix == ".css" else "image/svg+xml"
            return Told(200, file.read_bytes(), {"Content-Type": kind})
        page = self._pages.get(f"/{first}")
        if page is None:
            return Told(404)
        values = request.form or request.args
        asked = PageRequest(method=request.method, path=tuple(rest), values=values.to_dict())
        answer = page.respond(asked)
        return Told(answer.code, answer.content, answer.headers)


@contextmanager
def stage(folder: Path, state: StageState) -> Iterator[tuple[str, Sources]]:
    """Serve the pages of a cluster in a state; return their address, and what they read."""
    with PostgresServer() as postgres, RedisServer() as redis:
        database_url = new_database(postgres.url)
        with closing(Database(database_url)) as database:
            database.open()
        options = NodeOptions(
            redis_url=redis.url,
            node_name="node1",
            logs_dir=str(folder / "logs"),
            eggs_dir=str(folder / "eggs"),
            lease_seconds=_HOUR,
        )
        environ = {"REDIS_URL": redis.url, "DATABASE_URL": database_url}
        with mock.patch.dict(os.environ, environ):
            sources = Sources(Node(options))
        budgets = {"rottentomatoes": {"per_day": 600}, "metacritic": {"per_day": 1200}}
        sources.settings.set("SITE_BUDGETS", json.dumps(budgets), "cmdline")
        if state != "empty":
            fill_database(database_url)
            fill_cluster(sources.node.state, is_in_order=state == "order")
            fill_runs(folder, redis, is_in_order=state == "order")
            fill_logs(folder / "logs")
        if state == "away":
            redis.stop()
            postgres.stop()
        with Pages(make_pages(sources)) as server:
            yield server.url, sources
        sources.close()


# --- Titles ---------------------------------------------------------------------------------------


def fill_database(url: str) -> None:
    """Fill the tables with titles of three sites, read in the course of a day."""
    folder = Path(__file__).with_name("dashboard")
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        many = (folder / "many_titles.sql").read_text("utf-8")
        cursor.execute(many, {"titles": _TITLES, "words": _WORDS})
        wrong = (folder / "gone_wrong.sql").read_text("utf-8")
        cursor.execute(wrong, {"hostile": HOSTILE, "imdb_id": "tt99990001"})
        cursor.execute((folder / "other_sites.sql").read_text("utf-8"))


# --- Nodes and jobs -------------------------------------------------------------------------------


def fill_cluster(state: ClusterState, *, is_in_order: bool) -> None:
    """Deploy, have nodes run jobs, and let some of both fail."""
    loader = SpiderLoader(Settings({"SPIDER_MODULES": ["moviecrawler.spiders"]}))
    arguments = {
        site: msgspec.convert(
            loader.load(site).describe_arguments(),  # type: ignore[attr-defined]
            list[Argument],
        )
        for site in ("imdb", "metacritic", "rottentomatoes")
    }
    for number in (1, 2, 3):
        egg = Egg(
            project="moviecrawler",
            version=f"v{number}",
            sha256="",
            spiders=list(arguments),
            added_at=number,
            arguments=arguments,
        )
        state.client.hset(keys.EGGS, egg.key, msgspec.json.encode(egg))
    toy = Egg(project="toy", version="1.2.0", sha256="", spiders=["quick"], added_at=4)
    state.client.hset(keys.EGGS, toy.key, msgspec.json.encode(toy))
    nodes = [_node("node1"), _node("node2")]
    if not is_in_order:
        nodes[1] = _node(
            "node2", unreachable={"imdb": "HTTP status 503, since 2026-11-30 02:10 UTC"}
        )
        full = "the disk of logs_dir is full: 3 MB are free, and jobs need 64 MB (/data/logs)"
        nodes.append(_node("node3", unfit={"folders": full}, unfit_since=time.time() - 2 * _HOUR))
        nodes.append(_node("node4", draining=True))
        for name, hours in (("moviecrawler-node-7d9c5f6b8-x2x7q", 3), ("node6", 20)):
            state.client.zadd(keys.LOST, {name: (time.time() - hours * _HOUR) * 1000})
    for node in nodes:
        state.beat(node, [])
    _finish_jobs(state, nodes[0], is_in_order=is_in_order)
    running = [
        Job(
            project="moviecrawler", spider="metacritic", id=RUNNING, arguments={"list": "metascore"}
        ),
        Job(project="moviecrawler", spider="imdb", id="imdb-top", arguments={"list": "top"}),
        Job(project="moviecrawler", spider="imdb", id="imdb-toptv", arguments={"ids": _LONG_IDS}),
    ]
    held: list[str] = []
    for job in running:
        state.schedule(job)
        taken = state.beat(nodes[0], held, takes=True).taken
        assert taken is not None
        held.append(taken.queue_member)
        _shift(state, job, 1.5 * _HOUR)
    pids = {job.key: (4000 + number, "v3") for number, job in enumerate(running)}
    state.beat(msgspec.structs.replace(nodes[0], processes=pids), held)
    for number in range(1 if is_in_order else 12):
        job = Job(
            project="moviecrawler",
            spider="rottentomatoes",
            id=f"rt-movies-at-home-{number + 1}",
            arguments={"list": "movies_at_home/sort:popular", "limit": f"{number + 1}"},
            settings={"FRONTIER_RUN": f"rt-{number}"},
            priority=-number,
        )
        state.schedule(job)


def _node(name: str, **changed: Any) -> NodeInfo:
    return msgspec.structs.replace(
        NodeInfo(
            id=f"{name}:0a1b2c3d",
            name=name,
            url="",
            slots=6,
            started_at=time.time() - 30 * _HOUR,
            draining=False,
            memory=92 * _MEBIBYTE,
            spiders_memory=310 * _MEBIBYTE,
            processes={},
        ),
        **changed,
    )


def _finish_jobs(state: ClusterState, node: NodeInfo, *, is_in_order: bool) -> None:
    ends: list[tuple[str, Result, str, Mapping[str, str]]] = [
        (f"weekly-top250-{number}", "ok", "finished", {"list": "top", "limit": "250"})
        for number in range(1, 13)
    ]
    ends += [
        (f"nightly-{number:02}-of-the-cron-job-with-a-long-name", "ok", "finished", {"lane": "due"})
        for number in range(44)
    ]
    if not is_in_order:
        ends += [
            ("odd", "failed", f"exit code 1: {HOSTILE}", {"note": HOSTILE}),
            (FAILED, "failed", _LONG_REASON, {"ids": _LONG_IDS, "limit": "5"}),
            (
                "typo",
                "usage",
                "unknown argument 'lst'; this spider takes ids, limit",
                {"lst": "top"},
            ),
            (
                "gives-up",
                "gave_up",
                "gave up: it was started 7 times; the last end: killed by signal 9",
                {"list": "popular"},
            ),
            ("store", "failed", "store_unavailable: the database can't be reached", {"limit": "9"}),
            ("waits", "unfinished", "budget_spent", {"list": "toptv"}),
            ("not-wanted", "cancelled", "cancelled", {"list": "populartv"}),
            (
                "again-and-again",
                "failed",
                "exit code 1: OSError: [Errno 28] No space left",
                {"a": "b"},
            ),
            ("memory", "failed", "memusage_exceeded", {"list": "boxoffice"}),
        ]
    for number, (job_id, result, reason, arguments) in enumerate(ends):
        spider = "metacritic" if job_id.startswith("nightly") else "imdb"
        job = Job(project="moviecrawler", spider=spider, id=job_id, arguments=dict(arguments))
        state.schedule(job)
        if job_id == "gives-up":
            taken = state.beat(node, [], takes=True).taken
            assert taken is not None
            died = Outcome(reason="killed by signal 9")
            state.record_end(node.id, taken, "died", died)
        taken = state.beat(node, [], takes=True).taken
        assert taken is not None
        is_ok = result == "ok"
        outcome = Outcome(
            result=result,
            reason=reason,
            exit_code=0 if is_ok else 1,
            items=250 if is_ok else 0,
            pages=252 if is_ok else 1,
            errors=0 if is_ok else 3,
            bytes=4_000_000,
            summary=[
                f"{spider}: 250 titles asked for, {250 if is_ok else 0} stored",
                "  in 8 min 20 s: 252 responses, 4.0 MB, 0 errors, 0 retries",
                "  fields: all known",
                "  stores: postgres 250",
                "  next: nothing of this crawl",
            ],
        )
        how: Any = "cancelled" if result == "cancelled" else "finished"
        state.record_end(node.id, taken, how, outcome)
        _shift(state, job, (len(ends) - number) * _HOUR / 4)


def _shift(state: ClusterState, job: Job, seconds: float) -> None:
    """Have a job happen earlier."""
    record = msgspec.json.decode(state.client.hget(keys.JOBS, job.key))
    for start in record["history"]:
        start["started_at"] -= seconds + 500
        if "ended_at" in start:
            start["ended_at"] -= seconds
    if outcome := record.get("outcome"):
        outcome["ended_at"] -= seconds
        outcome["seconds"] = 500.0
    else:
        record["started_at"] -= seconds
    state.client.hset(keys.JOBS, job.key, msgspec.json.encode(record))


def fill_logs(folder: Path) -> None:
    """Write the logs of some jobs."""
    line = (
        "2026-11-30 02:10:09 [imdb] INFO: Crawled 252 pages (at 30 pages/min), scraped 250 items\n"
    )
    for spider, job in (("imdb", DONE), ("imdb", FAILED), ("metacritic", RUNNING)):
        path = folder / "moviecrawler" / spider / f"{job}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(line * 60, encoding="utf-8")


# --- Runs -----------------------------------------------------------------------------------------


def fill_runs(folder: Path, redis: RedisServer, *, is_in_order: bool) -> None:
    """Make runs: some go on, some are over, and some have nobody who works on them."""
    of_top = describe_arguments([], {"list": "top"})
    of_metascore = describe_arguments([], {"list": "metascore"})
    _run(folder, redis, "imdb", of_top, {"stored": 140, "absent": 2, "": 108}, workers=1)
    done = {"stored": 900, "absent": 12, "": 488} | ({} if is_in_order else {"failed": 11})
    _run(folder, redis, "metacritic", of_metascore, done, workers=2)
    _run(folder, redis, "imdb", describe_arguments([], {"list": "toptv"}), {"stored": 250})
    client = redis.client
    day = int(time.time() // 86_400)
    now = time.time() * 1000
    for site, used in (("imdb", 142), ("metacritic", 913), ("rottentomatoes", 412)):
        client.hset(SiteKeys(site).budget, mapping={"day": day, "used": used, "at": round(now)})
    if is_in_order:
        return
    client.hset(SiteKeys("metacritic").budget, "used", 1200)
    letters = {"stored": 30, "dead": 7, "failed": 3, "": 23}
    _run(folder, redis, "imdb", of_top, letters, name="weekly-47")
    of_ids = describe_arguments(["tt0111161"], {"limit": "9"})
    _run(folder, redis, "imdb", of_ids, {"stored": 4, "": 5})
    of_browse = describe_arguments([], {"list": "movies_at_home"})
    _run(folder, redis, "rottentomatoes", of_browse, {"stored": 60, "": 367}, workers=1)
    for number in range(12):
        described = describe_arguments([], {"list": "popular", "limit": f"{number + 1}"})
        _run(folder, redis, "metacritic", described, {"stored": number + 1})
    refusal: dict[Any, Any] = {"reason": "403 with cf-mitigated: challenge", "trips": 1}
    refusal |= {"until": round(now + 7e6), "at": round(now - 2e5)}
    client.hset(SiteKeys("rottentomatoes").circuit, mapping=refusal)


def _run(
    folder: Path,
    redis: RedisServer,
    site: Any,
    arguments: str,
    counts: Mapping[str, int],
    name: str = "",
    workers: int = 0,
) -> None:
    run = RunName(site, name or name_of_arguments(arguments))
    worker = Worker(run=run, name="node-1", arguments=arguments, is_once=bool(name))
    outcomes = {
        f"{outcome}-{number}": outcome
        for outcome, count in counts.items()
        for number in range(count)
    }
    make_pass(folder, redis.url, outcomes, worker)
    run_keys = RunKeys(SiteKeys(site), run.name)
    now = time.time() * 1000
    redis.client.hset(run_keys.state, "started_at", round(now - 2 * _HOUR * 1000))
    until = now + 3600_000
    if workers:
        redis.client.zadd(run_keys.workers, {f"w{number}": until for number in range(workers)})
