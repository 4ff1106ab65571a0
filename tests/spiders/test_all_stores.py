"""All stores at once: the same titles in each, and the same again from the archive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.items import Movie
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts, crawl, reset, scrapy
from tests.services.mongo import mongo_movies
from tests.services.postgres import execute, new_database, postgres_movies
from tests.services.s3 import CREDENTIALS, s3_movies

TITLES = 250


@pytest.fixture(scope="module")
def replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, light=True) as running:
        yield running


def facts(movies: list[Movie]) -> dict[str | None, tuple[object, ...]]:
    """Return what every store keeps of a movie, by id."""
    return {
        movie.site_id: (
            *(movie.url, movie.title, movie.year, movie.release_date, movie.runtime_minutes, tuple(movie.genres)),
            *(movie.plot, movie.list_name, movie.list_rank, movie.scraped_at),
            frozenset((score.kind, score.value, score.count) for score in movie.scores),
        )
        for movie in movies
    }


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
    csv = facts(finished.movies)
    for movies in (postgres_movies(database_url), mongo_movies(mongo_url), s3_movies(s3_url, bucket_name)):
        assert len(movies) == TITLES
        for site_id, known in facts(movies).items():
            assert known == csv[site_id]
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
    assert facts(postgres_movies(empty)) == csv
    assert facts(again.movies) == csv
    query = "SELECT * FROM scoreboard ORDER BY imdb_id"
    assert len(execute(database_url, query)) == TITLES
    for name in ("credits", "people", "scores", "genres"):
        count = f"SELECT count(*) FROM {name}"  # noqa: S608 - one of the names above
        assert execute(empty, count) == execute(database_url, count)
    assert counts(replica)["requests"] == 0


def test_three_sites_make_one_scoreboard_in_postgres(
    replica: ReplicaProcess, database_url: str, tmp_path: Path
) -> None:
    for spider, arguments in (
        ("imdb", ["list=top", "limit=60"]),
        ("metacritic", ["list=sitemap"]),
        ("rottentomatoes", ["list=sitemap"]),
    ):
        finished = crawl(spider, *arguments, data=tmp_path, replica=replica, DATABASE_URL=database_url)
        assert finished.code == 0, finished.log
    boards = [scrapy("scoreboard", "--format", "csv", data=tmp_path, DATABASE_URL=url) for url in ("", database_url)]
    assert sorted(boards[0].output.splitlines()) == sorted(boards[1].output.splitlines())
