"""What is fetched next from a site, when each title is due again, and how long all of it takes. Pure; `now` is passed in.

A site's due titles stand in three queues. *Boosted* (lane 2): wanted on all sites at once, by their boost. *Unread* (lane
1): never fetched, the most popular first. *Stale* (lane 1): fetched before, the longest due first. `choose` takes turns
between them, so that boosted titles come first and none of the queues starves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from moviecrawler.catalogue.rows import Outcome

# The database's functions have AIRING_EVERY, AIRING_AHEAD, ABSENT_FOR and BOOST_EVERY too, in numbers: another value of these takes a
# migration of `hasten_series` and `boost_title_ids`, as well.
FRESH_FOR = timedelta(days=180)
"""A title's scores move quickly until it is so old."""
FRESH_EVERY = timedelta(days=14)
OLD_EVERY = timedelta(days=90)
AIRING_EVERY = timedelta(days=7)
"""Of a series that runs, and of its newest season."""
AIRING_AHEAD = timedelta(hours=12)
"""By which lane 2 takes a series that runs before it is due, so that a season that begins is fetched within AIRING_EVERY."""
TILE_GRACE = timedelta(days=14)
"""For which a season that its series' page tells of waits, at most, for that page to come first."""
ABSENT_FOR = timedelta(days=90)
"""For how long a site that has no such title isn't asked for it again."""
FARTHEST_DUE = max(FRESH_EVERY, OLD_EVERY, AIRING_EVERY, ABSENT_FOR) + timedelta(days=30)
"""What is due later than that was put off by a machine whose clock was ahead: it is due now."""
RETRY_AFTER = timedelta(days=1)
"""After the first failure; doubled with each further one in a row, up to the title's regular interval."""
BOOST_EVERY = timedelta(days=7)
"""The least time between two rounds of one title in lane 2."""
PATIENCE = timedelta(days=30)
"""A stale title that is so long overdue goes before unread ones that are more popular, in the share of stale ones."""
BOOSTED_FAILURES = 3
"""Failures in a row after which a boosted title is left to lane 1."""

_MOST_POPULAR_VOTES = 3_000_000
"""IMDb's most voted title has about as many."""
_MOST_POPULAR_TMDB = 2_000.0
"""TMDB's popularity has no upper end; from here on it counts as 100."""
_MOST_OWED = 1.99
"""Titles; one that found no room in a small batch, and a fraction."""
_FARTHEST = 3_650
"""Days that `outlook` looks ahead."""
_DAY = timedelta(days=1)


# --- When a title is due ----------------------------------------------------------------------------------------------


def popularity_of_votes(votes: int) -> float:
    """Return a popularity of 0 to 100, with one decimal, that grows with the votes' logarithm.

    >>> popularity_of_votes(0), popularity_of_votes(1_000), popularity_of_votes(3_000_000)
    (0.0, 46.3, 100.0)
    """
    return _scaled(votes, _MOST_POPULAR_VOTES)


def votes_of_popularity(popularity: float) -> int:
    """Return about how many votes give a popularity, as `popularity_of_votes` says.

    >>> votes_of_popularity(0.0), votes_of_popularity(46.3)
    (0, 996)
    """
    return round(math.expm1(popularity / 100 * math.log1p(_MOST_POPULAR_VOTES)))


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


def interval(released: date | None, today: date, *, airs: bool = False) -> timedelta:
    """Return how often a title is fetched: every 14 days while it is younger than 180 days or not out yet, else every 90.

    A title of unknown age counts as old. One that `airs` is fetched every 7 days, whatever its age.
    """
    if airs:
        return AIRING_EVERY
    is_fresh = released is not None and today - released < FRESH_FOR
    return FRESH_EVERY if is_fresh else OLD_EVERY


