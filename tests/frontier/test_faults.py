"""What may happen to a crawl on many nodes, with real processes and a real Redis.

The union of what they store is the site.
"""

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.database.sqlite import open_sqlite, transaction
from moviecrawler.frontier.scheduler import BATCH
from moviecrawler.items import Movie
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts
from tests.services.mongo import mongo_movies
from tests.services.postgres import postgres_movies
from tests.services.proxy import Proxy
from tests.services.redis import RedisServer
from tests.services.replica import IDS, TITLES, ForkedReplica
from tests.services.s3 import CREDENTIALS, s3_movies
from tests.waiting import wait_for
from tests.workers import SURE, Workers, WorkersOf, paused, workers_on

logger = logging.getLogger(__name__)

SLOWLY: dict[str, Any] = {"CONCURRENT_REQUESTS": "4"}
"""With the latency of these tests, so that a crawl takes some seconds."""
ALL = f"ids={','.join(IDS)}"


@pytest.fixture(autouse=True)
def _slow(replica: ReplicaProcess) -> None:
    change(replica, latency=300)


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """Return a Redis that the test may stop."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def own_workers_of(replica: ReplicaProcess, own_redis: RedisServer, tmp_path: Path) -> WorkersOf:
    """Return what makes the workers of a test, on a Redis of its own."""
    return workers_on(replica, own_redis.url, tmp_path)


def fetched(replica: ReplicaProcess) -> dict[str, int]:
    return {
        path: number
        for path, number in counts(replica)["paths"].items()
        if path.startswith("/title/")
    }


def assert_whole(movies: list[Movie], expected: list[str] | None = None) -> None:
    stored = [movie.site_id for movie in movies]
    assert len(stored) == len(set(stored))
    assert set(stored) == set(expected or IDS)


def assert_all_done(workers: Workers, titles: int = TITLES) -> None:
    assert workers.state("done") == workers.state("requested") == titles + 1  # with the arguments
    assert workers.state("dead") == 0


def have_been_fetched(replica: ReplicaProcess, count: int) -> bool:
    return len(fetched(replica)) >= count


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
@pytest.mark.parametrize(
    ("titles", "kills"), [(100, 3), pytest.param(1000, 10, marks=pytest.mark.long)]
)
def test_killed_workers_lose_no_title_and_double_none(
    own_redis: RedisServer,
    database_url: str,
    mongo_url: str,
    s3_url: str,
    bucket_name: str,
    tmp_path: Path,
    titles: int,
    kills: int,
) -> None:
    expected = Collection(1, titles).imdb_ids
    (tmp_path / "ids").write_text("\n".join(expected))
    stores = {
        "DATABASE_URL": database_url,
        "MONGO_URL": mongo_url,
        "S3_BUCKET": bucket_name,
        "S3_ENDPOINT_URL": s3_url,
    }
    with (
        ForkedReplica(titles=titles, light=True, latency=100) as replica,
        Workers(
            *("imdb", f"file={tmp_path / 'ids'}"),
            data=tmp_path,
            replica=replica,
            redis_url=own_redis.url,
            environment={name: os.environ[name] for name in CREDENTIALS},
            FRONTIER_LEASE="5",  # long enough that no worker is taken for dead that is only slow
            FRONTIER_DELIVERIES=str(
                2 * kills
            ),  # a title that every kill hits is not to blame for any
            FRONTIER_RUN="killed",
            **stores,
        ) as workers,
    ):
        workers.start(3)
        for number in range(1, kills + 1):
            wait_for(
                partial(have_been_fetched, replica, titles * number // (kills + 2)),
                detail=lambda: workers.log,
            )
            workers.kill()
            workers.start()
        workers.end_with(0, 0, 0)
        for movies in (
            *(workers.movies, postgres_movies(database_url), mongo_movies(mongo_url)),
            s3_movies(s3_url, bucket_name),
        ):
            assert_whole(movies, expected)
        again = sum(fetched(replica).values()) - titles
        assert_all_done(workers, titles)
    logger.info("%d kills: %d of %d pages were fetched again", kills, again, titles)
    assert (
        again <= kills * 150
    )  # what a worker holds: in flight, taken ahead, and waiting for its stores


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
def test_what_killed_workers_held_does_not_wait_for_batches_to_be_due(
    own_redis: RedisServer, s3_url: str, bucket_name: str, tmp_path: Path
) -> None:
    """What was handed out twice is handed out alone, and so fills no batch of a store."""
    titles = 100
    expected = Collection(1, titles).imdb_ids
    (tmp_path / "ids").write_text("\n".join(expected))
    with (
        ForkedReplica(titles=titles, light=True, latency=100) as replica,
        Workers(
            *("imdb", f"file={tmp_path / 'ids'}"),
            data=tmp_path,
            replica=replica,
            redis_url=own_redis.url,
            environment={name: os.environ[name] for name in CREDENTIALS},
            S3_BUCKET=bucket_name,
            S3_ENDPOINT_URL=s3_url,
            FRONTIER_LEASE="2",
            FRONTIER_DELIVERIES="20",
            STORE_BATCH_SECONDS="3600",
        ) as workers,
    ):
        for _ in range(3):
            workers.start()
            wait_for(lambda: workers.count("leases") > BATCH // 2, detail=lambda: workers.log)
            workers.kill()
        killed_at = time.monotonic()
        workers.start()
        workers.end_with(0)
        seconds = time.monotonic() - killed_at
        assert_whole(s3_movies(s3_url, bucket_name), expected)
    logger.info("after the last kill, %d titles took %.0f s", titles, seconds)


@pytest.mark.promise("Redis may go away and come back: nothing is lost.")
def test_redis_may_be_killed_and_started_again(
    own_workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer
) -> None:
    with own_workers_of("imdb", ALL, **SLOWLY) as workers:
        workers.start(2)
        wait_for(lambda: workers.count("workers") == 2)
        wait_for(partial(have_been_fetched, replica, TITLES // 4))
        own_redis.stop()
        time.sleep(2.2)  # longer than a lease
        own_redis.start()
        workers.end_with(0, 0)
        assert_whole(workers.movies)
        assert "Traceback" not in workers.log
        assert_all_done(workers)


@pytest.mark.promise("Redis may go away and come back: nothing is lost.")
def test_redis_may_be_out_of_memory_for_a_while(
    own_workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer
) -> None:
    with own_workers_of("metacritic", "list=new", **SLOWLY) as workers:
        workers.start(2)
        wait_for(lambda: counts(replica, "metacritic")["requests"] >= 5)
        own_redis.client.config_set("maxmemory", "1")
        wait_for(lambda: "Redis at REDIS_URL has no memory left" in workers.log)
        time.sleep(2.5)  # longer than a lease: heartbeats are taken all the same
        own_redis.client.config_set("maxmemory", "0")
        workers.end_with(0, 0)
        assert (
            len(workers.movies) == len({movie.site_id for movie in workers.movies}) > TITLES * 0.8
        )
        assert workers.state("dead") == 0


def test_a_redis_that_evicts_is_refused_with_a_sentence(
    own_workers_of: WorkersOf, own_redis: RedisServer
) -> None:
    own_redis.client.config_set("maxmemory", 10**9)
    own_redis.client.config_set("maxmemory-policy", "volatile-lru")
    with own_workers_of("imdb", ALL) as workers:
        workers.start()
        workers.end_with(1)
        assert "(volatile-lru); set its maxmemory-policy to noeviction" in workers.log


def test_unreachable_redis_ends_the_crawl_at_once_with_a_sentence(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    with Workers(
        "imdb", data=tmp_path, replica=replica, redis_url="redis://127.0.0.1:1/0"
    ) as workers:
        workers.start()
        workers.end_with(1)
        assert "start it, or remove REDIS_URL" in workers.log
        assert "Traceback" not in workers.log


def test_worker_that_slept_for_two_leases_changes_nothing_of_what_others_did(
    own_workers_of: WorkersOf, replica: ReplicaProcess
) -> None:
    change(replica, latency=3_000)  # the second may start late
    with own_workers_of("imdb", ALL, FRONTIER_LEASE="1", **SLOWLY) as workers:
        workers.start(2)
        wait_for(lambda: workers.count("leases") > BATCH)  # which both of them hold
        change(replica, latency=300)
        # Not while it writes to the database of the folder that they share: the other would wait
        # for it.
        with closing(open_sqlite(workers.data)) as database, transaction(database, "IMMEDIATE"):
            workers.running[0].send_signal(signal.SIGSTOP)
        wait_for(lambda: workers.count("requests") == 0)
        time.sleep(2)
        workers.running[0].send_signal(signal.SIGCONT)
        workers.end_with(0, 0)
        assert_whole(workers.movies)
        assert_all_done(workers)


@pytest.mark.promise(
    "A worker that is told to end gives back what it has not done, within seconds."
)
def test_worker_that_closes_takes_nothing_more_and_gives_back_however_slow_the_site_is(
    own_workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer
) -> None:
    with (
        own_workers_of("imdb", "via=pages", ALL, **{**SURE, "DOWNLOAD_TIMEOUT": "600"}) as workers,
        paused(replica),
    ):
        workers.start(environment={"FRONTIER_MAX_PAGES": "4"})
        wait_for(lambda: workers.count("leases") == 4)  # before the other takes all
        workers.start()
        wait_for(
            lambda: workers.count("requests") == TITLES and workers.count("leases") > BATCH + 2
        )
        wait_for(lambda: "(recycled)" in workers.log)
        own_redis.client.rpush("imdb:start_urls", IDS[0])
        began = time.monotonic()
        workers.running[1].send_signal(signal.SIGTERM)
        workers.end_with(3, 3)
        assert time.monotonic() - began < 15
        assert workers.count("leases") == 0
        assert workers.count("queue") == TITLES
        assert own_redis.client.llen("imdb:start_urls") == 1
        assert "Traceback" not in workers.log


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 3)])
def test_datasets_that_a_worker_did_not_come_to_read_are_read_by_the_next(
    own_workers_of: WorkersOf, replica: ReplicaProcess, number: int, code: int
) -> None:
    # The first request fails while its worker closes, and the next worker joins the same run.
    settings = {
        "IMDB_DATASETS": "ratings",
        "DOWNLOAD_TIMEOUT": "5",
        "RETRY_TIMES": "0",
        "FRONTIER_RUN": "one",
    }
    with own_workers_of("imdb", "via=datasets", ALL, **settings) as workers:
        with paused(replica):
            workers.start()
            wait_for(lambda: workers.count("leases") == 1)
            time.sleep(1)  # so that its first request is under way
            workers.running[0].send_signal(number)
            workers.running[0].wait(60)
        workers.start()
        workers.end_with(code, 0)
        assert_whole(workers.movies)


def test_job_whose_node_died_goes_on_in_its_run(
    own_workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer
) -> None:
    asked_at = f"{time.time():.3f}"  # when the job was queued: its next start is given the same
    with own_workers_of(
        "imdb", ALL, FRONTIER_RUN="job1", FRONTIER_ASKED_AT=asked_at, **SLOWLY
    ) as workers:
        workers.start()
        wait_for(
            lambda: workers.count("requests") and workers.state("done") > 3,
            detail=lambda: workers.log,
        )
        workers.kill()
        done = workers.state("done") - 1  # without the arguments
        for _ in range(2):
            workers.start()
            workers.end_with(0)
        assert own_redis.client.zcard(workers.keys.site.runs) == 1
        assert_all_done(workers)
        assert_whole(workers.movies)
    assert "finished at" in workers.log
    assert sum(fetched(replica).values()) <= 2 * TITLES - done


@pytest.mark.promise(
    "A worker that is told to end gives back what it has not done, within seconds."
)
def test_terminated_and_recycled_workers_hand_back_what_they_have_not_done(
    own_workers_of: WorkersOf, replica: ReplicaProcess, tmp_path: Path
) -> None:
    slowly: dict[str, Any] = {"SITE_BUDGETS": '{"127.0.0.1": {"per_second": 5}}', **SURE}
    with own_workers_of("imdb", ALL, **slowly) as workers:
        workers.start()
        wait_for(partial(have_been_fetched, replica, 10))
        workers.running[0].send_signal(signal.SIGTERM)
        workers.end_with(3)
        assert workers.count("leases") == 0
        done = workers.state("done") - 1  # without the arguments
        assert 0 < done < TITLES - 10
    change(replica, latency=0)
    for name, most in (("recycled", 10), ("last", 0)):
        (tmp_path / name).mkdir()
        with own_workers_of(
            "imdb", ALL, data=tmp_path / name, FRONTIER_MAX_PAGES=str(most), **SURE
        ) as others:
            others.start()
            others.end_with(3 if most else 0)
            assert len(others.movies) == (most or TITLES - done - 10)
            assert ("(recycled)" in others.log) == bool(most)
    assert sum(fetched(replica).values()) == TITLES


def test_sigterm_ends_a_worker_though_redis_answers_late(
    own_redis: RedisServer, replica: ReplicaProcess, tmp_path: Path
) -> None:
    with (
        Proxy("127.0.0.1", own_redis.port) as proxy,
        Workers(
            "imdb",
            ALL,
            data=tmp_path,
            replica=replica,
            redis_url=f"redis://{proxy.address}/0",
            **SLOWLY,
        ) as workers,
    ):
        workers.start()
        wait_for(partial(have_been_fetched, replica, 5), detail=lambda: workers.log)
        proxy.latency = 2.0
        time.sleep(3)
        began = time.monotonic()
        workers.running[0].send_signal(signal.SIGTERM)
        workers.running[0].wait(60)
        assert time.monotonic() - began < 15
        proxy.latency = 0.0
        workers.end_with(3)


_DEADLY = """
import os
from moviecrawler.spiders.imdb import ImdbSpider

