"""Whole crawls against the replica, each in a process of its own.

What counts is what was stored and what was sent.
"""

import os
import re
import signal
from pathlib import Path

import pytest

from moviecrawler.items import Movie, Site
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts, crawl, reset
from tests.processes import ForkedCommand, environment
from tests.services.replica import COLLECTION, EVERYTHING, IDS, SPIDERS, TITLES
from tests.tables import sqlite_movies
from tests.waiting import wait_for


def ids(movies: list[Movie]) -> list[str | None]:
    return [movie.site_id for movie in movies]


@pytest.mark.promise("A title has one record a site, however often it is crawled.")
@pytest.mark.parametrize("spider", SPIDERS)
def test_spider_stores_every_title_of_its_site_once(
    spider: Site, replica: ReplicaProcess, tmp_path: Path
) -> None:
    finished = crawl(spider, *EVERYTHING[spider], data=tmp_path, replica=replica)
    assert finished.code == 0, finished.log
    true = COLLECTION.every(spider)
    assert sorted(map(str, ids(finished.movies))) == sorted(true)
    assert not finished.misses
    assert finished.stat("titles/stored") == len(true)
    if spider == "imdb":
        assert ids(finished.movies) == [IDS[index] for index in COLLECTION.top_ranks]
        assert [finished.ranks[str(movie.site_id)] for movie in finished.movies] == list(
            range(1, TITLES + 1)
        )
    # Crawled again, each title has one row, which is newer; and a limit is how many titles are
    # asked for.
    before = {movie.site_id: movie.scraped_at for movie in finished.movies}
    reset(replica)
    again = crawl(spider, "limit=10", data=tmp_path, replica=replica, FRESHNESS_MARGIN="0")
    assert ids(again.movies) == ids(finished.movies)
    newer = [movie for movie in again.movies if movie.scraped_at != before[movie.site_id]]
    assert len(newer) == 10
    assert all(str(movie.scraped_at) > str(before[movie.site_id]) for movie in newer)
    titles = [
        path
        for path in counts(replica, spider)["paths"]
        if path.startswith(("/title/", "/movie/", "/m/"))
    ]
    assert len(titles) == 10


RENAMED = next(site_id for site_id in COLLECTION.ids["rottentomatoes"].values() if "_" in site_id)


@pytest.mark.promise(
    "Every requested title ends as stored, as a miss with its reason, or as a dead letter."
)
@pytest.mark.promise("The user agent says what this is, and how to reach the operator.")
@pytest.mark.parametrize(
    ("spider", "given", "in_file", "stored", "absent"),
    [
        (
            "imdb",
            f"{IDS[3]},https://www.imdb.com/title/{IDS[1]}/,tt0000001",
            IDS[2],
            [*IDS[1:4]],
            "tt0000001",
        ),
        ("metacritic", "movie/no-such-movie", "# none", [], "movie/no-such-movie"),
        # A slug of old, which the site redirects.
        (
            "rottentomatoes",
            f"{RENAMED.replace('_', '-')},m/no_such_movie",
            "",
            [RENAMED],
            "m/no_such_movie",
        ),
    ],
)
def test_ids_urls_and_a_file_name_titles_and_those_that_the_site_does_not_have_are_absent(
    spider: str,
    given: str,
    in_file: str,
    stored: list[str],
    absent: str,
    replica: ReplicaProcess,
    tmp_path: Path,
) -> None:
    file = tmp_path / "titles.txt"
    file.write_text(in_file)
    contact = "https://example.org/us"
    finished = crawl(
        spider, f"ids={given}", f"file={file}", data=tmp_path, replica=replica, CONTACT=contact
    )
    assert finished.code == 0
    assert set(ids(finished.movies)) == set(stored)
    assert all(str(movie.site_id) in str(movie.url) for movie in finished.movies)
    assert not finished.ranks
    assert finished.misses == {absent: "absent"}
    asked = counts(replica, spider)
    # One more for a redirect.
    assert (asked["requests"], asked["robots"]) == (
        len(stored) + 1 + (spider == "rottentomatoes"),
        1,
    )
    (client,) = asked["clients"]
    assert re.search(rf"moviecrawler/.* \(\+{contact}\)", client)


