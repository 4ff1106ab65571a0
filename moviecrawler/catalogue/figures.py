"""What is shown of the catalogue: the figures of each site, what is due next, and what a person is to decide on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from moviecrawler.catalogue.claims import CLAIM, claim_values
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.items import Site, TitleKind  # noqa: TC001 - as above

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import date

    from moviecrawler.catalogue.rows import State
    from moviecrawler.database.connection import Database

_STATUS = read_sql("status.sql")
_REVIEWS = read_sql("reviews.sql")


@dataclass(slots=True, kw_only=True)
class SiteFigures:
    """The figures of one site; each counts titles."""

    site: Site
    known: int = 0
    """Those whose id there is known."""
    series: int = 0
    """Those known that are series."""
    seasons: int = 0
    """Those known that are seasons."""
    unfound: int = 0
    unread: int = 0
    """Those whose id there is known, and that were never fetched."""
    fresh: int = 0
    """Fetched, and younger than `lanes.FRESH_FOR`."""
    old: int = 0
    """Fetched, and older."""
    overdue: int = 0
    """Those that were fetched, or are not there, and are due now."""
    boosted: int = 0
    airing: int = 0
    """Series that run, which are fetched every week."""
    never: int = 0
    ok: int = 0
    absent: int = 0
    error: int = 0
    blocked: int = 0
    due: int = 0
    """Those that would be claimed next."""
    claimed: int = 0
    in_date: int = 0
    """Those known that need not be fetched now."""
    read_today: int = 0
    """By UTC days, as all that is of today."""
    absent_today: int = 0
    failed_today: int = 0
    """Those whose page could not be read today, and has not been since."""
    blocked_today: int = 0
    oldest: datetime | None = None
    """The longest ago that the newest page of a title was fetched."""
    to_review: int = 0
    paused_until: datetime | None = None
    paused_because: str | None = None

    @property
    def in_date_share(self) -> float | None:
        """Share of the titles known there that need not be fetched now; None when none is known."""
        return self.in_date / self.known if self.known else None


class DueTitle(NamedTuple):
    """A title of `due`."""

    queue: str
    """boosted, airing, unread or stale."""
    imdb_id: str | None
    title: str | None
    year: int | None
    site_id: str
    state: State
    popularity: float
    last_success: datetime | None
    next_due: datetime
    kind: TitleKind | None
    series_title: str | None
    """The title of a season's series."""
    season: int | None

    @property
    def name(self) -> str:
        """What it is called; a season by its series and number, as its own title may be no more than that."""
        if self.season is None or self.series_title is None:
            return self.title or ""
        place = f"{self.series_title}, season {self.season}"
        return place if self.title in {None, f"Season {self.season}", place} else f"{place}: {self.title}"


class Review(NamedTuple):
    """A page that may be a title's, or not."""

    title_id: int
    imdb_id: str | None
    title: str | None
    year: int | None
    site: Site
    site_id: str
    score: float
    reasons: list[str]
    decided_at: datetime


class Transactions(Protocol):
    """A connection to the catalogue's tables."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Give a cursor."""


def figures(store: Transactions, now: datetime, fresh_since: date, timeout_seconds: float = 600) -> list[SiteFigures]:
    """Return the figures of each site; titles that came out since then are the fresh ones."""
    with store.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", (round(timeout_seconds * 1000),))
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        cursor.execute(_STATUS, {"now": now, "fresh_year": fresh_since.year, "today": today})
        found = [row._asdict() for row in cursor.fetchall()]
    return [SiteFigures(**{name: value for name, value in row.items() if value is not None}) for row in found]


def due(database: Database, site: Site, size: int, now: datetime) -> list[DueTitle]:
    """Return the titles that would be claimed next, without claiming them."""
    with database.transaction() as cursor:
        cursor.execute(CLAIM, claim_values(site, size, "", now, timedelta()))
        chosen = {row.title_id: row for row in cursor.fetchall()}
        cursor.connection.rollback()
        cursor.execute(
            "SELECT t.title_id, t.imdb_id, t.title, t.year, s.site_id, s.state, s.popularity, s.last_success,"
            " s.next_due, t.kind, of.title AS series_title, t.season"
            " FROM title_sites s JOIN titles t USING (title_id) LEFT JOIN titles of ON of.title_id = t.series_title_id"
            " WHERE s.site = %s AND s.title_id = ANY (%s)",
            (site, list(chosen)),
        )
        rows = {row.title_id: row for row in cursor.fetchall()}
    return [
        DueTitle("airing" if found.queue == "boosted" and not found.boost else found.queue, *rows[title_id][1:])
        for title_id, found in chosen.items()
    ]


def reviews(store: Transactions, limit: int) -> list[Review]:
    """Return the pages that a person is to decide on, the likeliest first."""
    with store.transaction() as cursor:
        cursor.execute(_REVIEWS, {"limit": limit})
        return [Review(*row) for row in cursor.fetchall()]
