"""A store of each kind that replaces what it holds, for tests of what must be the same in all of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from moviecrawler.catalogue.tables import read_movies
from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.csv import CsvStore
from moviecrawler.pipelines.mongo import MongoStore
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.store import Store
from tests.pipelines.runs import record_of
from tests.services.mongo import mongo_movies
from tests.services.postgres import execute, postgres_movies


class Stored:
    """A store, and how what is in it is read."""

    def __init__(self, name: str, request: pytest.FixtureRequest, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.url: str = (
            "" if name == "csv" else request.getfixturevalue({"postgres": "database_url", "mongo": "mongo_url"}[name])
        )

    def write(self, *items: Movie | Miss, margin: float = 0) -> None:
        store: Store
        if self.name == "csv":
            store = CsvStore(self.folder)
        else:
            store = (PostgresStore if self.name == "postgres" else MongoStore)(self.url, margin)
        with closing(store):
            store.open()
            store.write([record_of(item) for item in items])

    def movies(self) -> list[Movie]:
        if self.name == "csv":
            return list(read_movies(self.folder / "movies.csv"))
        return postgres_movies(self.url) if self.name == "postgres" else mongo_movies(self.url)

    def movie(self) -> Movie:
        (movie,) = self.movies()
        return movie

    def misses(self) -> int:
        if self.name == "csv":
            return len((self.folder / "misses.csv").read_text().splitlines()) - 1
        if self.name == "postgres":
            return len(execute(self.url, "SELECT 1 FROM misses"))
        client: MongoClient[Any]
        with MongoClient(self.url) as client:
            return client.get_default_database("moviecrawler")["misses"].count_documents({})


@pytest.fixture(params=["csv", "postgres", "mongo"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Stored:
    return Stored(request.param, request, tmp_path)
