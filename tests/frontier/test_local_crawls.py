"""Crawls without Redis, whose queue is a file in DATA_DIR: kills, repeated starts, what is lost."""

import logging
import re
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from moviecrawler.frontier.scheduler import BATCH
from moviecrawler.frontier.sqlite_backend import FILE
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts
from tests.services.replica import IDS, TITLES, ForkedReplica
from tests.waiting import wait_for
from tests.workers import SURE, Workers

logger = logging.getLogger(__name__)

ALL = f"ids={','.join(IDS)}"


def fetched(replica: ReplicaProcess) -> int:
    """Return how often titles' pages were fetched."""
    paths = counts(replica)["paths"]
    return sum(number for path, number in paths.items() if path.startswith("/title/"))


def have_been_fetched(replica: ReplicaProcess, number: int) -> bool:
    return fetched(replica) >= number


def stored(workers: Workers) -> list[str | None]:
    return [movie.site_id for movie in workers.movies]


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
@pytest.mark.parametrize("titles", [100, pytest.param(500, marks=pytest.mark.long)])
def test_a_crawl_that_is_killed_goes_on_with_the_same_command(tmp_path: Path, titles: int) -> None:
    expected = Collection(1, titles).imdb_ids
    wanted = tmp_path / "ids"
    wanted.write_text("\n".join(expected))
    kills = 3
    with (
        ForkedReplica(titles=titles, light=True, latency=50) as replica,
        Workers(
            "imdb", f"file={wanted}", data=tmp_path, replica=replica, FRONTIER_LEASE="60"
        ) as workers,
    ):
        for number in range(1, kills + 1):
            workers.start()
            wait_for(
                partial(have_been_fetched, replica, titles * number // (kills + 2)),
                detail=lambda: workers.log,
            )
            workers.kill()
        workers.start()
        workers.end_with(0)
        assert sorted(map(str, stored(workers))) == sorted(expected)
        again = fetched(replica) - titles
    logger.info("%d kills: %d of %d pages were fetched again", kills, again, titles)
    # What was leased, and a batch of the store.
    assert again <= kills * 2 * BATCH


def test_a_crawl_that_is_ended_goes_on_where_it_was_and_fetches_nothing_twice(
    tmp_path: Path, replica: ReplicaProcess
) -> None:
    change(replica, latency=100)
    with Workers("imdb", ALL, data=tmp_path, replica=replica, **SURE) as workers:
        workers.start(environment={"CONCURRENT_REQUESTS": "2"})
        wait_for(partial(have_been_fetched, replica, 6))
        workers.running[0].send_signal(signal.SIGTERM)
        workers.end_with(3)
        assert 0 < len(workers.movies) < TITLES
        workers.start()
        workers.end_with(0)
        assert sorted(map(str, stored(workers))) == sorted(IDS)
    # What was in progress when the signal came is fetched once more, if it was not stored in time.
    assert fetched(replica) <= TITLES + 2


def test_ids_that_are_new_in_a_file_are_fetched_by_the_run_that_goes_on(
    tmp_path: Path, replica: ReplicaProcess
) -> None:
    change(replica, latency=300)
    wanted = tmp_path / "ids"
    wanted.write_text("\n".join(IDS[:20]))
    with Workers("imdb", f"file={wanted}", data=tmp_path, replica=replica, **SURE) as workers:
        workers.start(environment={"CONCURRENT_REQUESTS": "2"})
        wait_for(partial(have_been_fetched, replica, 4))
        workers.running[0].send_signal(signal.SIGTERM)
        workers.end_with(3)
        wanted.write_text("\n".join(IDS))
        workers.start()
        workers.end_with(0)
        assert sorted(map(str, stored(workers))) == sorted(IDS)


def delete_file(data: Path) -> None:
    for path in data.glob(f"{FILE}*"):
        path.unlink()


def damage_file(data: Path) -> None:
    with (data / FILE).open("r+b") as file:
        file.write(b"no database" * 1000)


def delete_rows(table: str, data: Path) -> None:
    with closing(sqlite3.connect(data / FILE, timeout=10)) as database, database:
        database.execute(f"DELETE FROM {table}")  # noqa: S608 - it is one of those below


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
@pytest.mark.parametrize(
    "lose",
    [
        delete_file,
        damage_file,
        partial(delete_rows, "runs"),
        partial(delete_rows, "seen"),
        partial(delete_rows, "workers"),
    ],
    ids=["file", "damaged file", "runs", "seen", "workers"],
)
def test_every_title_is_stored_though_the_queue_lost_something(
    tmp_path: Path, replica: ReplicaProcess, lose: Callable[[Path], None]
) -> None:
    change(replica, latency=200)
    with Workers("imdb", ALL, data=tmp_path, replica=replica, CONCURRENT_REQUESTS="4") as workers:
        workers.start(2)
        wait_for(partial(have_been_fetched, replica, 6), detail=lambda: workers.log)
        lose(tmp_path)
        workers.end_with(0, 0)
        assert sorted(map(str, stored(workers))) == sorted(IDS)
        assert "Traceback" not in workers.log


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
def test_a_run_whose_requests_were_deleted_ends_and_says_how_many(
    tmp_path: Path, replica: ReplicaProcess
) -> None:
    change(replica, latency=300)
    with Workers("imdb", ALL, data=tmp_path, replica=replica, CONCURRENT_REQUESTS="4") as workers:
        workers.start()
        wait_for(partial(have_been_fetched, replica, 4), detail=lambda: workers.log)
        delete_rows("requests", tmp_path)
        workers.end_with(1, may_lose=True)
        assert re.search(r"[1-9]\d* lost; .*\(finished\)", workers.log)
        assert "were deleted from the queue, and the same command begins anew" in workers.log
        workers.start()
        workers.end_with(0)
        assert sorted(map(str, stored(workers))) == sorted(IDS)
