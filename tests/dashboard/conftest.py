"""A cluster as its operator has it.

It has two nodes with a password, a crawl that is over, one that runs, and things gone wrong.
"""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from moviecrawler.database.connection import Database
from moviecrawler.replica.collection import Collection
from tests.operated import DONE, HOSTILE, LOGIN, PASSWORD, PER_DAY, USER, Operated
from tests.services.nodes import Node, cluster, project_egg
from tests.services.postgres import new_database
from tests.services.redis import RedisServer
from tests.services.replica import ForkedReplica
from tests.waiting import wait_for
from tests.workers import keys_of

TITLES = 700
PER_SECOND = 3
"""By which the crawl goes on for 200 s: longer than all tests take on a machine that does other
things, too."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[Operated]:
    """Return a cluster with a crawl that is over, and one that runs for as long as the tests do."""
    folder = tmp_path_factory.mktemp("operated")
    collection = Collection(1, TITLES)
    database_url = new_database(postgres_server)
    with closing(Database(database_url)) as database:
        database.open()
    script = Path(__file__).with_name("gone_wrong.sql").read_text("utf-8")
    with (
        closing(psycopg2.connect(database_url)) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(script, {"hostile": HOSTILE, "imdb_id": "tt99990001"})
    proxies = [f"http://{USER}:{PASSWORD}@127.0.0.1:9", f"http://bob:{PASSWORD}@proxy.example:3128"]
    with RedisServer() as redis, ForkedReplica(titles=TITLES, light=True) as replica:
        options = {
            **replica.settings,
            "REDIS_URL": redis.url,
            "DATABASE_URL": database_url,
            "DATA_DIR": str(folder / "data"),
            "CSV_ENABLED": "0",
            "DOWNLOAD_DELAY": "0",
            "STORE_BATCH_SECONDS": "0.3",
            "SCRAPYD_MAX_PROC": "1",
            "SCRAPYD_LOGS_DIR": str(folder / "logs"),
            "SITE_BUDGETS": json.dumps(
                {"127.0.0.1": {"per_second": PER_SECOND, "per_day": PER_DAY}}
            ),
            "PROXY_ORDER": json.dumps({"rottentomatoes": "direct,datacenter"}),
            "PROXY_POOLS": json.dumps({"datacenter": {"kind": "datacenter", "urls": proxies}}),
        }
        with cluster(folder, redis.url, 2, auth=LOGIN, **options) as running:
            one, two = running.nodes
            assert one.deploy(project_egg(), "moviecrawler", "v1").json["status"] == "ok"
            quick = {"AUTOTHROTTLE_ENABLED": "0", "FRONTIER_RUN": "over"}
            slugs = list(collection.ids["metacritic"].values())[:DONE]
            done = two.schedule("metacritic", "moviecrawler", quick, ids=",".join(slugs))
            slowly = {**quick, "FRONTIER_RUN": "running"}
            job = two.schedule(
                "imdb", "moviecrawler", slowly, ids=",".join(collection.imdb_ids[:600])
            )
            wait_for(lambda: one.finished(done), 90, lambda: one.log + two.log)
            envelope = ["parse_title", "https://www.metacritic.com/movie/killer/", {}, "page"]
            reason = json.dumps({"reason": f"it kills {HOSTILE}", "at": round(time.time() * 1000)})
            letter = f"{reason}\n2 1 t\n{json.dumps(envelope)}"
            redis.client.hset(keys_of(redis.client, "metacritic").dead, "0" * 32, letter)
            wait_for(lambda: _at_work(one), 60, lambda: one.log + two.log)
            yield Operated(running, redis, database_url, done, job)
            one.post("cancel.json", project="moviecrawler", job=job, signal="KILL")


def _at_work(node: Node) -> bool:
    """Return whether the running crawl has stored something."""
    runs = {run["run"]: run for run in node.get("progress.json").json["runs"]}
    return bool(runs.get("running", {}).get("done", 0) > 3)
