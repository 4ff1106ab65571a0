"""How popular a title is, and how long a site's titles take. Pure.

When a title is due again is told by the database's functions `fetch_interval` and `due_again` (`database/sql/schema.sql`), which titles a
worker gets next by `sql/claim.sql`.
"""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from moviecrawler.catalogue.figures import SiteFigures

FRESH_FOR = timedelta(days=180)
"""A title's scores move quickly until it is so old."""
_FRESH_DAYS, _OLD_DAYS, _WEEK = 14, 90, 7
"""Days between two readings of a title: as `fetch_interval` has it, and of what is boosted or airs."""
_MOST_POPULAR_VOTES = 3_000_000
"""IMDb's most voted title has about as many."""
_MOST_POPULAR_TMDB = 2_000.0
"""TMDB's popularity has no upper end; from here on it counts as 100."""
_DAY = timedelta(days=1)


def popularity_of_votes(votes: int) -> float:
    """Return a popularity of 0 to 100, with one decimal, that grows with the votes' logarithm.

    >>> popularity_of_votes(0), popularity_of_votes(1_000), popularity_of_votes(3_000_000)
    (0.0, 46.3, 100.0)
    """
    return _scaled(votes, _MOST_POPULAR_VOTES)


def popularity_of_tmdb(popularity: float) -> float:
    """Return TMDB's popularity on the scale of `popularity_of_votes`.

    >>> popularity_of_tmdb(0.6), popularity_of_tmdb(50.0)
    (6.2, 51.7)
    """
    return _scaled(popularity, _MOST_POPULAR_TMDB)


def _scaled(value: float, most: float) -> float:
    return min(round(100 * math.log1p(max(value, 0)) / math.log1p(most), 1), 100.0)


def release_of(release_date: str | None, year: int | None) -> date | None:
    """Return the day by which a title's age is told: of a month or a year its last one; None when nothing is known.

    `release_date` is `YYYY-MM-DD` or `YYYY-MM`, as in `Movie`. The last day, so that no title passes for older than it is.

    >>> release_of("2026-02", 2026), release_of(None, 1999)
    (datetime.date(2026, 2, 28), datetime.date(1999, 12, 31))
    """
    if release_date is not None:
        at, month, *day = map(int, release_date.split("-"))
        return date(at, month, *day) if day else date(at + month // 12, month % 12 + 1, 1) - _DAY
    return None if year is None else date(year, 12, 31)


class Outlook(NamedTuple):
    """What a site's titles cost, against what may be asked of it."""

    pages_a_day: float
    """What it takes to keep every known title fresh, once all are read."""
    enough: bool
    """Whether the budget is that large."""
    caught_up_by: date | None
    """The day by which every title was fetched and nothing is overdue; None when the budget is never enough."""


def outlook(counts: SiteFigures, *, budget: int, today: date) -> Outlook:
    """Return what a site's titles cost a day, and when its backlog is done at `budget` pages a day. An unread title passes for an old one."""
    weekly = (counts.boosted + counts.airing) * (1 / _WEEK - 1 / _OLD_DAYS)
    needed = counts.fresh / _FRESH_DAYS + (counts.old + counts.absent + counts.unread) / _OLD_DAYS + weekly
    backlog, left = counts.unread + counts.overdue, budget - needed
    caught_up_by = today if not backlog else today + math.ceil(backlog / left) * _DAY if left > 0 else None
    return Outlook(needed, budget >= needed, caught_up_by)
