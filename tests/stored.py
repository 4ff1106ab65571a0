"""A store of each kind, for tests of what must be the same in all of them."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from scrapy.settings import Settings

from moviecrawler.database.board import BoardQuery, read_board
from moviecrawler.database.reading import reading
from moviecrawler.database.sqlite import FILE, read_sqlite
from moviecrawler.items import ListPage, Miss, Movie, TitleKind
from moviecrawler.pipelines.mongo import MongoStore
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.s3 import Bucket, S3Store
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.pipelines.store import Store
from moviecrawler.sites import SCORES, SITES
from tests.runs import record_of
from tests.services.mongo import documents, mongo_movies
from tests.services.postgres import execute, postgres_movies
from tests.services.s3 import CREDENTIALS, s3_movies
from tests.tables import sqlite_movies

S = TypeVar("S", bound=Store)


@contextmanager
def opened(store: S) -> Iterator[S]:
    """Open a store, and close it at the end of the block."""
    with closing(store):
        store.open()
        yield store


class BoardRow(dict[str, Any]):
    """A row of a scoreboard, without the numbers that each database gives."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    @property
    def scores(self) -> dict[str, Any]:
        """The scores by kind."""
        return {kind: self[form.columns[0]] for kind, form in SCORES.items() if form.columns}

    @property
    def site_ids(self) -> dict[str, Any]:
        """The ids by site."""
        return {site: self[f"{site}_id"] for site in SITES}


def board_of(place: Path | str, kind: TitleKind | None = None) -> list[BoardRow]:
    """Return the rows of the scoreboard of a folder, or of the database at a URL."""
    settings = {"DATABASE_URL": place} if isinstance(place, str) else {"DATA_DIR": str(place)}
    with reading(Settings(settings)) as tables:
        rows = [BoardRow(row) for row in read_board(tables, BoardQuery(kind=kind)).rows]
    for row in rows:
        row.setdefault("kind", kind)
        row.pop("title_id")
        row.pop("series_title_id", None)
    return rows


def in_order(found: Movie) -> Movie:
    """Return a movie without what stores may change.

    That is the order of parts, and what only Postgres reckons.
    """
    return replace(
        found,
        scores=sorted(found.scores, key=lambda score: score.kind),
        amounts=sorted(found.amounts, key=lambda amount: amount.kind),
        offers=sorted(
            found.offers,
            key=lambda offer: (
                offer.provider,
                offer.kind,
                offer.country or "",
                offer.quality or "",
            ),
        ),
        credits=sorted(found.credits, key=lambda credit: (credit.role, credit.position)),
    )


