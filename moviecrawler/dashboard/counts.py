"""Counts the catalogue in the background: 3,000,000 rows take a second, too long for a page."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.catalogue.figures import SiteFigures, figures
from moviecrawler.catalogue.lanes import FRESH_FOR
from moviecrawler.clock import utc_now

if TYPE_CHECKING:
    from moviecrawler.cluster.keys import Keys
    from moviecrawler.database.short_transactions import ShortTransactions

_MIN_PAUSE_SECONDS = 5.0
"""Shortest pause between two counts."""
_PAUSE_FACTOR = 20
"""Pause until the next count, as a multiple of the duration of the last."""
_MAX_PAUSE_SECONDS = 600.0
"""Longest pause between two counts."""
_MAX_COUNT_SECONDS = 60.0
"""Time-out of a count. After twice that time another node counts, in case the first one died."""
_KEPT_SECONDS = 86_400
"""Seconds for which the last count is kept."""


class Counts(msgspec.Struct, kw_only=True):
    """The catalogue's figures at one moment."""

    at: float
    """Seconds since 1970."""
    took: float
    """Seconds that the count took."""
    sites: dict[str, SiteFigures]


def count(database: ShortTransactions) -> Counts:
    """Count. Raises AwayError."""
    now = utc_now()
    began = time.monotonic()
    found = figures(database, now, (now - FRESH_FOR).date(), _MAX_COUNT_SECONDS)
    return Counts(at=now.timestamp(), took=time.monotonic() - began, sites={site.site: site for site in found})


def count_if_due(client: Any, keys: Keys, database: ShortTransactions, node: str) -> bool:
    """Count and store the figures, unless a node has done so lately; return whether it was done.

    Raises AwayError and redis.RedisError.
    """
    if not client.set(keys.counting, node, nx=True, px=round(2 * _MAX_COUNT_SECONDS * 1000)):
        return False
    try:
        counts = count(database)
    except BaseException:
        client.set(keys.counting, node, px=round(_MIN_PAUSE_SECONDS * 1000))
        raise
    pause = min(_MAX_PAUSE_SECONDS, max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * counts.took))
    pipe = client.pipeline()
    pipe.set(keys.counts, msgspec.json.encode(counts), ex=_KEPT_SECONDS)
    pipe.set(keys.counting, node, px=math.ceil(pause * 1000))
    pipe.execute()
    return True


def read_counts(client: Any, keys: Keys) -> Counts | None:
    """Return the last count; None when there is none. Raises redis.RedisError."""
    text = client.get(keys.counts)
    try:
        return None if text is None else msgspec.json.decode(text, type=Counts)
    except msgspec.DecodeError:  # another version's
        return None