def next_due(outcome: Outcome, *, now: datetime, released: date | None, failures: int, airs: bool = False) -> datetime:
    """Return when lane 1 wants a title again after a try that ended at `now`.

    `failures` counts those in a row, with this one. Raises ValueError for `blocked`: then nothing was learnt of the title,
    and it stays due as it was.
    """
    regular = interval(released, now.date(), airs=airs)
    if outcome == "ok":
        return now + regular
    if outcome == "absent":
        return now + ABSENT_FOR
    if outcome == "error":
        doublings = min(max(failures, 1) - 1, 10)  # more would be no longer, and in the end no date
        return now + min(RETRY_AFTER * (1 << doublings), regular)
    raise ValueError(f"a try that ended {outcome!r} changes no due date; leave the title as it was")


def season_due(told_at: datetime, released: date | None, *, airs: bool) -> datetime:
    """Return when a season's own page is due after its series' page has told of it.

    That is later than that page itself is due again: only when it stays away, or tells of the season no more, its own is
    fetched.
    """
    regular = interval(released, told_at.date(), airs=airs)
    return told_at + regular + min(regular, TILE_GRACE)


def boost_left(
    outcome: Outcome, *, boost_due: datetime | None, next_due: datetime, failures: int, airs: bool = False
) -> datetime | None:
    """Return when lane 2 wants a title again after a try, by either lane; None when it doesn't.

    `next_due` is lane 1's after that try. A success or an absence has served the boost. A failure is tried again, a few
    times; a block changes nothing. A series that `airs` is lane 2's as long as it does: its pages don't wait behind a long backlog.
    """
    if airs and outcome == "ok":
        return next_due - AIRING_AHEAD
    if boost_due is None or outcome == "blocked":
        return boost_due
    if outcome == "error" and failures < BOOSTED_FAILURES:
        return max(boost_due, next_due)
    return None


# --- Taking turns -----------------------------------------------------------------------------------------------------


class Candidate(Protocol):
    """What `choose` looks at: a row with these columns."""

    @property
    def title_id(self) -> int: ...  # noqa: D102
    @property
    def popularity(self) -> float: ...  # noqa: D102
    @property
    def next_due(self) -> datetime: ...  # noqa: D102


C = TypeVar("C", bound=Candidate)


@dataclass(slots=True, kw_only=True, frozen=True)
class Shares:
    """Which part of a site's pages two of the queues may have while titles wait in the others; 1 together at most, as `CatalogueOptions` has it."""

    boosted: float = 0.5
    """0 to 0.9: lane 2 goes first, but never takes all."""
    stale: float = 0.2
    """0 to 0.9. Without it, a site whose unread titles take years (a million titles, 600 pages a day) would be asked for
    each page once."""


@dataclass(slots=True)
class DeficitRoundRobin:
    """The fractions of titles that two queues are still owed, so that batches of one title share as well as large ones.

    One of these belongs to one worker. A queue that has nothing isn't owed more than a title or two for it later.
    """

    shares: Shares = field(default_factory=Shares)
    boosted: float = 0.99
    """A new worker begins with a boosted title, if there is one."""
    stale: float = 0.0

    def add(self, size: int) -> None:
        """Count a batch of so many titles."""
        self.boosted += self.shares.boosted * size
        self.stale += self.shares.stale * size

    def took(self, boosted: int, stale: int) -> None:
        """Count what the queues took of it."""
        self.boosted = min(max(self.boosted - boosted, 0.0), _MOST_OWED)
        self.stale = min(max(self.stale - stale, 0.0), _MOST_OWED)


