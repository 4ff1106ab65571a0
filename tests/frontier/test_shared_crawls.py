"""Crawls that several processes share, from the command line on."""

import json
import logging
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.basics.clock import utc_text
from moviecrawler.frontier.runs import describe_arguments
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, change, counts, scrapy
from tests.run_keys import SiteKeys
from tests.services.replica import COLLECTION, EVERYTHING, IDS, SPIDERS, ForkedReplica
from tests.waiting import wait_for
from tests.workers import SURE, WorkersOf, workers_on

logger = logging.getLogger(__name__)

PER_SECOND = 50


@pytest.mark.promise("Workers share a crawl and fetch no page of a run twice.")
@pytest.mark.parametrize("spider", SPIDERS)
def test_workers_together_store_the_site_and_ask_for_no_page_twice(
    workers_of_any: WorkersOf, spider: str, replica: ReplicaProcess
) -> None:
    with workers_of_any(spider, *EVERYTHING[spider], **SURE) as workers:
        workers.start(2)
        workers.end_with(0, 0)
        movies = workers.movies
    expected = set(COLLECTION.ids[spider].values())
    assert {movie.site_id for movie in movies} == expected
    assert len(movies) == len(expected)
    assert set(counts(replica, spider)["paths"].values()) == {1}


@pytest.mark.promise("Workers share a crawl and fetch no page of a run twice.")
def test_workers_of_one_run_fetch_nothing_twice_and_each_new_start_makes_a_new_run(
    workers_of_any: WorkersOf, replica: ReplicaProcess
) -> None:
    """As jobs that start every week: no page is held back as an earlier run has seen it."""
    for number, late in ((1, False), (2, False), (2, True)):
        begun = f"{time.time() - 3600:.3f}" if late else "0"
        with workers_of_any(
            "imdb", "list=boxoffice", f"ids={IDS[0]}", FRONTIER_ASKED_AT=begun
        ) as workers:
            workers.start()
            workers.end_with(0)
            # Whoever was asked for before the run was over has nothing to do, and gives the same
            # account.
            assert ("finished at" in workers.log) == late
            assert workers.log.splitlines()[-1] == "  next: nothing is left"
        assert set(counts(replica)["paths"].values()) <= {number, 2 * number}, number
        assert counts(replica)["paths"]["/chart/boxoffice/"] == number


@pytest.mark.promise("A run with a name is made once.")
@pytest.mark.promise("A worker whose arguments differ from the run's is refused.")
def test_run_of_a_name_is_made_once_and_refused_to_other_arguments(
    workers_of_any: WorkersOf, replica: ReplicaProcess
) -> None:
    for argument, code, says in (
        (f"ids={IDS[0]}", 0, "nothing is left"),
        (f"ids={IDS[0]}", 0, "finished at"),
        (f"ids={IDS[1]}", 1, f"run 'weekly' was started with ids={IDS[0]}"),
    ):
        with workers_of_any("imdb", argument, FRONTIER_RUN="weekly") as workers:
            workers.start()
            workers.end_with(code)
            assert says in workers.log
            assert f"this worker has ids={IDS[1]}" in workers.log or not code
    assert counts(replica)["requests"] == 1
    long = ",".join(IDS)
    assert describe_arguments([f"{long},tt1"], {}) != describe_arguments([f"{long},tt2"], {})


@pytest.mark.promise("A limit is kept, with no more list pages than it needs.")
def test_limit_is_that_of_all_workers_and_no_title_is_lost_though_pages_are_missing(
    workers_of_any: WorkersOf, replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, latency=100)
    # No batch is due by its age: the last ones are written as nothing is queued.
    with workers_of_any(
        "metacritic", "list=sitemap", "limit=25", STORE_BATCH_SECONDS="3600"
    ) as workers:
        workers.start(2)
        wait_for(lambda: workers.state("titles") == 25)
        change(replica, faults={"404": 0.15})
        workers.end_with(0, 0)
        ended = {movie.site_id for movie in workers.movies} | set(
            Finished(0, "", "", tmp_path).misses
        )
        assert len(ended) == workers.state("titles") == 25
        assert workers.state("dead") == 0


@pytest.mark.promise("Seeds that others push are fetched, and bad ones become dead letters.")
def test_seeds_from_outside_are_taken_and_what_is_bad_is_set_aside(
    workers_of: WorkersOf,
    replica: ReplicaProcess,
    redis_url: str,
    redis_client: redis.Redis,
    tmp_path: Path,
) -> None:
    wanted = IDS[:6]
    redis_client.rpush(
        "imdb:start_urls",
        f"https://www.imdb.com/title/{wanted[0]}/?ref_=x",
        "rubbish",
        b"\xff",
        wanted[1],
    )
    redis_client.rpush(
        "imdb:start_urls",
        json.dumps({"url": wanted[2], "priority": 100}),
        '{"url": 1}',
        '{"meta": {}}',
    )
    with workers_of("imdb", f"ids={wanted[3]}", FRONTIER_IDLE="3600") as workers:
        workers.start()
        wait_for(lambda: counts(replica)["requests"] == 4 and workers.count("requests") == 0)
        redis_client.rpush("imdb:start_urls", wanted[4], wanted[0])
        wait_for(lambda: counts(replica)["requests"] == 6 and workers.count("requests") == 0)
        workers.running[0].send_signal(signal.SIGTERM)
        workers.end_with(1)  # as there are dead letters
        assert {movie.site_id for movie in workers.movies} == set(wanted[:5])
    assert counts(replica)["requests"] == 6  # a seed is fetched again
    assert redis_client.llen("imdb:start_urls") == 0
    told = scrapy("deadletters", "--json", "-s", f"REDIS_URL={redis_url}", data=tmp_path)
    reasons = [json.loads(line)["reason"] for line in told.output.splitlines()]
    assert len(reasons) == 4
    assert all(reason.startswith("a bad seed: ") for reason in reasons)


