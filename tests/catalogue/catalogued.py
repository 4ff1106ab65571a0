"""A catalogue in Postgres of a few titles.

It can be filled and claimed of, and tests can look at what stands there.
"""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from moviecrawler.catalogue import store
from moviecrawler.catalogue.claims import Claim, claim, claim_unfound
from moviecrawler.catalogue.loading import Imported, load
from moviecrawler.catalogue.outcomes import AnyOutcome, Fetched, Judged, record
from moviecrawler.catalogue.rows import ImportRow, ListedTitle
from moviecrawler.database.connection import Database, open_database
from moviecrawler.items import Movie, Site
from moviecrawler.pipelines.postgres import PostgresStore
from tests.pipelines.runs import record_of
from tests.services.postgres import execute

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
LEASE = timedelta(hours=2)
DAY = timedelta(days=1)


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
    return Fetched(site=site, outcome=ended, at=at, asked_id=site_id, **fields)


def judged(site_id: str, title_id: int, decision: Any = "accepted", **fields: Any) -> Judged:
    """Return the outcome of a page of Rotten Tomatoes that was compared with a title."""
    compared = (
        {"got_id": site_id, "score": 2.5, "reasons": ["same title"]} if decision is not None else {}
    )
    given = {
        "site": "rottentomatoes",
        "evidence": "wikidata",
        "outcome": "ok",
        "at": NOW,
        **compared,
        **fields,
    }
    return Judged(asked_id=site_id, title_id=title_id, decision=decision, **given)


def page(site: Any, site_id: str, title: str, **fields: Any) -> Movie:
    given = {"kind": "movie", "year": 2000, "scraped_at": NOW, **fields}
    return Movie(site=site, site_id=site_id, url=f"https://{site}/{site_id}", title=title, **given)


class Catalogued(Database):
    """The catalogue of a database, with what tests do to it and look at."""

    def __init__(self, url: str) -> None:
        super().__init__(lambda: open_database(url))
        self.url = url

    def sql(self, statement: str, *values: object) -> Any:
        """Run a statement on a connection of its own, and return its rows."""
        return execute(self.url, statement, *values)

    def bring_in(self, *rows: ImportRow, source: str = "test", now: datetime = NOW) -> Imported:
        return load(self, source, "1", rows, len(rows), now)

    def record(self, *outcomes: AnyOutcome) -> None:
        record(self, outcomes)

    def boost(self, *imdb_ids: str, weight: float = 1.0, now: datetime = NOW) -> None:
        assert self.boost_named([("imdb", imdb_id) for imdb_id in imdb_ids], weight, now) == []

    def boost_named(
        self, titles: list[tuple[Site, str]], weight: float, now: datetime
    ) -> list[tuple[Site, str]]:
        with self.transaction() as cursor:
            return store.boost_named(cursor, titles, weight, now)

    def claims_of(
        self, size: int = 10, *, site: Any = "imdb", worker: str = "w", now: datetime = NOW
    ) -> list[Claim]:
        return claim(self, site, size, worker=worker, lease=LEASE, now=now)

    def claim_ids(self, size: int = 10, **more: Any) -> list[str]:
        """Claim titles, and return their ids."""
        return [claim.ids[0] for claim in self.claims_of(size, **more)]

    def unfound(
        self, site: Any = "rottentomatoes", size: int = 5, *, now: datetime = NOW
    ) -> list[Claim]:
        """Claim titles whose id is to be looked for in the site's lists."""
        return claim_unfound(self, site, size, worker="w", lease=LEASE, now=now)[0]

    def list_names(
        self, site: Any, *ids: str | ListedTitle, source: Any = "list", trending: bool = False
    ) -> None:
        """Have a list of a site name titles."""
        seen = [each if isinstance(each, ListedTitle) else ListedTitle(each) for each in ids]
        store.record_listed(self, site, seen, source, trending=trending, now=NOW)

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
