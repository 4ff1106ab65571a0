"""Whole crawls against the replica, each in a process of its own; what counts is what was stored and what was sent."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

from moviecrawler.items import Movie
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.truth import truth
from tests.crawling import counts, crawl, environment, reset
from tests.processes import ForkedCommand
from tests.waiting import wait_for

TITLES = 60
CATALOGUE = Catalogue(1, TITLES)
SPIDERS = SpiderLoader(Settings({"SPIDER_MODULES": ["moviecrawler.spiders"]})).list()
EVERYTHING = {"imdb": [], "metacritic": ["list=new"], "rottentomatoes": ["list=movies_at_home/sort:newest"]}
"""Arguments with which each spider finds all that its site has."""


@pytest.fixture(scope="module")
def replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, light=True) as running:
        yield running


@pytest.fixture(autouse=True)
def _count_from_zero(replica: ReplicaProcess) -> None:
    reset(replica)


def expected(site: str) -> dict[str, Movie]:
    movies = (truth(CATALOGUE, site, index) for index in range(TITLES))  # type: ignore[arg-type]
    return {movie.site_id: movie for movie in movies if movie is not None and movie.site_id is not None}


def scores(movie: Movie) -> set[tuple[str, float, int | None]]:
    return {(score.kind, score.value, score.count) for score in movie.scores}


def ids(movies: list[Movie]) -> list[str | None]:
    return [movie.site_id for movie in movies]


@pytest.mark.parametrize("spider", SPIDERS)
def test_spider_stores_every_title_of_its_site_as_it_is(spider: str, replica: ReplicaProcess, tmp_path: Path) -> None:
    finished = crawl(spider, *EVERYTHING[spider], data=tmp_path, replica=replica)
    assert finished.code == 0, finished.log
    true = expected(spider)
    assert sorted(map(str, ids(finished.movies))) == sorted(true)
    for movie in finished.movies:
        right = true[str(movie.site_id)]
        assert scores(movie) == scores(right)
        for fact in (
            "url",
            "imdb_id",
            "title",
            "original_title",
            "year",
            "release_date",
            "runtime_minutes",
            "genres",
            "certificate",
        ):
            assert getattr(movie, fact) == getattr(right, fact), (movie.site_id, fact)
    assert not finished.misses
    assert finished.stat("titles/stored") == len(true)
    if spider == "imdb":
        by_rank = sorted(CATALOGUE.top_ranks, key=CATALOGUE.top_ranks.__getitem__)
        assert ids(finished.movies) == [CATALOGUE.imdb_id(index) for index in by_rank]
        assert [movie.list_rank for movie in finished.movies] == list(range(1, TITLES + 1))
        assert {movie.list_name for movie in finished.movies} == {"top"}
    # Crawled again, each title has one row, which is newer.
    before = {movie.site_id: movie.scraped_at for movie in finished.movies}
    again = crawl(spider, "limit=10", data=tmp_path, replica=replica)
    assert ids(again.movies) == ids(finished.movies)
    newer = [movie for movie in again.movies if movie.scraped_at != before[movie.site_id]]
    assert len(newer) == 10
    assert all(str(movie.scraped_at) > str(before[movie.site_id]) for movie in newer)


@pytest.mark.parametrize("spider", SPIDERS)
def test_limit_is_how_many_titles_are_asked_for(spider: str, replica: ReplicaProcess, tmp_path: Path) -> None:
    finished = crawl(spider, "limit=7", data=tmp_path, replica=replica)
    assert len(finished.movies) == 7
    titles = [path for path in counts(replica, spider)["paths"] if path.startswith(("/title/", "/movie/", "/m/"))]
    assert len(titles) == 7


def test_ids_urls_and_a_file_name_titles(replica: ReplicaProcess, tmp_path: Path) -> None:
    wanted = [CATALOGUE.imdb_id(index) for index in (3, 1, 2)]
    file = tmp_path / "titles.txt"
    file.write_text(f"{wanted[2]}\n")
    finished = crawl(
        "imdb",
        f"ids={wanted[0]},https://www.imdb.com/title/{wanted[1]}/",
        f"file={file}",
        data=tmp_path,
        replica=replica,
    )
    assert set(ids(finished.movies)) == set(wanted)
    assert counts(replica)["requests"] == 3
    assert all(movie.list_name is None for movie in finished.movies)


def test_legacy_slug_is_stored_under_its_canonical_one(replica: ReplicaProcess, tmp_path: Path) -> None:
    slug = next(
        m.rottentomatoes.slug
        for m in map(CATALOGUE.movie, range(TITLES))
        if m.rottentomatoes and "_" in m.rottentomatoes.slug
    )
    legacy = slug.replace("_", "-")
    finished = crawl("rottentomatoes", f"ids=m/{legacy}", data=tmp_path, replica=replica)
    assert ids(finished.movies) == [f"m/{slug}"]
    assert finished.movies[0].url == f"https://www.rottentomatoes.com/m/{slug}"


@pytest.mark.parametrize(
    ("spider", "title"),
    [("imdb", "tt0000001"), ("metacritic", "movie/no-such-movie"), ("rottentomatoes", "m/no_such_movie")],
)
def test_title_that_the_site_does_not_have_is_absent(
    spider: str, title: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    finished = crawl(spider, f"ids={title}", data=tmp_path, replica=replica)
    assert finished.code == 0
    assert finished.misses == {title: "absent"}
    assert not finished.movies
    assert counts(replica, spider)["requests"] == 1


def test_title_that_is_found_again_is_no_longer_missed(tmp_path: Path) -> None:
    title = CATALOGUE.imdb_id(5)
    with ReplicaProcess(titles=TITLES, light=True, faults={"404": 1.0}) as broken:
        assert crawl("imdb", f"ids={title}", data=tmp_path, replica=broken).misses == {title: "absent"}
    with ReplicaProcess(titles=TITLES, light=True) as whole:
        finished = crawl("imdb", f"ids={title}", data=tmp_path, replica=whole)
    assert ids(finished.movies) == [title]
    assert not finished.misses


def test_robots_txt_is_asked_for_once_by_an_agent_that_is_ours_and_names_the_contact(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    crawl("imdb", "limit=3", data=tmp_path, replica=replica, CONTACT="https://example.org/us")
    assert counts(replica)["robots"] == 1
    clients = counts(replica)["clients"]
    assert len(clients) == 1
    assert "moviecrawler/" in next(iter(clients))
    assert "(+https://example.org/us)" in next(iter(clients))


# --- What goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["500", "reset", "truncated", "timeout", "redirect"])
def test_fault_that_passes_loses_no_title(fault: str, tmp_path: Path) -> None:
    with ReplicaProcess(titles=TITLES, light=True, faults={fault: 0.15}) as replica:
        finished = crawl("imdb", data=tmp_path, replica=replica, RETRY_TIMES="6", DOWNLOAD_TIMEOUT="1")
        assert counts(replica)["faults"][fault] > 3
    assert finished.code == 0
    assert set(ids(finished.movies)) == set(expected("imdb"))
    assert len(finished.movies) == TITLES
    assert not finished.misses
    assert all(movie.source == "page" for movie in finished.movies)


def test_fault_that_lasts_is_told_and_nothing_is_made_up(tmp_path: Path) -> None:
    title = CATALOGUE.imdb_id(0)
    with ReplicaProcess(titles=TITLES, light=True, faults={"500": 1.0}) as replica:
        finished = crawl("imdb", f"ids={title}", data=tmp_path, replica=replica)
        assert counts(replica)["requests"] == 4  # the first try and three more
    assert finished.code == 1
    assert finished.misses == {title: "failed"}
    assert not finished.movies


@pytest.mark.parametrize("spider", SPIDERS)
@pytest.mark.parametrize("fault", ["challenge", "403", "429"])
def test_block_stops_the_site(spider: str, fault: str, tmp_path: Path) -> None:
    titles = list(expected(spider))[:20]
    arguments = [f"ids={','.join(titles)}", *(["via=pages"] if spider == "imdb" else [])]
    with ReplicaProcess(titles=TITLES, light=True, faults={fault: 1.0}) as replica:
        finished = crawl(spider, *arguments, data=tmp_path, replica=replica, CONCURRENT_REQUESTS="1")
        assert counts(replica, spider)["requests"] == 1
    assert finished.code == 1
    assert finished.misses == dict.fromkeys(titles, "blocked")
    assert not finished.movies


def test_page_after_page_of_nothing_is_a_block(tmp_path: Path) -> None:
    titles = list(expected("rottentomatoes"))[:20]
    with ReplicaProcess(titles=TITLES, light=True, faults={"throttle": 1.0}) as replica:
        finished = crawl(
            "rottentomatoes", f"ids={','.join(titles)}", data=tmp_path, replica=replica, CONCURRENT_REQUESTS="1"
        )
        assert counts(replica, "rottentomatoes")["requests"] <= 4
    assert finished.code == 1
    assert set(finished.misses) == set(titles)
    assert not finished.movies


def test_kill_in_the_middle_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    with ReplicaProcess(titles=300, latency=200, light=True) as replica:
        settings = {"STORE_BATCH_SECONDS": "0.1", "LOG_LEVEL": "ERROR", "PROGRESS": "off"}
        running = ForkedCommand(["crawl", "imdb"], env=environment(tmp_path, replica, **settings), cwd=tmp_path)
        wait_for(
            lambda: (
                running.poll() is not None or ((tmp_path / "movies.csv").exists() and counts(replica)["requests"] >= 60)
            )
        )
        assert running.poll() is None
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        finished = crawl("imdb", "limit=1", data=tmp_path, replica=replica)
        kept = finished.movies
        assert 1 < len(kept) < 250
        assert len(kept) == len(set(ids(kept)))
        everything = ",".join(Catalogue(1, 300).imdb_id(index) for index in range(300))
        finished = crawl("imdb", f"ids={everything}", data=tmp_path, replica=replica)
        assert sorted(map(str, ids(finished.movies))) == sorted(
            Catalogue(1, 300).imdb_id(index) for index in range(300)
        )


# --- IMDb's datasets --------------------------------------------------------------------------------------------------


def test_closed_pages_are_replaced_by_datasets_with_one_warning(tmp_path: Path) -> None:
    with ReplicaProcess(titles=400, light=True, robots="live") as replica:
        finished = crawl("imdb", "list=top", data=tmp_path, replica=replica)
        paths = counts(replica)["paths"]
    assert finished.code == 0
    assert finished.log.count("reading its datasets instead") == 1
    assert not [path for path in paths if not path.startswith("/datasets/")]
    assert [movie.list_rank for movie in finished.movies] == list(range(1, 251))
    assert all(movie.list_computed and movie.source == "dataset" for movie in finished.movies)
    true = {movie.imdb_id: movie.rating for movie in map(Catalogue(1, 400).movie, range(400))}
    for movie in finished.movies:
        assert [(score.value, score.count) for score in movie.scores] == [true[str(movie.site_id)]]


def test_block_on_the_way_leaves_the_rest_to_the_datasets(tmp_path: Path) -> None:
    with ReplicaProcess(titles=TITLES, light=True, faults={"challenge": 0.1}) as replica:
        finished = crawl("imdb", "list=top", data=tmp_path, replica=replica)
    assert finished.code == 0
    assert set(ids(finished.movies)) == set(expected("imdb"))
    assert {movie.source for movie in finished.movies} <= {"page", "dataset"}
    assert not finished.misses


def test_via_pages_stays_with_the_pages(tmp_path: Path) -> None:
    with ReplicaProcess(titles=TITLES, light=True, robots="live") as replica:
        finished = crawl("imdb", f"ids={CATALOGUE.imdb_id(1)}", "via=pages", data=tmp_path, replica=replica)
        assert counts(replica)["requests"] == 0
    assert finished.misses == {CATALOGUE.imdb_id(1): "disallowed"}


def test_unchanged_datasets_are_not_fetched_again(replica: ReplicaProcess, tmp_path: Path) -> None:
    crawl("imdb", "via=datasets", data=tmp_path, replica=replica)
    fetched = counts(replica)["statuses"]
    crawl("imdb", "via=datasets", data=tmp_path, replica=replica)
    again = counts(replica)["statuses"]
    assert fetched == {"206": 7}
    assert again == {"206": 7, "304": 7}


def test_dataset_is_fetched_in_parts(tmp_path: Path) -> None:
    with ReplicaProcess(titles=5_000, light=True) as replica:
        settings = {"DATASET_PART": "65536", "IMDB_DATASETS": "akas"}
        finished = crawl("imdb", "via=datasets", "list=all", data=tmp_path, replica=replica, **settings)
        assert counts(replica)["statuses"]["206"] > 5
    assert finished.code == 0
    movies = [m for m in finished.movies if m.kind in {"movie", "series"}]
    assert len({movie.site_id for movie in movies}) == len(movies)
    assert finished.stat("titles/stored") == len(movies) > 4_500


def test_title_that_no_dataset_has_is_absent(replica: ReplicaProcess, tmp_path: Path) -> None:
    finished = crawl("imdb", f"ids=tt0000001,{CATALOGUE.imdb_id(2)}", "via=datasets", data=tmp_path, replica=replica)
    assert ids(finished.movies) == [CATALOGUE.imdb_id(2)]
    assert finished.misses == {"tt0000001": "absent"}