@pytest.mark.promise(
    "Live sites have budgets a second and a day, and all workers together keep them."
)
def test_workers_together_keep_the_budget(redis_url: str, tmp_path: Path) -> None:
    seconds = 4
    titles = PER_SECOND * seconds
    wanted = tmp_path / "ids"
    wanted.write_text("\n".join(Collection(1, titles).imdb_ids))
    budget: dict[str, Any] = {
        "SITE_BUDGETS": json.dumps({"127.0.0.1": {"per_second": PER_SECOND}}),
        "CSV_ENABLED": "0",
    }
    with ForkedReplica(titles=titles, light=True) as replica:
        with workers_on(replica, redis_url, tmp_path)(
            "imdb", f"file={wanted}", **budget
        ) as workers:
            workers.start(3)
            workers.end_with(*[0] * 3)
        by_second = {int(second): number for second, number in counts(replica)["seconds"].items()}
    first = min(by_second)
    last = max(by_second)
    windows = [
        sum(by_second.get(start + i, 0) for i in range(3)) for start in range(first, last - 1)
    ]
    logger.info(
        "3 workers: %s requests in 3 s, %d in %d s",
        windows,
        sum(by_second.values()),
        last - first + 1,
    )
    assert windows
    assert max(windows) <= PER_SECOND * 3
    assert sum(by_second.values()) == titles <= PER_SECOND * (last - first + 1) * 1.02


def test_refusal_stops_all_workers_and_what_is_queued_is_stored_once_the_site_answers(
    workers_of: WorkersOf,
    replica: ReplicaProcess,
    redis_url: str,
    redis_client: redis.Redis,
    tmp_path: Path,
) -> None:
    change(replica, latency=100, rate_limit=10)
    with workers_of("metacritic", "list=new", **SURE) as workers:
        workers.start(2)
        workers.end_with(1, 1)
        assert workers.log.count("(site_stopped)") >= 2
        assert workers.state("requested") > workers.state("done")
        told = scrapy("progress", "--json", "-s", f"REDIS_URL={redis_url}", data=tmp_path)
        [figures] = json.loads(told.output)["runs"]
        assert figures["state"] == "stopped"
        assert "is blocking us" in figures["refusal"]
        # The pause is over, and the site answers again.
        change(replica, latency=0, rate_limit=None)
        redis_client.hset(SiteKeys("metacritic").circuit, "until", 1)
        workers.start(2)
        workers.end_with(0, 0)
    read = [movie.site_id for movie in workers.movies if movie.source == "page"]
    assert len(read) == len(set(read)) == len(COLLECTION.ids["metacritic"])
    assert not redis_client.exists("{metacritic}:circuit")


def test_titles_that_may_not_be_fetched_are_read_from_the_datasets_by_one_worker(
    workers_of_any: WorkersOf, replica: ReplicaProcess
) -> None:
    change(replica, robots="live")
    for argument in ("list=top", f"ids={','.join(IDS[:20])}"):
        with workers_of_any(
            "imdb", argument, "limit=30", CONCURRENT_REQUESTS="1", IMDB_DATASETS="ratings"
        ) as workers:
            workers.start(2)
            workers.end_with(0, 0)
            assert workers.movies
    assert not [path for path in counts(replica)["paths"] if path.startswith(("/title", "/chart"))]


def test_a_worker_that_starts_while_the_site_refuses_us_says_so_and_ends(
    redis_url: str, redis_client: redis.Redis, replica: ReplicaProcess, tmp_path: Path
) -> None:
    until = (datetime.now(UTC).timestamp() + 3600) * 1000
    redis_client.hset(
        SiteKeys("metacritic").circuit,
        mapping={"until": f"{until:.0f}", "reason": "metacritic is blocking us", "trips": 1},
    )
    finished = scrapy(
        "crawl",
        "metacritic",
        data=tmp_path,
        replica=replica,
        REDIS_URL=redis_url,
    )
    assert finished.code == 1
    why = f"metacritic is blocking us; metacritic is paused until {utc_text(until / 1000)}"
    assert finished.log.count(why) == 2  # when it is noticed, and in what comes next
    assert "(site_stopped)" in finished.log
    assert "Traceback" not in finished.log, finished.log
    assert counts(replica, "metacritic")["requests"] == 0
