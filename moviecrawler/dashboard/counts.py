"""Counting the catalogue now and then, so that no page has to: 3,000,000 rows take a second, and a page has a third of one."""

from __future__ import annotations

import math
import time
from datetime import datetime  # noqa: TC003 - msgspec resolves annotations, here as below
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.clock import utc_now
from moviecrawler.dashboard.sql import read_sql
from moviecrawler.items import Site  # noqa: TC001 - msgspec resolves annotations

if TYPE_CHECKING:
    from moviecrawler.dashboard.database import Database
    from moviecrawler.dashboard.keys import Keys

_COUNT = read_sql("counts.sql")
_OFTEN = 5.0
"""Seconds between two counts, at least."""
_RESTS = 20
"""Times as long as a count has taken is waited until the next one."""
_RARELY = 600.0
"""Seconds between two counts, at most."""
_LONGEST = 60.0
"""Seconds that a count may take; twice as long after, one that was broken off by a node's death is begun anew."""
_KEPT = 86_400
"""Seconds."""


class SiteCounts(msgspec.Struct, kw_only=True):
    """The figures of one site; each counts titles."""

    site: Site
    known: int = 0
    """Those whose id there is known."""
    unfound: int = 0
    """Those whose id there is still to be found."""
    in_date: int = 0
    """Those known that need not be fetched now: the fresh ones."""
    due: int = 0
    """Those that would be claimed next, by either lane."""
    unread: int = 0
    """Those known and never fetched."""
    boosted: int = 0
    read_today: int = 0
    """By UTC days, as all that follows."""
    absent_today: int = 0
    failed_today: int = 0
    """Those whose page could not be read today, and has not been since."""
    blocked_today: int = 0
    to_review: int = 0
    paused_until: datetime | None = None
    paused_because: str | None = None

    @property
    def fresh(self) -> float | None:
        """Share of the titles known there that are within their due date; None when there are none."""
        return self.in_date / self.known if self.known else None


class Counts(msgspec.Struct, kw_only=True):
    """The catalogue's figures at one moment."""

    at: float
    """Seconds since 1970."""
    took: float
    """Seconds."""
    sites: dict[str, SiteCounts]


def count(database: Database) -> Counts:
    """Count. Raises AwayError."""
    now = utc_now()
    began = time.monotonic()
    with database.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", (round(_LONGEST * 1000),))
        cursor.execute(_COUNT, {"now": now, "today": now.replace(hour=0, minute=0, second=0, microsecond=0)})
        sites = {row.site: SiteCounts(**row._asdict()) for row in cursor.fetchall()}
    return Counts(at=now.timestamp(), took=time.monotonic() - began, sites=sites)


def count_if_due(client: Any, keys: Keys, database: Database, node: str) -> bool:
    """Count when no node has done so lately, and keep what was counted; return whether it was done.

    Raises AwayError and redis.RedisError.
    """
    if not client.set(keys.counting, node, nx=True, px=round(2 * _LONGEST * 1000)):
        return False
    try:
        counts = count(database)
    except BaseException:
        client.set(keys.counting, node, px=round(_OFTEN * 1000))
        raise
    rest = min(_RARELY, max(_OFTEN, _RESTS * counts.took))
    pipe = client.pipeline()
    pipe.set(keys.counts, msgspec.json.encode(counts), ex=_KEPT)
    pipe.set(keys.counting, node, px=math.ceil(rest * 1000))
    pipe.execute()
    return True


def read_counts(client: Any, keys: Keys) -> Counts | None:
    """Return what was counted last; None when nothing was. Raises redis.RedisError."""
    text = client.get(keys.counts)
    try:
        return None if text is None else msgspec.json.decode(text, type=Counts)
    except msgspec.DecodeError:  # another version's
        return None
