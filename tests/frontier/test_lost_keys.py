"""A key is lost in Redis while workers run: the crawl ends, and says what it does not do."""

from typing import Any

import pytest
import redis

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change
from tests.services.replica import IDS, TITLES
from tests.waiting import wait_for
from tests.workers import Workers, WorkersOf, paused

ALL = f"ids={','.join(IDS)}"
SLOWLY: dict[str, Any] = {"CONCURRENT_REQUESTS": "4", "FRONTIER_RUN": "lossy"}


def begun(
    workers_of: WorkersOf, replica: ReplicaProcess, count: int, *, latency: int, done: int
) -> Workers:
    change(replica, latency=latency)
    workers = workers_of("imdb", ALL, **SLOWLY)
    workers.start(count)
    wait_for(
        lambda: workers.count("leases") and workers.state("done") >= done,
        detail=lambda: workers.log,
    )
    return workers


@pytest.fixture
def at_work(workers_of: WorkersOf, replica: ReplicaProcess) -> Workers:
    """Return two workers in the middle of a run."""
    return begun(workers_of, replica, 2, latency=300, done=4)


@pytest.fixture
def alone(workers_of: WorkersOf, replica: ReplicaProcess) -> Workers:
    """Return one worker that has done no more than the arguments, and holds some requests."""
    return begun(workers_of, replica, 1, latency=600, done=1)


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
@pytest.mark.parametrize(
    "names",
    [
        "queue",
        "leases",
        "queue leases",
        "seen",
        "workers",
        "state",
        "queue leases requests state",
        "everything",
    ],
)
def test_every_title_is_stored_though_keys_were_lost(
    at_work: Workers, redis_client: redis.Redis, names: str
) -> None:
    with at_work as workers:
        keys = workers.keys
        if names == "everything":
            redis_client.flushdb()
        else:
            redis_client.delete(*(getattr(keys, name) for name in names.split()))
        workers.end_with(0, 0)
        assert {movie.site_id for movie in workers.movies} == set(IDS)
        assert workers.log.count("next: nothing is left") == 2


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
def test_a_run_whose_requests_were_lost_ends_and_says_how_many_and_the_next_start_makes_it_anew(
    alone: Workers, redis_client: redis.Redis
) -> None:
    with alone as workers:
        both: Any = redis_client.pipeline()
        lost, _ = both.zcard(workers.keys.queue).delete(workers.keys.requests).execute()
        workers.end_with(1, may_lose=True)
        assert f" {lost} lost; in " in workers.log
        assert f"{lost} were deleted from the queue" in workers.log
        stored = {movie.site_id for movie in workers.movies}
        assert stored < set(IDS)
        workers.start()
        workers.end_with(0)
        assert {movie.site_id for movie in workers.movies} == set(IDS)


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
def test_dead_letters_that_were_lost_still_count(
    workers_of: WorkersOf, replica: ReplicaProcess, redis_client: redis.Redis
) -> None:
    redis_client.rpush("imdb:start_urls", "rubbish")
    with workers_of("imdb", f"ids={IDS[0]}") as workers:
        with paused(replica):
            workers.start()
            wait_for(lambda: workers.count("dead"))
            redis_client.delete(workers.keys.dead)
        workers.end_with(1)
        assert "`scrapy deadletters` has 1 requests that were given up" in workers.log


def test_a_damaged_request_stops_nothing(alone: Workers, redis_client: redis.Redis) -> None:
    with alone as workers:
        keys = workers.keys
        queued: Any = redis_client.zrange(keys.queue, -2, -1)
        redis_client.hset(keys.requests, queued[0], b"\x80")
        redis_client.hset(keys.requests, queued[1], b"2 0 \n[]")
        workers.end_with(1)
        assert len(workers.movies) == TITLES - 2
        assert workers.count("dead") == workers.state("dead") == 2


def test_the_limit_holds_again_when_the_titles_are_lost(
    workers_of: WorkersOf, replica: ReplicaProcess, redis_client: redis.Redis
) -> None:
    change(replica, latency=100)
    with workers_of("metacritic", "list=sitemap", "limit=20") as workers:
        workers.start(2)
        wait_for(lambda: workers.count("titles") == 20)
        redis_client.delete(workers.keys.titles)
        workers.end_with(0, 0)
        assert 20 <= len(workers.movies) <= 40
