"""The queries that the documents show run on the embedded database, and where both have the same columns, on Postgres."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import moviecrawler.database
from moviecrawler.items import Score
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.pipelines.runs import make_movie, record_of
from tests.pipelines.stored import opened
from tests.pipelines.test_season_views import RATED
from tests.pipelines.test_seasons import IMDB, METACRITIC, TOMATOES
from tests.services.postgres import execute

README = Path(moviecrawler.database.__path__[0], "README.md").read_text("utf-8")
QUERIES = dict(re.findall(r"^-- (.+)\n(.+);$", README, re.MULTILINE))
MOVIES = [IMDB, TOMATOES, METACRITIC, *RATED, *(make_movie(number, genres=["Drama"]) for number in range(3))]
MOVIES.append(make_movie(4, scores=[Score(kind="imdb", value=9, count=2_000), Score(kind="metascore", value=20)]))


def test_there_are_ten() -> None:
    assert len(QUERIES) == 10


@pytest.mark.parametrize("name", QUERIES)
def test_query_runs(name: str, tmp_path: Path, database_url: str) -> None:
    with opened(SqliteStore(tmp_path)) as store:
        store.write([record_of(movie) for movie in MOVIES])
    query = QUERIES[name].replace("tt0111161", "tt0000002").replace("> 1000", "> 1")
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3")) as connection:
        found = connection.execute(query).fetchall()
    assert found
    if "embedded" in name:
        return
    with opened(PostgresStore(database_url)) as postgres:
        postgres.write([record_of(movie) for movie in MOVIES])
    assert sorted(map(str, execute(database_url, query)))
    assert len(execute(database_url, query)) == len(found)