class Stored:
    """A place of a store's kind: what is written there, and how it is read."""

    def __init__(self, kind: str, request: pytest.FixtureRequest, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        fixture = {"postgres": "database_url", "mongo": "mongo_url", "s3": "s3_url"}.get(kind)
        self.url: str = request.getfixturevalue(fixture) if fixture else ""
        self._open: Store | None = None
        self.bucket: str = request.getfixturevalue("bucket_name") if kind == "s3" else ""

    def store(self, margin: float = 0, address: str = "") -> Store:
        """Return the store.

        `address` is that of a proxy before a Mongo server or an S3 endpoint.
        """
        if self.kind == "csv":
            return SqliteStore(self.folder, margin)
        if self.kind == "s3":
            return S3Store(
                Bucket(self.bucket, endpoint_url=f"http://{address}" if address else self.url)
            )
        if self.kind == "postgres":
            return PostgresStore(self.url, margin)
        through = (
            f"mongodb://{address}{urlsplit(self.url).path}"
            "?serverSelectionTimeoutMS=300&directConnection=true"
        )
        return MongoStore(through if address else self.url, margin)

    def write(self, *items: Movie | Miss | ListPage, margin: float = 0) -> None:
        """Write items as one batch."""
        with ExitStack() as stack:
            store = self._open or stack.enter_context(opened(self.store(margin)))
            store.write([record_of(item) for item in items])

    def movies(self) -> list[Movie]:
        """Return the movies with all that is kept of them."""
        if self.kind == "csv":
            return sqlite_movies(self.folder)
        if self.kind == "s3":
            return s3_movies(self.url, self.bucket)
        return postgres_movies(self.url) if self.kind == "postgres" else mongo_movies(self.url)

    def movie(self) -> Movie:
        (movie,) = self.movies()
        return movie

    def misses(self) -> int:
        if self.kind == "mongo":
            return len(documents(self.url, "misses"))
        return len(self.ask("SELECT 1 FROM misses"))

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, which both databases understand."""
        if self.kind == "postgres":
            return execute(self.url, query)
        with closing(read_sqlite(self.folder)) as connection:
            return connection.execute(query).fetchall()

    def board(self) -> list[BoardRow]:
        """Return the rows of the scoreboard."""
        return board_of(self.url or self.folder)


@dataclass(frozen=True)
class Stores:
    """All stores but the embedded one, for crawls that write into each of them."""

    settings: dict[str, str]
    s3: dict[str, str]
    """The settings with which the bucket is read."""

    def movies(self) -> list[list[Movie]]:
        """Return the movies of Postgres, MongoDB and S3."""
        return [
            postgres_movies(self.settings["DATABASE_URL"]),
            mongo_movies(self.settings["MONGO_URL"]),
            s3_movies(self.settings["S3_ENDPOINT_URL"], self.settings["S3_BUCKET"]),
        ]

    @property
    def archive(self) -> str:
        """Where the pages are archived."""
        return f"s3://{self.settings['S3_BUCKET']}"


@pytest.fixture
def stores(database_url: str, mongo_url: str, s3_url: str, bucket_name: str) -> Stores:
    """Return all stores but the embedded one, empty."""
    s3 = {"S3_ENDPOINT_URL": s3_url, **{name: os.environ[name] for name in CREDENTIALS}}
    urls = {"DATABASE_URL": database_url, "MONGO_URL": mongo_url, "S3_BUCKET": bucket_name}
    return Stores({**urls, **s3}, s3)


@pytest.fixture(params=["csv", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Stored:
    """Return each of the two stores that have a scoreboard."""
    return Stored(request.param, request, tmp_path)


@pytest.fixture(params=["csv", "postgres", "mongo"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Stored:
    """Return a place of each kind that replaces what it holds."""
    return Stored(request.param, request, tmp_path)


@pytest.fixture(params=["csv", "postgres", "mongo", "s3"])
def every_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stored]:
    """Yield a place of each kind, written by one process that goes on."""
    place = Stored(request.param, request, tmp_path)
    with opened(place.store()) as place._open:
        yield place


def browse(folder: Path, *paths: str) -> str:
    """Return what Datasette answers about a folder's database, one page after the other."""
    from datasette.app import Datasette  # noqa: PLC0415 - the rest needs no Datasette

    metadata = json.loads((folder / "metadata.json").read_text("utf-8"))

    async def pages() -> str:
        datasette = Datasette([str(folder / FILE)], metadata=metadata)
        await datasette.invoke_startup()
        answers = [await datasette.client.get(path) for path in paths]
        assert {answer.status_code for answer in answers} == {200}
        return "".join(answer.text for answer in answers)

    return asyncio.run(pages())


def write(
    place: Path | str,
    *items: Movie | Miss | ListPage,
    margin: float = 0,
    with_csv: bool = True,
) -> None:
    """Store items in one batch: in the files of a folder, or in Postgres at a URL."""
    store = (
        PostgresStore(place, margin)
        if isinstance(place, str)
        else SqliteStore(place, margin, with_csv=with_csv)
    )
    with opened(store):
        store.write([record_of(item) for item in items])


def groups(url: str) -> set[str]:
    """Return the ids of each title's records in Postgres, older ones too, in order."""
    rows = execute(
        url,
        """
        SELECT string_agg(r.site_id, ' ' ORDER BY r.site_id COLLATE "C")
        FROM records r
        LEFT JOIN records newer ON newer.record_id = r.newer_id
        GROUP BY coalesce(r.title_id, newer.title_id)
        """,
    )
    return {str(ids) for (ids,) in rows}
