"""What may happen to a crawl on many nodes, with real processes and a real Redis; the union of what they store is the site."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.items import Movie
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts
from tests.frontier.workers import SURE, Workers, WorkersOf, workers_on
from tests.services.mongo import mongo_movies
from tests.services.postgres import postgres_movies
from tests.services.redis import RedisServer
from tests.services.replica import IDS, TITLES
from tests.services.s3 import CREDENTIALS, s3_movies
from tests.waiting import wait_for

logger = logging.getLogger(__name__)

SLOWLY: dict[str, Any] = {"CONCURRENT_REQUESTS": "4"}
"""With the latency of these tests, so that a crawl takes some seconds."""


@pytest.fixture(autouse=True)
def _slow(replica: ReplicaProcess) -> None:
    change(replica, latency=300)


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


def ids_of(titles: int) -> list[str]:
    return Collection(1, titles).imdb_ids


ALL = f"ids={','.join(IDS)}"


@pytest.fixture
def workers_of(replica: ReplicaProcess, own_redis: RedisServer, tmp_path: Path) -> WorkersOf:
    return workers_on(replica, own_redis.url, tmp_path)


def fetched(replica: ReplicaProcess) -> dict[str, int]:
    return {path: number for path, number in counts(replica)["paths"].items() if path.startswith("/title/")}


def assert_whole(movies: list[Movie], expected: list[str] | None = None) -> None:
    stored = [movie.site_id for movie in movies]
    assert len(stored) == len(set(stored))
    assert set(stored) == set(expected or IDS)


def have_been_fetched(replica: ReplicaProcess, count: int) -> bool:
    return len(fetched(replica)) >= count


def have_joined(server: RedisServer, count: int) -> bool:
    return server.client.zcard("{imdb}:default:workers") >= count


def in_flight(server: RedisServer, node: str = "*") -> int:
    return sum(server.client.hlen(key) for key in server.client.keys(f"{{imdb}}:*:leases:{node}-*"))


def state(server: RedisServer, name: str) -> int:
    return int(server.client.hget("{imdb}:default:state", name) or 0)


@pytest.mark.parametrize(("titles", "kills"), [(100, 3), pytest.param(1000, 10, marks=pytest.mark.long)])
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
    expected = ids_of(titles)
    (tmp_path / "ids").write_text("\n".join(expected))
    lost = 0
    stores = {"DATABASE_URL": database_url, "MONGO_URL": mongo_url, "S3_BUCKET": bucket_name, "S3_ENDPOINT_URL": s3_url}
    with (
        ReplicaProcess(titles=titles, light=True, latency=100) as replica,
        Workers(
            *("imdb", f"file={tmp_path / 'ids'}"),
            data=tmp_path,
            replica=replica,
            redis_url=own_redis.url,
            environment={name: os.environ[name] for name in CREDENTIALS},
            FRONTIER_LEASE="5",  # long enough that no worker is taken for dead that is only slow
            FRONTIER_DELIVERIES=str(2 * kills),  # a title that every kill hits is not to blame for any
            **stores,
        ) as workers,
    ):
        workers.start(3)
        for number in range(1, kills + 1):
            wait_for(partial(have_been_fetched, replica, titles * number // (kills + 2)))
            lost += in_flight(own_redis, workers.kill())
            workers.start()
        assert workers.wait() == [0, 0, 0], workers.log
        for movies in (
            *(workers.movies, postgres_movies(database_url), mongo_movies(mongo_url)),
            s3_movies(s3_url, bucket_name),
        ):
            assert_whole(movies, expected)
        again = sum(fetched(replica).values()) - titles
    logger.info("%d kills: %d of %d pages were fetched again, %d were in flight", kills, again, titles, lost)
    assert again <= lost
    assert state(own_redis, "done") == state(own_redis, "total") == titles
    assert state(own_redis, "failed") == 0


def test_redis_may_be_away_for_a_while(workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer) -> None:
    with workers_of("imdb", ALL, **SLOWLY) as workers:
        workers.start(2)
        wait_for(partial(have_joined, own_redis, 2))
        wait_for(partial(have_been_fetched, replica, TITLES // 4))
        own_redis.stop()
        time.sleep(2.2)  # longer than a lease
        own_redis.start()
        assert workers.wait() == [0, 0], workers.log
        assert_whole(workers.movies)
        assert "Traceback" not in workers.log
        assert state(own_redis, "done") == state(own_redis, "total") == TITLES


def test_redis_may_be_full_for_a_while(workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer) -> None:
    with workers_of("metacritic", "list=new", **SLOWLY) as workers:
        workers.start(2)
        wait_for(lambda: own_redis.client.zcard("{metacritic}:default:workers") == 2)
        wait_for(lambda: counts(replica, "metacritic")["requests"] >= 5)
        own_redis.client.config_set("maxmemory", "1")
        time.sleep(1.5)
        own_redis.client.config_set("maxmemory", "0")
        assert workers.wait() == [0, 0], workers.log
        assert "can't be used" in workers.log
        assert len(workers.movies) == len({movie.site_id for movie in workers.movies}) > TITLES * 0.8
        assert "'frontier/dead_letters'" not in workers.log


def test_empty_redis_ends_the_crawl_with_an_error(
    workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer
) -> None:
    with workers_of("imdb", ALL, **SLOWLY) as workers:
        workers.start(2)
        wait_for(partial(have_joined, own_redis, 2))
        wait_for(partial(have_been_fetched, replica, TITLES // 4))
        own_redis.stop()
        own_redis.start(empty=True)
        assert workers.wait() == [1, 1], workers.log
        assert workers.log.count("what this crawl had queued is lost") == 2


def test_unreachable_redis_ends_the_crawl_at_once_with_a_sentence(replica: ReplicaProcess, tmp_path: Path) -> None:
    with Workers("imdb", data=tmp_path, replica=replica, redis_url="redis://127.0.0.1:1/0") as workers:
        workers.start()
        assert workers.wait() == [1]
        assert "start it, or remove REDIS_URL" in workers.log
        assert "Traceback" not in workers.log


def test_worker_that_slept_beyond_its_lease_does_no_harm(workers_of: WorkersOf, own_redis: RedisServer) -> None:
    with workers_of("imdb", ALL, **SLOWLY) as workers:
        workers.start(2)
        wait_for(lambda: own_redis.client.hlen("{imdb}:default:nodes") == 2)
        wait_for(lambda: in_flight(own_redis, "node0") > 0)
        workers.signal(signal.SIGSTOP, 0)
        wait_for(lambda: "is gone" in workers.log)
        assert in_flight(own_redis, "node0") == 0
        workers.signal(signal.SIGCONT, 0)
        assert workers.wait() == [0, 0], workers.log
        assert "taken for dead" in workers.log
        assert_whole(workers.movies)
    # What it acknowledged late was not counted a second time.
    assert state(own_redis, "done") == state(own_redis, "total") == TITLES


def test_terminated_worker_is_gone_within_10_seconds_however_slow_the_site_is(
    workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer
) -> None:
    change(replica, latency=30_000)
    with workers_of("imdb", ALL, DOWNLOAD_TIMEOUT="60", ROBOTSTXT_OBEY="0", **SURE) as workers:
        workers.start()
        wait_for(lambda: counts(replica)["requests"] > 0 and state(own_redis, "total") == TITLES)
        began = time.monotonic()
        workers.signal(signal.SIGTERM)
        assert workers.wait() == [1], workers.log
        assert time.monotonic() - began < 10
    assert in_flight(own_redis) == 0
    assert own_redis.client.llen("{imdb}:default:requests:2") == TITLES
    assert "Traceback" not in workers.log


def test_terminated_and_recycled_workers_hand_back_what_they_have_not_done(
    workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer, tmp_path: Path
) -> None:
    with workers_of("imdb", ALL, **SLOWLY, **SURE) as workers:
        workers.start()
        wait_for(partial(have_been_fetched, replica, TITLES // 4))
        began = time.monotonic()
        workers.signal(signal.SIGTERM)
        workers.wait()
        assert time.monotonic() - began < 10
    assert in_flight(own_redis) == 0
    done = state(own_redis, "done")
    assert 0 < done < TITLES - 10
    change(replica, latency=0)
    for name, most in (("recycled", 10), ("last", 0)):
        (tmp_path / name).mkdir()
        with workers_of("imdb", ALL, data=tmp_path / name, FRONTIER_MAX_PAGES=str(most), **SURE) as others:
            others.start()
            assert others.wait() == [0], others.log
            assert len(others.movies) == (most or TITLES - done - 10)
            assert ("(recycled)" in others.log) == bool(most)
    assert sum(fetched(replica).values()) == TITLES
    assert state(own_redis, "done") == TITLES


_DEADLY = """
import os
from moviecrawler.spiders.imdb import ImdbSpider