class Deadly:
    def update_settings(self, settings):
        read_title = ImdbSpider.read_title
        ImdbSpider.read_title = lambda spider, page: (
            os._exit(9) if "{}" in page.url else read_title(spider, page)
        )
"""


@pytest.mark.promise(
    "A page that kills its workers becomes a dead letter, and nothing else with it."
)
def test_page_that_kills_its_workers_is_the_only_dead_letter_of_its_batch(
    own_workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer, tmp_path: Path
) -> None:
    given = IDS[:BATCH]
    change(replica, latency=20)
    (tmp_path / "deadly.py").write_text(_DEADLY.format(given[16]))
    addons = '{"moviecrawler.addon.MovieCrawlerAddon": 0, "deadly.Deadly": 1}'
    arguments: dict[str, Any] = {
        "ADDONS": addons,
        "FRONTIER_DELIVERIES": "3",
        "FRONTIER_LEASE": "1",
    }
    with own_workers_of("imdb", f"ids={','.join(given)}", **arguments) as workers:
        codes = []
        for _ in range(4):
            workers.start()
            codes += workers.wait()
        # The last one has seen the run's end, and answers for its dead letter.
        assert codes == [9, 9, 9, 1], workers.log
        assert_whole(workers.movies, [*given[:16], *given[17:]])
        assert "next: `scrapy deadletters` has 1 requests that were given up" in workers.log
        [(_, letter)] = own_redis.client.hgetall(workers.keys.dead).items()
        assert given[16].encode() in letter
