"""A catalogue in Postgres of a few titles.

It can be filled and asked what is due, and tests can look at what stands there.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from moviecrawler.catalogue.due import search_unfound, select_due
from moviecrawler.catalogue.loading import Imported, load
from moviecrawler.catalogue.outcomes import write_outcomes
from moviecrawler.catalogue.rows import (
    ImportRow,
    Listed,
    ListedTitle,
)
from moviecrawler.catalogue.store import boost_named, write_listed
from moviecrawler.database.connection import Database
from moviecrawler.frontier.serialisation import DueTitle
from moviecrawler.items import CoveredBySeries, Fetched, Movie, Site
from moviecrawler.pipelines.postgres import PostgresStore
from tests.runs import record_of
from tests.services.postgres import execute, new_database

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
_FILLED = "records titles title_sites listed_ids imports imdb_episodes misses feeds"


def row(number: int, **fields: Any) -> ImportRow:
    """Return a title, the popular first."""
    return ImportRow(
        **{
            "imdb_id": f"tt{1_000_000 + number}",
            "title": f"Title {number}",
            "kind": "movie",
            "year": 2000,
            "popularity": 90.0 - number,
            **fields,
        }
    )


def wikidata(
    number: int, site_id: str, source: Any = "wikidata", confidence: float = 2.0
) -> ImportRow:
    """Return what a source says of where a title is on Rotten Tomatoes."""
    ids: Any = {"rottentomatoes": site_id}
    return ImportRow(
        imdb_id=f"tt{1_000_000 + number}", site_ids=ids, id_source=source, id_confidence=confidence
    )


def outcome(
    site_id: str, ended: Any = "ok", *, site: Any = "imdb", at: datetime = NOW, **fields: Any
) -> Fetched:
    return Fetched(site=site, outcome=ended, at=at, requested_id=site_id, **fields)


def judged(site_id: str, title_id: int, decision: Any = "accepted", **fields: Any) -> Fetched:
    """Return the outcome of a page of Rotten Tomatoes that was compared with a title."""
    compared = (
        {"page_id": site_id, "score": 2.5, "reasons": ["same title"]}
        if decision is not None
        else {}
    )
    given = {
        "site": "rottentomatoes",
        "evidence": "wikidata",
        "outcome": "ok",
        "at": NOW,
        **compared,
        **fields,
    }
    return Fetched(requested_id=site_id, title_id=title_id, decision=decision, **given)


def page(site: Any, site_id: str, title: str, **fields: Any) -> Movie:
    given = {"kind": "movie", "year": 2000, "scraped_at": NOW, **fields}
    return Movie(site=site, site_id=site_id, url=f"https://{site}/{site_id}", title=title, **given)


class Catalogued(Database):
    """The catalogue of a database, with what tests do to it and look at."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url

    def sql(self, statement: str, *values: object) -> Any:
        """Run a statement on a connection of its own, and return its rows."""
        return execute(self.url, statement, *values)

    def bring_in(self, *rows: ImportRow, source: str = "test", now: datetime = NOW) -> Imported:
        return load(self, source, "1", rows, len(rows), now)

    def record(self, *outcomes: Fetched | CoveredBySeries) -> None:
        with self.transaction() as cursor:
            cursor.execute("SELECT lock_titles()")
            write_outcomes(cursor, outcomes, Counter())

    def boost(self, *imdb_ids: str, weight: float = 1.0, now: datetime = NOW) -> None:
        assert self.boost_named([("imdb", imdb_id) for imdb_id in imdb_ids], weight, now) == []

    def boost_named(
        self, titles: list[tuple[Site, str]], weight: float, now: datetime
    ) -> list[tuple[Site, str]]:
        with self.transaction() as cursor:
            return boost_named(cursor, titles, weight, now)

    def due(
        self,
        size: int = 10,
        *,
        site: Any = "imdb",
        open_titles: Collection[int] = (),
        now: datetime = NOW,
    ) -> list[DueTitle]:
        return select_due(self, site, size, open_titles=open_titles, now=now)

    def due_ids(self, size: int = 10, **more: Any) -> list[str]:
        """Return the ids of titles that are due."""
        return [title.ids[0] for title in self.due(size, **more)]

    def unfound(
        self,
        site: Any = "rottentomatoes",
        size: int = 5,
        *,
        open_titles: Collection[int] = (),
        now: datetime = NOW,
    ) -> list[DueTitle]:
        """Return titles whose id is to be looked for in the site's lists."""
        return search_unfound(self, site, size, open_titles=open_titles, now=now)[0]

    def list_names(
        self, site: Any, *ids: str | ListedTitle, source: Any = "list", trending: bool = False
    ) -> None:
        """Have a list of a site name titles."""
        titles = [each if isinstance(each, ListedTitle) else ListedTitle(each) for each in ids]
        listed = Listed(site=site, titles=titles, source=source, trending=trending, at=NOW)
        with self.transaction() as cursor:
            cursor.execute("SELECT lock_titles()")
            write_listed(cursor, listed)

    def state(self, imdb_id: str, site: str = "imdb") -> Any:
        """Return the row of a title on a site."""
        statement = (
            "SELECT s.* FROM title_sites s JOIN titles t USING (title_id)"
            " WHERE t.imdb_id = %s AND s.site = %s"
        )
        with self.transaction() as cursor:
            cursor.execute(statement, (imdb_id, site))
            return cursor.fetchone()

    def write(self, *movies: Movie) -> None:
        """Store movies as a crawl does."""
        with closing(PostgresStore(self.url)) as postgres:
            postgres.open()
            postgres.write([record_of(movie) for movie in movies])

    def title_id(self, imdb_id: str = "tt1000001") -> Any:
        return self.sql("SELECT title_id FROM titles WHERE imdb_id = %s", imdb_id)[0][0]


@pytest.fixture(scope="session")
def catalogue_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """Return the URL of a database that tests fill by turns."""
    url = new_database(postgres_server, postgres_template)
    yield url
    execute(postgres_server, f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")


@pytest.fixture
def store(catalogue_url: str) -> Iterator[Catalogued]:
    """Return an empty catalogue."""
    with closing(Catalogued(catalogue_url)) as store:
        yield store
    statements = [f"DELETE FROM {table}" for table in _FILLED.split()]  # noqa: S608 - ours
    execute(catalogue_url, "; ".join(statements))
