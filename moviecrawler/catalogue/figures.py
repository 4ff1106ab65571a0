"""Reads the counts of each site, the titles that are due next, and the pages under review."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.catalogue.due import DUE, due_values
from moviecrawler.catalogue.sql import read_sql

if TYPE_CHECKING:
    from datetime import date

    from moviecrawler.database.connection import Database
    from moviecrawler.database.short_transactions import ShortTransactions
    from moviecrawler.sites import Site

_STATUS = read_sql("status.sql")
_REVIEWS = (
    "SELECT t.imdb_id, t.title, t.year, m.site, m.site_id, m.score, m.reasons"
    " FROM title_matches m JOIN titles t USING (title_id) WHERE m.decision = 'review'"
    " ORDER BY m.score DESC, m.title_id, m.site, m.site_id LIMIT %(limit)s"
)
_DUE = (
    "SELECT queue, t.imdb_id, s.site_id, CASE WHEN t.season IS NULL OR of.title IS NULL"
    " THEN t.title ELSE format('%%s, season %%s', of.title, t.season) END, t.year"
    " FROM unnest(%s::bigint[], %s::text[]) WITH ORDINALITY AS chosen (title_id, queue, nth)"
    " JOIN title_sites s USING (title_id) JOIN titles t USING (title_id)"
    " LEFT JOIN titles of ON of.title_id = t.series_title_id"
    " WHERE s.site = %s ORDER BY nth"
)


@dataclass(slots=True, kw_only=True)
class SiteFigures:
    """The figures of one site; each counts titles."""

    site: Site
    known: int = 0
    """Titles whose id there is known."""
    unfound: int = 0
    unread: int = 0
    """Known titles that were never fetched."""
    ok: int = 0
    absent: int = 0
    error: int = 0
    blocked: int = 0
    due: int = 0
    """Titles that may be fetched now; some of them may be queued."""
    overdue: int = 0
    """Titles that were fetched, or are absent, and are due again."""
    boosted: int = 0
    """Boosted titles, which go first when they are due; series that run are among them."""
    read_today: int = 0
    """Today is the UTC day, here and below."""
    failed_today: int = 0
    """Titles whose page could not be read today, and has not been since."""
    blocked_today: int = 0
    pages_a_day: float = 0
    """Pages a day that keep all known titles fresh; a title that was never fetched counts as an
    old one."""
    oldest: datetime | None = None
    """The earliest time at which a title's newest page was fetched."""
    to_review: int = 0

    @property
    def in_date_share(self) -> float | None:
        """Share of the known titles that are not due; None when none is known."""
        return 1 - self.due / self.known if self.known else None

    def caught_up_by(self, budget: int, today: date) -> date | None:
        """Return the day on which nothing is unread or overdue at `budget` pages a day.

        None when these never suffice.
        """
        backlog = self.unread + self.overdue
        left = budget - self.pages_a_day
        if not backlog:
            return today
        return today + timedelta(math.ceil(backlog / left)) if left > 0 else None


class DueSoon(NamedTuple):
    """A title that is due next."""

    queue: str
    imdb_id: str | None
    site_id: str
    title: str | None
    year: int | None


class Review(NamedTuple):
    """A page under review: whether it is the title's is undecided."""

    imdb_id: str | None
    title: str | None
    year: int | None
    site: Site
    site_id: str
    score: float
    reasons: list[str]


def figures(
    database: Database | ShortTransactions, now: datetime, timeout_seconds: float = 600
) -> list[SiteFigures]:
    """Return the figures of each site."""
    with database.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", (round(timeout_seconds * 1000),))
        cursor.execute(
            _STATUS, {"now": now, "today": now.replace(hour=0, minute=0, second=0, microsecond=0)}
        )
        rows = [row._asdict() for row in cursor.fetchall()]
    return [
        SiteFigures(**{name: value for name, value in row.items() if value is not None})
        for row in rows
    ]


def due(database: Database, site: Site, size: int, now: datetime) -> list[DueSoon]:
    """Return the titles that are due next."""
    with database.transaction() as cursor:
        cursor.execute(DUE, due_values(site, size, (), now))
        chosen = cursor.fetchall()
        cursor.execute(
            _DUE, ([row.title_id for row in chosen], [row.queue for row in chosen], site)
        )
        return [DueSoon(*row) for row in cursor.fetchall()]


def reviews(database: Database, limit: int) -> list[Review]:
    """Return the pages under review, the likeliest first."""
    with database.transaction() as cursor:
        cursor.execute(_REVIEWS, {"limit": limit})
        return [Review(*row) for row in cursor.fetchall()]
