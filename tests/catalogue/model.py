"""What the catalogue's SQL does with due titles, once more in Python: the simulation runs on it, and tests compare the two.

The queues are chosen by `catalogue/sql/candidates.sql` and the indexes of migration 3, boosts by its function `boost_title_ids`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from moviecrawler.catalogue.lanes import BOOST_EVERY
from moviecrawler.catalogue.rows import State
from moviecrawler.items import Site

Queue = Literal["boosted", "unread", "stale"]


@dataclass(slots=True, kw_only=True)
class SiteState:
    """A title on a site, as far as it decides what is fetched next."""

    title_id: int
    site: Site
    state: State
    popularity: float
    """0 to 100."""
    next_due: datetime
    """When lane 1 wants it; for `never`, any time in the past."""
    failures: int = 0
    """In a row, since the last success."""
    last_success: datetime | None = None
    boost: float = 0.0
    """Above 0 while lane 2 wants the title: how much."""
    boost_due: datetime | None = None
    """When lane 2 wants it; None when it doesn't."""
    released: date | None = None
    """By which its age is told; of a title of which only the year is known, see `lanes.release_of`."""
    claimed_until: datetime | None = None
    airs: bool = False
    """Whether it is a series that runs."""


def boost_round(last_round: datetime | None, now: datetime) -> datetime:
    """Return when the round begins that a boost at `now` asks for: at once, but never twice a week for one title.

    A round refreshes the title on all sites. `last_round` is when its last one began; one that is still to begin stays as
    it is, however often the title is boosted until then.
    """
    if last_round is None:
        return now
    return last_round if last_round > now else max(now, last_round + BOOST_EVERY)


def boost_due(last_round: datetime | None, last_answer: datetime | None, now: datetime) -> datetime:
    """Return when lane 2 wants a title on one site, after a boost at `now`: with its round.

    `last_answer` is when the site last gave its page, or said that it has none. A title that was boosted before waits for
    its week on each site: else a page that was fetched late in one round would be fetched again early in the next.
    """
    begins = boost_round(last_round, now)
    return begins if last_round is None or last_answer is None else max(begins, last_answer + BOOST_EVERY)


def is_unread(state: SiteState) -> bool:
    """Return whether a title was never fetched from its site: one whose only tries failed wasn't."""
    return state.last_success is None and state.state != "absent"


def queue_of(state: SiteState, now: datetime) -> Queue | None:
    """Return the queue in which a title stands on its site; None when it isn't due, or claimed by a worker."""
    if state.claimed_until is not None and state.claimed_until > now:
        return None
    if state.boost_due is not None and state.boost_due <= now:
        return "boosted"
    if state.next_due > now:
        return None
    return "unread" if is_unread(state) else "stale"


def boosted_order(state: SiteState) -> tuple[float, datetime, int]:
    """Return a key that sorts boosted titles in their order."""
    assert state.boost_due is not None
    return -state.boost, state.boost_due, state.title_id


def unread_order(state: SiteState) -> tuple[float, int]:
    """Return a key that sorts unread titles in their order."""
    return -state.popularity, state.title_id


def stale_order(state: SiteState) -> tuple[datetime, int]:
    """Return a key that sorts stale titles in their order."""
    return state.next_due, state.title_id
