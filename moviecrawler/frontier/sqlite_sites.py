"""The budget and the circuit of a site, as a row of the queue's file."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from moviecrawler.frontier.contract import (
    DAY_SECONDS,
    LONGEST_PAUSE_SECONDS,
    PROBE_SECONDS,
    SPACING_FACTOR,
    SiteState,
)
from moviecrawler.politeness.budgets import UNLIMITED, SiteReply

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from moviecrawler.frontier.contract import RunSite
    from moviecrawler.politeness.budgets import Budget
    from moviecrawler.politeness.ledger import Refusal

_MOST_DOUBLINGS = 30
_WRITE = """
INSERT OR REPLACE INTO sites (site, day, used, next_at, reason, until, trips, probe_until)
VALUES (:site, :day, :used, :next_at, :reason, :until, :trips, :probe_until)
"""


@dataclass(kw_only=True)
class SiteRow:
    """A row of `sites`."""

    site: str
    day: int = 0
    """The UTC day of `used`, counted from 1970."""
    used: int = 0
    next_at: float = 0.0
    """When the next request may be sent."""
    reason: str = ""
    """Why the site is blocking us."""
    until: float | None = None
    """When the pause ends; None when the circuit is closed."""
    trips: int = 0
    """Refusals in a row."""
    probe_until: float | None = None
    """Until when others wait for the response to the probe."""

    @classmethod
    def read(cls, database: sqlite3.Connection, site: str) -> SiteRow:
        """Return the row of a site, or that of one which was never asked."""
        row = database.execute("SELECT * FROM sites WHERE site = ?", (site,)).fetchone()
        return cls(site=site) if row is None else cls(**row)

    def write(self, database: sqlite3.Connection) -> None:
        """Write the row."""
        database.execute(_WRITE, asdict(self))

    def refuse(self, refusal: Refusal, now: float) -> None:
        """Open the circuit; when a request that was on its way is refused, too, for the longest."""
        if self.until is not None and self.until > now:
            self.until = max(self.until, now + refusal.seconds)
            return
        seconds = refusal.seconds * 2 ** min(self.trips, _MOST_DOUBLINGS)
        self.reason = refusal.reason
        self.until = now + min(seconds, LONGEST_PAUSE_SECONDS)
        self.trips += 1
        self.probe_until = None

    def close_circuit(self) -> None:
        """Ask the site again."""
        self.reason = ""
        self.until = None
        self.trips = 0
        self.probe_until = None

    def reply(self, budget: Budget, now: float) -> SiteReply:
        """Tell whether the site may be asked. A request is charged to the day of its turn."""
        day = _day_of(self._turn(now))
        reply = SiteReply(reason=self.reason, used=self._used_on(day))
        blocked = max(self.until or 0.0, self.probe_until or 0.0) - now
        reply.half_open = self.until is not None and blocked <= 0
        if blocked > 0:
            reply.probed = (self.until or 0.0) <= now
        elif budget.per_day is not None and reply.used >= budget.per_day:
            blocked = (day + 1) * DAY_SECONDS - now
            reply.spent = True
            reply.reason = "the daily budget is exhausted"
        reply.blocked = math.ceil(max(0.0, blocked) * 1000)
        return reply

    def charge(self, budget: Budget, reply: SiteReply, now: float) -> None:
        """Charge a request, and write its turn into the reply."""
        gap = SPACING_FACTOR / budget.per_second if budget.per_second else 0.0
        turn = self._turn(now)
        reply.delay = math.ceil((turn - now) * 1000)
        reply.used += 1
        reply.probing = reply.half_open
        self.day = _day_of(turn)
        self.used = reply.used
        self.next_at = turn + gap
        if reply.probing:
            self.probe_until = now + PROBE_SECONDS

    def state(self, budgets: Mapping[RunSite, Budget], now: float) -> SiteState:
        """Return what a report says of the site."""
        return SiteState(
            site=self.site,
            refusal=self.reason if self.until is not None else None,
            stopped_until=self.until,
            used_today=self._used_on(_day_of(now)),
            budget=budgets.get(self.site, UNLIMITED),
        )

    def _turn(self, now: float) -> float:
        """Return when the next request may be sent."""
        return max(self.next_at, now)

    def _used_on(self, day: int) -> int:
        """Return the requests that were charged to a day."""
        return self.used if self.day >= day else 0  # above it when the clock was set back


def _day_of(time: float) -> int:
    """Return the UTC day of a Unix time, counted from 1970."""
    return int(time // DAY_SECONDS)