@pytest.mark.promise(
    "Every requested title ends as stored, as a miss with its reason, or as a dead letter."
)
@pytest.mark.parametrize(
    ("fault", "code", "outcome", "requests"), [("404", 0, "absent", 1), ("500", 1, "failed", 4)]
)
def test_title_that_is_missed_is_told_and_no_longer_when_it_is_found(
    fault: str, code: int, outcome: str, requests: int, replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, faults={fault: 1})
    finished = crawl("imdb", f"ids={IDS[5]}", data=tmp_path, replica=replica)
    assert finished.code == code
    assert finished.misses == {IDS[5]: outcome}
    assert not finished.movies
    assert counts(replica)["requests"] == requests  # with three retries of what may pass
    change(replica, faults={})
    finished = crawl("imdb", f"ids={IDS[5]}", data=tmp_path, replica=replica)
    assert ids(finished.movies) == [IDS[5]]
    assert not finished.misses


# --- What goes wrong ------------------------------------------------------------------------------


@pytest.mark.promise("Faults that pass, such as a broken connection or a 500, cost no title.")
def test_faults_that_pass_lose_no_title(replica: ReplicaProcess, tmp_path: Path) -> None:
    faults = ("500", "reset", "truncated", "timeout", "redirect")
    change(replica, faults=dict.fromkeys(faults, 0.12))
    finished = crawl("imdb", data=tmp_path, replica=replica, RETRY_TIMES="9", DOWNLOAD_TIMEOUT="1")
    met = counts(replica)["faults"]
    assert all(met[fault] > 3 for fault in faults), met
    assert finished.code == 0
    assert sorted(map(str, ids(finished.movies))) == sorted(IDS)
    assert not finished.misses


@pytest.mark.promise("A refusal ends the crawl of that site.")
@pytest.mark.parametrize(
    ("spider", "fault", "most"),
    [
        ("imdb", "challenge", 1),
        ("metacritic", "403", 1),
        ("rottentomatoes", "429", 1),
        ("rottentomatoes", "throttle", 4),
        *(pytest.param("imdb", fault, 1, marks=pytest.mark.long) for fault in ("403", "429")),
        *(
            pytest.param("metacritic", fault, 1, marks=pytest.mark.long)
            for fault in ("challenge", "429")
        ),
        *(
            pytest.param("rottentomatoes", fault, 1, marks=pytest.mark.long)
            for fault in ("challenge", "403")
        ),
    ],
)
def test_block_stops_the_site(
    spider: Site, fault: str, most: int, replica: ReplicaProcess, tmp_path: Path
) -> None:
    titles = list(COLLECTION.every(spider))[:20]
    arguments = [f"ids={','.join(titles)}", *(["via=pages"] if spider == "imdb" else [])]
    change(replica, faults={fault: 1})
    finished = crawl(spider, *arguments, data=tmp_path, replica=replica, CONCURRENT_REQUESTS="1")
    assert 1 <= counts(replica, spider)["requests"] <= most
    assert finished.code == 1
    assert not finished.misses  # nothing is said of the titles
    assert re.search(rf"^  refusals: .*{spider} is blocking us", finished.log, re.MULTILINE)
    assert not finished.movies
    # What was not sent waits for the next start.
    assert "20 requests wait in the queue" in finished.log


@pytest.mark.promise(
    "A crawl that is killed loses nothing that was stored, and leaves nothing half written."
)
def test_kill_in_the_middle_loses_nothing_that_was_stored(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, latency=400)
    settings = {"STORE_BATCH_SECONDS": "0.05", "CONCURRENT_REQUESTS": "4", "LOG_LEVEL": "ERROR"}
    running = ForkedCommand(
        ["crawl", "imdb"], env=environment(tmp_path, replica, **settings), cwd=tmp_path
    )

    def stored() -> list[str]:
        return [str(movie.site_id) for movie in sqlite_movies(tmp_path)]

    wait_for(lambda: running.poll() is not None or len(stored()) >= 4)
    assert running.poll() is None
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    before = stored()
    change(replica, latency=0)
    assert 1 < len(before) < TITLES
    # With those that were not stored, all titles are there, each once.
    others = [site_id for site_id in IDS if site_id not in before]
    finished = crawl("imdb", f"ids={','.join(others)}", data=tmp_path, replica=replica)
    assert sorted(map(str, ids(finished.movies))) == sorted(IDS)
