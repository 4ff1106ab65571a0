"""What is shown of the catalogue: the figures of each site, what is due next, and what a person is to decide on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from moviecrawler.catalogue.lanes import choose
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.items import Site

if TYPE_CHECKING:
    from datetime import date, datetime

    from moviecrawler.catalogue.lanes import DeficitRoundRobin
    from moviecrawler.catalogue.rows import State
    from moviecrawler.catalogue.store import CatalogueStore

_CANDIDATES = read_sql("candidates.sql")
_STATUS = read_sql("status.sql")


@dataclass(slots=True, kw_only=True)
class SiteFigures:
    """The figures of one site; each counts titles."""

    site: Site
    known: int = 0
    """Those whose id there is known."""
    unfound: int = 0
    never: int = 0
    ok: int = 0
    absent: int = 0
    error: int = 0
    blocked: int = 0
    due: int = 0
    """Those that would be claimed next, by either lane."""
    overdue: int = 0
    """Those of them that were fetched before."""
    claimed: int = 0
    boosted: int = 0
    unread: int = 0
    fresh: int = 0
    old: int = 0
    oldest: datetime | None = None
    """The longest ago that the newest page of a title was fetched."""
    to_review: int = 0
    paused_until: datetime | None = None
    paused_because: str | None = None


class DueTitle(NamedTuple):
    """A title of `due`."""

    queue: str
    imdb_id: str | None
    title: str | None
    year: int | None
    site_id: str
    state: State
    popularity: float
    last_success: datetime | None
    next_due: datetime


class Review(NamedTuple):
    """A page that may be a title's, or not."""

    imdb_id: str | None
    title: str | None
    year: int | None
    site: Site
    site_id: str
    score: float
    reasons: list[str]
    decided_at: datetime


def figures(store: CatalogueStore, now: datetime, fresh_since: date) -> list[SiteFigures]:
    """Return the figures of each site; titles that came out since then are the fresh ones."""
    figures = {site: SiteFigures(site=site) for site in get_args(Site)}
    with store.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '10min'")
        cursor.execute(_STATUS, {"now": now, "fresh_year": fresh_since.year})
        for row in cursor.fetchall():
            figures[row.site] = SiteFigures(**row._asdict())
        cursor.execute("SELECT site::text, count(*) FROM title_matches WHERE decision = 'review' GROUP BY site")
        for site, number in cursor.fetchall():
            figures[site].to_review = number
        cursor.execute("SELECT site::text, until, reason FROM site_pauses WHERE until > %s", (now,))
        for site, until, reason in cursor.fetchall():
            figures[site].paused_until, figures[site].paused_because = until, reason
    return list(figures.values())


def due(store: CatalogueStore, site: Site, size: int, round_robin: DeficitRoundRobin, now: datetime) -> list[DueTitle]:
    """Return the titles that would be claimed next, without claiming them."""
    with store.transaction() as cursor:
        cursor.execute(_CANDIDATES, {"site": site, "now": now, "size": size})
        queues: dict[str, list[Any]] = {"boosted": [], "unread": [], "stale": []}
        for candidate in cursor.fetchall():
            queues[candidate[0]].append(candidate)
        chosen = choose(size, round_robin=round_robin, now=now, **queues)
        cursor.execute(
            "SELECT t.title_id, t.imdb_id, t.title, t.year, s.site_id, s.state, s.popularity, s.last_success, s.next_due"
            " FROM title_sites s JOIN titles t USING (title_id) WHERE s.site = %s AND s.title_id = ANY (%s)",
            (site, [found.title_id for found in chosen]),
        )
        rows = {row.title_id: row for row in cursor.fetchall()}
    return [DueTitle(found[0], *rows[found.title_id][1:]) for found in chosen]


def reviews(store: CatalogueStore, limit: int) -> list[Review]:
    """Return the pages that a person is to decide on, the likeliest first."""
    with store.transaction() as cursor:
        cursor.execute(
            "SELECT t.imdb_id, t.title, t.year, m.site, m.site_id, m.score, m.reasons, m.decided_at"
            " FROM title_matches m JOIN titles t USING (title_id)"
            " WHERE m.decision = 'review' ORDER BY m.score DESC, m.title_id, m.site, m.site_id LIMIT %s",
            (limit,),
        )
        return [Review(*row) for row in cursor.fetchall()]


def imported_rows(store: CatalogueStore, source: str) -> int | None:
    """Return how many rows a source had when all of it was imported last; None when it never was."""
    with store.transaction() as cursor:
        cursor.execute("SELECT rows_done FROM imports WHERE source = %s AND finished_at IS NOT NULL", (source,))
        found = cursor.fetchone()
    return None if found is None else int(found.rows_done)
