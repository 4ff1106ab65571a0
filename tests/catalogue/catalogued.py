"""A catalogue in Postgres of a few titles: to fill it, to claim of it, and to look at what stands there."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.lanes import DeficitRoundRobin
from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.outcomes import SiteOutcome
from moviecrawler.catalogue.rows import ImportRow, Sighting
from moviecrawler.items import Movie
from moviecrawler.pipelines.postgres import PostgresStore
from tests.pipelines.runs import record_of
from tests.services.postgres import execute

if TYPE_CHECKING:
    from moviecrawler.catalogue.claims import Claim
    from moviecrawler.catalogue.store import CatalogueStore

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


def bring_in(store: CatalogueStore, *rows: ImportRow, source: str = "test", now: datetime = NOW) -> Any:
    return load(store, source, "1", rows, len(rows), now)


def claims_of(
    store: CatalogueStore, size: int = 10, *, site: Any = "imdb", worker: str = "w", now: datetime = NOW
) -> list[Claim]:
    return store.claim(site, size, worker=worker, lease=LEASE, round_robin=DeficitRoundRobin(), now=now)


def claim(store: CatalogueStore, size: int = 10, **more: Any) -> list[str]:
    """Return the ids that are claimed."""
    return [claim.ids[0] for claim in claims_of(store, size, **more)]


def unfound(store: CatalogueStore, site: Any = "rottentomatoes", size: int = 5, *, now: datetime = NOW) -> list[Claim]:
    """Claim titles whose id is to be looked for in the site's lists."""
    return store.claim_unfound(site, size, worker="w", lease=LEASE, now=now)[0]


def list_names(store: CatalogueStore, site: Any, *ids: str) -> None:
    """Have a list of a site name ids."""
    store.sight(site, map(Sighting, ids), "lists", trending=False, pages=0, now=NOW)


def outcome(site_id: str, ended: Any = "ok", *, site: Any = "imdb", at: datetime = NOW, **fields: Any) -> SiteOutcome:
    return SiteOutcome(site=site, outcome=ended, at=at, asked_id=site_id, **fields)


def state(database_url: str, imdb_id: str, site: str = "imdb") -> dict[str, Any]:
    found = execute(
        database_url,
        "SELECT to_jsonb(s) FROM title_sites s JOIN titles t USING (title_id) WHERE t.imdb_id = %s AND s.site = %s",
        imdb_id,
        site,
    )
    return found[0][0]  # type: ignore[return-value]


def when(text: str) -> datetime:
    return datetime.fromisoformat(text)


def write(database_url: str, *movies: Movie) -> None:
    """Store movies as a crawl does."""
    with closing(PostgresStore(database_url)) as postgres:
        postgres.open()
        postgres.write([record_of(movie) for movie in movies])


def page(site: Any, site_id: str, title: str, **fields: Any) -> Movie:
    return Movie(
        **{
            "site": site,
            "site_id": site_id,
            "url": f"https://{site}/{site_id}",
            "title": title,
            "kind": "movie",
            "year": 2000,
            "scraped_at": NOW,
            **fields,
        }
    )


def title_id(database_url: str, imdb_id: str = "tt1000001") -> Any:
    return execute(database_url, "SELECT title_id FROM titles WHERE imdb_id = %s", imdb_id)[0][0]
