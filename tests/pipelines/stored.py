"""A store of each kind that replaces what it holds, for tests of what must be the same in all of them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from moviecrawler.catalogue.stored import read_movie
from moviecrawler.catalogue.tables import read_movies
from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.csv import CsvStore
from moviecrawler.pipelines.mongo import MongoStore
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.store import Store
from tests.pipelines.runs import record_of
from tests.services.mongo import mongo_movies
from tests.services.postgres import execute, postgres_movies


def sqlite_movies(folder: Path) -> list[Movie]:
    """Return what the CSV files are exported from."""
    with closing(sqlite3.connect(folder / "movies.sqlite3")) as connection:
        return [read_movie(encoded) for (encoded,) in connection.execute("SELECT movie FROM movies")]


def in_order(found: Movie) -> Movie:
    """Return a movie without what stores may change: the order of parts, and what only Postgres reckons."""
    return replace(
        found,
        scores=sorted(found.scores, key=lambda score: score.kind),
        amounts=sorted(found.amounts, key=lambda amount: amount.kind),
        offers=sorted(
            found.offers, key=lambda offer: (offer.provider, offer.kind, offer.country or "", offer.quality or "")
        ),
        credits=sorted(found.credits, key=lambda credit: (credit.role, credit.position)),
    )


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