class Deadly:
    def update_settings(self, settings):
        read_title = ImdbSpider.read_title
        ImdbSpider.read_title = lambda spider, page: os._exit(9) if "{}" in page.url else read_title(spider, page)
"""


@pytest.mark.long  # a short one: test_request_that_kills_is_handed_out_alone_and_then_set_aside
def test_page_that_kills_its_workers_is_set_aside_and_all_others_are_stored(
    workers_of: WorkersOf, replica: ReplicaProcess, own_redis: RedisServer, tmp_path: Path
) -> None:
    given = IDS[:12]
    change(replica, latency=50)
    (tmp_path / "deadly.py").write_text(_DEADLY.format(given[3]))
    with workers_of(
        "imdb",
        f"ids={','.join(given)}",
        ADDONS='{"moviecrawler.addon.ConfiguredParts": 0, "deadly.Deadly": 1}',
        FRONTIER_DELIVERIES="2",
    ) as workers:
        codes = []
        for _ in range(3):
            workers.start()
            codes += workers.wait()
        assert codes == [9, 9, 0], workers.log
        assert_whole(workers.movies, [*given[:3], *given[4:]])
    assert state(own_redis, "failed") == 1
    [(_, letter)] = own_redis.client.hgetall("{imdb}:default:deadletters").items()
    assert given[3].encode() in letter
