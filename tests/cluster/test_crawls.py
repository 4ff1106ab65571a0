"""Crawls of the project itself on a cluster, from a replica, into all stores."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import boto3
import pytest

from moviecrawler.items import Movie
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.cluster.nodes import Cluster, Node, cluster, project_egg
from tests.crawling import FAST, change, counts, reset
from tests.services.mongo import mongo_movies
from tests.services.postgres import execute, new_database, postgres_movies
from tests.services.redis import RedisServer
from tests.services.s3 import CREDENTIALS, S3Server, s3_movies
from tests.tables import read_movies
from tests.waiting import wait_for

TITLES = 130
LATENCY = 250
"""Milliseconds that the replica waits before it answers."""
COLLECTION = Collection(1, TITLES)
OF_CRAWLS = {
    **FAST,
    "FRONTIER_LEASE": "3",
    "STORE_BATCH_SECONDS": "0.3",
    "DOWNLOAD_DELAY": "0",
    "AUTOTHROTTLE_ENABLED": "0",
    "LOGSTATS_INTERVAL": "0",
}
SLOWLY = {**OF_CRAWLS, "CONCURRENT_REQUESTS": "1"}


def ids(first: int, last: int) -> list[str]:
    """Return some titles; each test has its own, as all share the stores."""
    return COLLECTION.imdb_ids[first:last]


@dataclass(frozen=True)
class Stores:
    """One of each."""

    folder: Path
    database: str
    mongo: str
    s3: str
    bucket: str

    @property
    def settings(self) -> dict[str, str]:
        return {
            "DATA_DIR": str(self.folder),
            "DATABASE_URL": self.database,
            "MONGO_URL": self.mongo,
            "S3_ENDPOINT_URL": self.s3,
            "S3_BUCKET": self.bucket,
            **{name: os.environ[name] for name in CREDENTIALS},
        }

    def csv(self) -> list[Movie]:
        path = self.folder / "movies.csv"
        return list(read_movies(path)) if path.exists() else []

    def all(self) -> dict[str, list[Movie]]:
        """Return what each store holds."""
        return {
            "csv": self.csv(),
            "postgres": postgres_movies(self.database),
            "mongo": mongo_movies(self.mongo),
            "s3": s3_movies(self.s3, self.bucket),
        }

    def times(self, titles: list[str]) -> dict[str, int]:
        """Return how often each of these stands in movies.csv."""
        return dict(Counter(str(movie.site_id) for movie in self.csv() if movie.site_id in titles))


@pytest.fixture(scope="module")
def stores(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: str, mongo_server: str, own_s3: S3Server
) -> Iterator[Stores]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, os.environ.get(name, value))
        name = f"test-{uuid.uuid4().hex}"
        made = Stores(
            tmp_path_factory.mktemp("data"),
            new_database(postgres_server),
            urlunsplit(urlsplit(mongo_server)._replace(path=f"/{name}")),
            os.environ.get("S3_ENDPOINT_URL") or own_s3.url,
            name,
        )
        with closing(boto3.session.Session().client("s3", endpoint_url=made.s3)) as s3:
            s3.create_bucket(Bucket=name)
        yield made
        execute(postgres_server, f"DROP DATABASE {urlsplit(made.database).path[1:]} WITH (FORCE)")


@pytest.fixture(scope="module")
def replica() -> Iterator[ReplicaProcess]:
    # Slow enough for a crawl to have a middle.
    with ReplicaProcess(titles=TITLES, light=True, latency=LATENCY) as running:
        yield running


@pytest.fixture(scope="module")
def cluster_of_ours(
    tmp_path_factory: pytest.TempPathFactory, replica: ReplicaProcess, stores: Stores
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("crawls")
    with RedisServer() as redis:
        options = {
            **replica.settings,
            **stores.settings,
            "REDIS_URL": redis.url,
            # So that three jobs are at three nodes.
            "SCRAPYD_MAX_PROC": "1",
        }
        with cluster(folder, redis.url, 3, **options) as made:
            assert made.nodes[0].deploy(project_egg(), "moviecrawler", "v1").json["spiders"] >= 3
            yield made


@pytest.fixture
def nodes(cluster_of_ours: Cluster, replica: ReplicaProcess) -> list[Node]:
    """Return two nodes that live, or three at first."""
    while len(living := [node for node in cluster_of_ours.nodes if node.process.poll() is None]) < 2:
        cluster_of_ours.add()
    reset(replica)
    return living


def name_of(job: dict[str, Any]) -> str:
    """Return the name of the node that a job is or was at."""
    return str(job["node"]).partition(":")[0]


def test_node_killed_in_the_middle_of_a_crawl_costs_no_title_in_any_store(
    nodes: list[Node], replica: ReplicaProcess, stores: Stores
) -> None:
    titles = ids(0, 40)
    killed, asked, _ = nodes
    shared = {**SLOWLY, "FRONTIER_RUN": "shared"}
    jobs = [killed.schedule("imdb", "moviecrawler", shared, ids=",".join(titles)) for _ in nodes]
    wait_for(lambda: {name_of(job) for job in asked.jobs("running")} == {node.name for node in nodes})
    wait_for(lambda: len(stores.times(titles)) >= 8, 120, lambda: "".join(node.log for node in nodes))
    assert len(stores.times(titles)) < len(titles)
    killed.kill()
    done = asked.wait_for_end(*jobs)
    assert {(job["reason"], job["run"]) for job in done} == {("finished", "shared")}
    assert killed.name not in {name_of(job) for job in done}
    for store, movies in stores.all().items():
        assert sorted(str(movie.site_id) for movie in movies) == sorted(titles), store
    # Those that were fetched a second time are the newer ones everywhere.
    one, *others = ({movie.site_id: movie.scraped_at for movie in movies} for movies in stores.all().values())
    assert others == [one] * 3
    assert [execute(stores.database, f"SELECT count(*) FROM {name}") for name in ("items", "scoreboard")] == [  # noqa: S608
        [(40,)],
        [(40,)],
    ]
    # What was in flight is fetched again, and nothing else is.
    assert sum(times > 1 for path, times in counts(replica)["paths"].items() if "/title/" in path) <= 20
    [run] = [run for run in asked.get("progress.json").json["runs"] if run["run"] == "shared"]
    assert (run["site"], run["done"], run["to_go"]) == ("imdb", 40, 0)
    done_of_run = 'moviecrawler_crawl_done{run="shared",site="imdb"} 40.0'
    assert [done_of_run in node.get("metrics").text for node in nodes[1:]] == [True, False], "one node speaks for all"
    shown = "".join(node.get("metrics").text for node in nodes[1:])
    assert 'moviecrawler_titles_total{outcome="stored",site="imdb"}' in shown, "its spiders' own figures"


@pytest.mark.long  # short ones: a node that ends gives its jobs to others, and recycled workers lose nothing
def test_new_version_is_rolled_out_in_the_middle_of_a_crawl(
    nodes: list[Node], stores: Stores, replica: ReplicaProcess
) -> None:
    titles = ids(60, 76)
    asked = nodes[0]
    newer = project_egg({"moviecrawler/settings.py": lambda text: f"{text}\nREDIRECT_MAX_TIMES = 7\n"})
    patient = {**SLOWLY, "DOWNLOAD_TIMEOUT": "60"}
    job = asked.schedule("imdb", "moviecrawler", patient, ids=",".join(titles))
    wait_for(lambda: stores.times(titles), 120, lambda: "".join(node.log for node in nodes))
    change(replica, latency=2_000)  # so that the crawl is not over before its node is stopped
    assert asked.deploy(newer, "moviecrawler", "v2").json["status"] == "ok"
    [at_work] = asked.jobs("running")
    first = next(node for node in nodes if node.name == name_of(at_work))
    other = next(node for node in nodes if node is not first)
    first.stop()
    change(replica, latency=0)
    [done] = other.wait_for_end(job)
    assert done["reason"] == "finished"
    second = next(node for node in nodes if node.name == name_of(done))
    assert second is not first
    assert stores.times(titles) == dict.fromkeys(titles, 1)
    logs = [(node.folder / "logs" / "moviecrawler" / "imdb" / f"{job}.log").read_text() for node in (first, second)]
    assert ["'REDIRECT_MAX_TIMES': 7" in log for log in logs] == [False, True]
    assert "'finish_reason': 'shutdown'" in logs[0]


@pytest.mark.long  # a short one: test_recycled_workers_lose_nothing_and_fetch_nothing_twice
def test_job_keeps_its_crawl_over_its_starts_and_shares_it_only_when_told(nodes: list[Node], stores: Stores) -> None:
    titles = ids(90, TITLES)
    asked = nodes[0]
    recycled = 'moviecrawler_jobs_total{event="recycled"}'
    limited = {**OF_CRAWLS, "FRONTIER_MAX_PAGES": "24"}
    job = asked.schedule("imdb", "moviecrawler", limited, ids=",".join(titles))
    [done] = asked.wait_for_end(job)
    assert (done["reason"], done["run"]) == ("finished", job)
    assert stores.times(titles) == dict.fromkeys(titles, 1)
    assert f"{recycled} 1.0" in asked.get("metrics").text
    few = ",".join(titles[:3])
    anew = asked.schedule("imdb", "moviecrawler", OF_CRAWLS, ids=few)
    shared = [
        asked.schedule("imdb", "moviecrawler", {**OF_CRAWLS, "FRONTIER_RUN": "shared"}, ids=few) for _ in range(2)
    ]
    ends = asked.wait_for_end(anew, *shared)
    assert [end["reason"] for end in ends] == ["finished"] * 3
    # Two that were asked for together fetch what they name once, however late the second one starts.
    assert (ends[0]["items"], ends[1]["items"] + ends[2]["items"]) == (3, 3)
    assert stores.times(titles) == dict.fromkeys(titles, 1)