def choose(
    size: int,
    *,
    boosted: Sequence[C],
    unread: Sequence[C],
    stale: Sequence[C],
    round_robin: DeficitRoundRobin,
    now: datetime,
) -> list[C]:
    """Return at most `size` titles, in the order in which to fetch them; as many as there are.

    Given are the first `size` titles of each queue, in its order. Boosted ones come first, up to their share. Unread ones
    come before stale ones, but for the share of these; and within that share, a stale title goes before an unread one
    only when it is at least as popular, or has been overdue for PATIENCE. What a queue leaves goes to the others.
    """
    round_robin.add(size)
    first = list(boosted[: min(int(round_robin.boosted), size)])
    taken = {title.title_id for title in first}
    unread = [title for title in unread if title.title_id not in taken]
    taken.update(title.title_id for title in unread)
    waiting = [title for title in stale if title.title_id not in taken]
    room = size - len(first)
    ahead = _ahead_of_unread(waiting, unread, room, most=int(round_robin.stale), now=now)
    chosen = [*first, *unread[: room - len(ahead)], *ahead]
    taken = {title.title_id for title in chosen}
    for title in (*waiting, *boosted):  # what is left, when unread ones are few
        if len(chosen) < size and title.title_id not in taken:
            chosen.append(title)
            taken.add(title.title_id)
    round_robin.took(len(first), len(ahead))
    return chosen


def _ahead_of_unread(stale: Collection[C], unread: Sequence[C], room: int, *, most: int, now: datetime) -> list[C]:
    """Return the stale titles that may take the place of unread ones."""
    for number in range(min(most, room, len(stale)), 0, -1):
        place = room - number
        if place >= len(unread):  # they take nobody's place
            return list(stale)[:number]
        displaced = unread[place].popularity
        ahead = [title for title in stale if title.popularity >= displaced or now - title.next_due >= PATIENCE]
        if len(ahead) >= number:
            return ahead[:number]
    return []


# --- How long it takes ------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Counts:
    """The titles of one site, each counted once but for `overdue`, `boosted` and `airing`."""

    unread: int = 0
    """Those whose id there is known, and that were never fetched."""
    fresh: int = 0
    """Fetched, and younger than FRESH_FOR."""
    old: int = 0
    """Fetched, and older."""
    absent: int = 0
    overdue: int = 0
    """Those of the above, but for `unread`, that are due now."""
    boosted: int = 0
    airing: int = 0
    """Series that run, which lane 2 wants every week, as it does what is boosted."""


@dataclass(slots=True, kw_only=True, frozen=True)
class Outlook:
    """What a site's titles cost, against what may be asked of it."""

    pages_a_day: float
    """What it takes to keep every known title fresh, once all are read."""
    enough: bool
    """Whether the budget is that large."""
    read_by: date | None
    """The day by which every title was fetched once; None when that is more than ten years away."""
    caught_up_by: date | None
    """The day by which besides nothing is overdue; None as above, or when the budget is never enough."""


def outlook(counts: Counts, *, budget: int, today: date, shares: Shares | None = None) -> Outlook:
    """Return what a site's titles cost a day, and when its backlog is done, at `budget` pages a day.

    An unread title is taken for an old one. Days are counted one by one, as what was read has to be kept fresh from then
    on, beside what is still unread.
    """
    shares = shares or Shares()
    weekly = (counts.boosted + counts.airing) * (_DAY / BOOST_EVERY - _DAY / OLD_EVERY)
    upkeep = counts.fresh * (_DAY / FRESH_EVERY) + (counts.old + counts.absent) * (_DAY / OLD_EVERY) + weekly
    each = _DAY / OLD_EVERY
    needed = upkeep + counts.unread * each
    unread, overdue = float(counts.unread), float(counts.overdue)
    read_by = today if not counts.unread else None
    caught_up_by = today if not counts.unread and not counts.overdue else None
    for days in range(1, _FARTHEST + 1):
        if caught_up_by or budget <= 0:
            break
        overdue += upkeep
        # Boosted and stale pages are bounded by their shares only while unread ones wait.
        stale = min(overdue, budget * (shares.boosted + shares.stale) if unread else budget)
        first = min(unread, budget - stale)
        stale = min(overdue, budget - first)
        unread, overdue, upkeep = unread - first, overdue - stale, upkeep + first * each
        if read_by is None and unread <= 0:
            read_by = today + days * _DAY
        if unread <= 0 and overdue <= 0:
            caught_up_by = today + days * _DAY
    return Outlook(pages_a_day=needed, enough=budget >= needed, read_by=read_by, caught_up_by=caught_up_by)
