"""All stores at once: the same titles in each, and the same again from the archive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from moviecrawler.items import Movie
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts, reset, scrapy
from tests.pipelines.stored import in_order, sqlite_movies
from tests.services.mongo import mongo_movies
from tests.services.postgres import execute, new_database, postgres_movies
from tests.services.s3 import CREDENTIALS, s3_movies

TITLES = 250


@pytest.fixture(scope="module")
def replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, light=True) as running:
        yield running


def by_id(movies: list[Movie]) -> dict[str | None, Movie]:
    """Return movies by id, each there once."""
    found = {movie.site_id: in_order(movie) for movie in movies}
    assert len(found) == len(movies)
    return found


def assert_same(movies: dict[str | None, Movie], expected: dict[str | None, Movie]) -> None:
    """Compare what stores hold; MongoDB keeps milliseconds."""
    assert movies.keys() == expected.keys()
    for site_id, movie in movies.items():
        assert movie.scraped_at is not None
        assert abs(movie.scraped_at - expected[site_id].scraped_at) < timedelta(milliseconds=1)  # type: ignore[operator]
        assert replace(movie, scraped_at=expected[site_id].scraped_at) == expected[site_id]


def test_top_250_is_the_same_in_every_store_and_from_the_archive(
    replica: ReplicaProcess,
    database_url: str,
    mongo_url: str,
    s3_url: str,
    bucket_name: str,
    postgres_server: str,
    tmp_path: Path,
) -> None:
    s3 = {"S3_ENDPOINT_URL": s3_url, **{name: os.environ[name] for name in CREDENTIALS}}
    stores = {"DATABASE_URL": database_url, "MONGO_URL": mongo_url, "S3_BUCKET": bucket_name, **s3}
    crawled = tmp_path / "crawled"
    crawled.mkdir()

    finished = scrapy("crawl", "imdb", "-a", "list=top", data=crawled, replica=replica, **stores)

    assert finished.code == 0, finished.log
    in_order = sorted(Catalogue(1, TITLES).top_ranks.items(), key=lambda place: place[1])
    ids = [Catalogue(1, TITLES).imdb_id(index) for index, _ in in_order]
    assert [movie.site_id for movie in finished.movies] == ids
    csv = by_id(sqlite_movies(crawled))
    assert csv.keys() == set(ids)
    for movies in (postgres_movies(database_url), mongo_movies(mongo_url), s3_movies(s3_url, bucket_name)):
        assert_same(by_id(movies), csv)
    assert finished.stat("titles/stored") == TITLES

    boards = [scrapy("scoreboard", "--format", "csv", data=crawled, DATABASE_URL=url) for url in ("", database_url)]
    assert [board.code for board in boards] == [0, 0]
    assert boards[0].output == boards[1].output
    assert len(boards[0].output.splitlines()) == TITLES + 1

    reset(replica)
    replayed, empty = tmp_path / "replayed", new_database(postgres_server)
    replayed.mkdir()
    again = scrapy("replay", f"s3://{bucket_name}", data=replayed, replica=replica, DATABASE_URL=empty, **s3)
    assert again.code == 0, again.log
    assert_same(by_id(postgres_movies(empty)), csv)
    assert_same(by_id(sqlite_movies(replayed)), csv)
    query = "SELECT * FROM scoreboard ORDER BY imdb_id"
    assert len(execute(database_url, query)) == TITLES
    for name in ("credits", "people", "scores", "genres"):
        count = f"SELECT count(*) FROM {name}"  # noqa: S608 - one of the names above
        assert execute(empty, count) == execute(database_url, count)
    assert counts(replica)["requests"] == 0


def test_three_sites_are_the_same_in_every_store_and_make_one_scoreboard(
    replica: ReplicaProcess, database_url: str, mongo_url: str, s3_url: str, bucket_name: str, tmp_path: Path
) -> None:
    s3 = {"S3_ENDPOINT_URL": s3_url, **{name: os.environ[name] for name in CREDENTIALS}}
    stores = {"DATABASE_URL": database_url, "MONGO_URL": mongo_url, "S3_BUCKET": bucket_name, **s3}
    for spider, arguments in (
        ("imdb", ["-a", "list=top", "-a", "limit=60"]),
        ("metacritic", ["-a", "list=sitemap"]),
        ("rottentomatoes", ["-a", "list=sitemap"]),
    ):
        finished = scrapy("crawl", spider, *arguments, data=tmp_path, replica=replica, **stores)
        assert finished.code == 0, finished.log
    csv = by_id(sqlite_movies(tmp_path))
    for movies in (postgres_movies(database_url), mongo_movies(mongo_url), s3_movies(s3_url, bucket_name)):
        assert_same(by_id(movies), csv)
    boards = [scrapy("scoreboard", "--format", "csv", data=tmp_path, DATABASE_URL=url) for url in ("", database_url)]
    assert sorted(boards[0].output.splitlines()) == sorted(boards[1].output.splitlines())
