"""Crawls of the project itself on a cluster, from a replica, into two stores."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts, reset
from tests.processes import FAST
from tests.services.nodes import Cluster, Node, cluster, name_of, project_egg
from tests.services.postgres import execute, new_database, postgres_movies
from tests.services.redis import RedisServer
from tests.services.replica import ReplicaOf
from tests.tables import read_movies, sqlite_movies
from tests.waiting import wait_for

TITLES = 60
COLLECTION = Collection(1, TITLES)
SLOWLY = {
    **FAST,
    "FRONTIER_LEASE": "3",
    "STORE_BATCH_SECONDS": "0.3",
    "DOWNLOAD_DELAY": "0",
    "AUTOTHROTTLE_ENABLED": "0",
    "LOGSTATS_INTERVAL": "0",
    "CONCURRENT_REQUESTS": "1",
}


@pytest.fixture(scope="module")
def crawls_url(postgres_server: str) -> Iterator[str]:
    """Return the URL of the database of all crawls."""
    url = new_database(postgres_server)
    yield url
    execute(postgres_server, f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the CSV files."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def sluggish(replica_of: ReplicaOf) -> ReplicaProcess:
    """Return a replica that is slow enough for a crawl to have a middle."""
    return replica_of(titles=TITLES, light=True, latency=250)


@pytest.fixture(scope="module")
def cluster_of_ours(
    tmp_path_factory: pytest.TempPathFactory, sluggish: ReplicaProcess, crawls_url: str, data: Path
) -> Iterator[Cluster]:
    """Return three nodes with the project, of which tests kill some.

    All but the first one fork their jobs.
    """
    options = {
        **sluggish.settings,
        "DATABASE_URL": crawls_url,
        "DATA_DIR": str(data),
        "SCRAPYD_MAX_PROC": "1",
    }
    with (
        RedisServer() as redis,
        cluster(
            tmp_path_factory.mktemp("crawls"), redis.url, 1, REDIS_URL=redis.url, **options
        ) as made,
    ):
        made.forks_jobs = True
        made.add(2)
        assert made.nodes[0].deploy(project_egg(), "moviecrawler", "v1").json["spiders"] >= 3
        yield made


@pytest.fixture
def survivors(cluster_of_ours: Cluster, sluggish: ReplicaProcess) -> list[Node]:
    """Return two nodes that live, or three at first."""
    while (
        len(living := [node for node in cluster_of_ours.nodes if node.process.poll() is None]) < 2
    ):
        cluster_of_ours.add()
    reset(sluggish)
    return living


def times(data: Path, titles: list[str]) -> dict[str, int]:
    """Return how often each of these titles is stored so far."""
    found = [str(movie.site_id) for movie in sqlite_movies(data)]
    return dict(Counter(site_id for site_id in found if site_id in titles))


@pytest.mark.promise(
    "A dead node's jobs run again on the others, and each of their titles is stored once."
)
def test_node_killed_in_the_middle_of_a_crawl_costs_no_title_in_any_store(
    survivors: list[Node], sluggish: ReplicaProcess, data: Path, crawls_url: str
) -> None:
    titles = COLLECTION.imdb_ids[:40]
    killed, asked, _ = survivors
    shared = {**SLOWLY, "FRONTIER_RUN": "shared"}
    change(sluggish, latency=1_500)  # so that the crawl is not over before the node is killed
    jobs = [
        killed.schedule("imdb", "moviecrawler", shared, ids=",".join(titles)) for _ in survivors
    ]
    wait_for(
        lambda: {name_of(job) for job in asked.jobs("running")} == {node.name for node in survivors}
    )
    wait_for(
        lambda: len(times(data, titles)) >= 8, 120, lambda: "".join(node.log for node in survivors)
    )
    assert len(times(data, titles)) < len(titles)
    killed.kill()
    change(sluggish, latency=100)
    done = asked.wait_for_end(*jobs)
    assert {(job["reason"], job["run"]) for job in done} == {("finished", "shared")}
    assert killed.name not in {name_of(job) for job in done}
    stores = [list(read_movies(data / "movies.csv")), postgres_movies(crawls_url)]
    for movies in stores:
        assert sorted(str(movie.site_id) for movie in movies) == sorted(titles)
    # Those that were fetched a second time are the newer ones everywhere.
    one = {movie.site_id: movie.scraped_at for movie in stores[0]}
    other = {movie.site_id: movie.scraped_at for movie in stores[1]}
    assert one == other
    # What was in flight is fetched again, and nothing else is.
    assert (
        sum(times > 1 for path, times in counts(sluggish)["paths"].items() if "/title/" in path)
        <= 20
    )
    [run] = [run for run in asked.get("progress.json").json["runs"] if run["run"] == "shared"]
    assert (run["site"], run["done"], run["to_go"]) == ("imdb", 41, 0)
    shown = "".join(node.get("metrics").text for node in survivors[1:])
    assert 'moviecrawler_titles_total{outcome="stored",site="imdb"}' in shown, (
        "its spiders' own figures"
    )


@pytest.mark.long  # a short one: a node that ends gives its jobs to others
def test_new_version_is_for_new_jobs_and_a_job_keeps_its_own_on_another_node(
    survivors: list[Node], sluggish: ReplicaProcess, data: Path
) -> None:
    titles = COLLECTION.imdb_ids[40:56]
    asked = survivors[0]
    newer = project_egg(
        {"moviecrawler/settings.py": lambda text: f"{text}\nREDIRECT_MAX_TIMES = 7\n"}
    )
    job = asked.schedule("imdb", "moviecrawler", SLOWLY, ids=",".join(titles))
    wait_for(lambda: times(data, titles), 120, lambda: "".join(node.log for node in survivors))
    change(sluggish, latency=2_000)  # so that the crawl is not over before its node is stopped
    assert asked.deploy(newer, "moviecrawler", "v2").json["status"] == "ok"
    [at_work] = asked.jobs("running")
    first = next(node for node in survivors if node.name == name_of(at_work))
    other = next(node for node in survivors if node is not first)
    first.stop()
    change(sluggish, latency=0)
    [done] = other.wait_for_end(job)
    assert (done["reason"], done["version"]) == ("finished", "v1")
    assert [start["how"] for start in done["starts"]] == ["handed_back", "finished"]
    assert done["items"] >= len(titles), "those of both starts"
    second = next(node for node in survivors if node.name == name_of(done))
    assert second is not first
    assert times(data, titles) == dict.fromkeys(titles, 1)
    logs = [
        (node.folder / "logs" / "moviecrawler" / "imdb" / f"{job}.log").read_text()
        for node in (first, second)
    ]
    assert ["'REDIRECT_MAX_TIMES': 7" in log for log in logs] == [False, False]
    assert "'finish_reason': 'shutdown'" in logs[0]
    [newer_job] = other.wait_for_end(other.schedule("imdb", "moviecrawler", ids=titles[0]))
    assert newer_job["version"] == "v2"


def test_job_with_the_arguments_of_a_cancelled_one_goes_on_with_its_run(
    survivors: list[Node], sluggish: ReplicaProcess, data: Path
) -> None:
    titles = list(COLLECTION.ids["metacritic"].values())[:12]
    asked = survivors[0]
    change(sluggish, latency=500)  # so that the crawl is not over before it is cancelled
    job = asked.schedule("metacritic", "moviecrawler", SLOWLY, ids=",".join(titles))
    wait_for(lambda: times(data, titles), 120, lambda: "".join(node.log for node in survivors))
    asked.post("cancel.json", project="moviecrawler", job=job)
    [cancelled] = asked.wait_for_end(job)
    assert cancelled["reason"] == "cancelled"
    [run] = _runs_of(asked, "metacritic")
    assert 0 < run["to_go"] < run["total"] == len(titles) + 1  # with the arguments
    change(sluggish, latency=0)
    again = asked.schedule("metacritic", "moviecrawler", SLOWLY, ids=",".join(titles))
    [done] = asked.wait_for_end(again)
    assert (done["reason"], done["exit_code"]) == ("finished", 0)
    assert _runs_of(asked, "metacritic") == [run | {"to_go": 0, "done": run["total"]}]
    assert times(data, titles) == dict.fromkeys(titles, 1)


def _runs_of(node: Node, site: str) -> list[dict[str, Any]]:
    """Return some figures of the current runs of a site."""
    names = ("run", "arguments", "total", "done", "to_go", "started_at")
    runs = node.get("progress.json").json["runs"]
    return [{name: run[name] for name in names} for run in runs if run["site"] == site]
