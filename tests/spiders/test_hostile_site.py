"""A site that does to a crawler what it can: its good titles are stored, its bad ones are misses, and nothing hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import crawl, read_misses
from tests.frontier.workers import Workers
from tests.hostile_site import KINDS, HostileSite

MEMORY_MB = 300
"""What a node gives a spider."""
SETTINGS = {
    "MEMUSAGE_ENABLED": "1",
    "MEMUSAGE_LIMIT_MB": str(MEMORY_MB),
    "MEMUSAGE_CHECK_INTERVAL_SECONDS": "1",
    "RETRY_TIMES": "1",
    "DOWNLOAD_TIMEOUT": "4",
}


def titles(count: int) -> list[str]:
    return Collection(1, count).imdb_ids


def bad_ones(copies: int) -> dict[str, str]:
    """Return ids that no good title has, each with what its page is."""
    return {f"tt77{number:05}": kind for number, kind in enumerate(KINDS * copies)}


def mixed(good: list[str], bad: dict[str, str], data: Path) -> str:
    """Write all ids into a file, the bad ones spread over it, and return its path."""
    every = max(len(good) // len(bad), 1)
    rest = list(bad)
    lines = []
    for number, site_id in enumerate(good):
        if number % every == 0 and rest:
            lines.append(rest.pop())
        lines.append(site_id)
    path = data / "ids.txt"
    path.write_text("\n".join([*lines, *rest]))
    return str(path)


@pytest.mark.promise("Every title asked for ends as stored, as a miss with its reason, or as a dead letter.")
def test_one_worker_stores_what_is_good_and_accounts_for_the_rest(tmp_path: Path) -> None:
    good, bad = titles(20), bad_ones(1)
    with ReplicaProcess(titles=20, light=True) as replica, HostileSite(replica.urls["imdb"], bad) as site:
        settings = {**SETTINGS, "IMDB_URL": site.url, "DOWNLOAD_TIMEOUT": "2"}
        done = crawl(
            "imdb", f"file={mixed(good, bad, tmp_path)}", "via=pages", data=tmp_path, replica=replica, **settings
        )
    assert {movie.site_id for movie in done.movies} == set(good)
    assert done.misses == dict.fromkeys(bad, "failed")
    assert done.code == 1
    assert done.stat("titles/failed") == len(bad)
    assert done.stat("memusage/limit_reached") == 0
    assert 0 < done.stat("memusage/max") < MEMORY_MB * 2**20


@pytest.mark.long
def test_three_workers_store_a_thousand_good_titles_beside_bad_ones(redis_url: str, tmp_path: Path) -> None:
    good, bad = titles(1000), bad_ones(3)
    with ReplicaProcess(titles=1000, light=True) as replica, HostileSite(replica.urls["imdb"], bad) as site:
        arguments = [f"file={mixed(good, bad, tmp_path)}", "via=pages"]
        own = {"IMDB_URL": site.url, **SETTINGS}
        with Workers(
            "imdb", *arguments, data=tmp_path, replica=replica, redis_url=redis_url, environment=None, **own
        ) as workers:
            workers.start(3)
            codes = workers.wait()
            movies, log = workers.movies, workers.log
    assert {movie.site_id for movie in movies} == set(good)
    assert len(movies) == len(good)
    assert read_misses(tmp_path) == dict.fromkeys(bad, "failed")
    assert max(codes) == 1, log
    assert "memusage/max" in log
    assert "memusage_exceeded" not in log, "each has had less memory than a node gives it"
