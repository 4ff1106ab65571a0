"""The time, as finely as every store can keep it."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from moviecrawler.basics.errors import ClockError

TOLERANCE = timedelta(minutes=2)
"""The difference from a server's clock at which a crawl refuses to start."""
FUTURE = timedelta(minutes=10)
"""A record that says it was read later than this from now was read with a wrong clock: every other
record replaces it."""
_MILLISECOND = 1000  # microseconds
_IMPORTED_AT = time.monotonic()
_STARTED_AT = 19
"""Index of a process' start among the fields of /proc/…/stat that follow its name."""


def utc_now() -> datetime:
    """Return the time, UTC, to the millisecond.

    That is all that Mongo keeps. A finer time would come back another one, and the same reading of
    a page would pass for a newer one.
    """
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // _MILLISECOND * _MILLISECOND)


def latest() -> datetime:
    """Return the latest time of reading that a stored record can have."""
    return utc_now() + FUTURE


def check_clock(theirs: datetime, server: str) -> None:
    """Raise ClockError when this machine's clock is not that of a server, such as Postgres.

    Records with a wrong time would replace those of other machines, or be replaced by them.
    """
    ahead = utc_now() - theirs
    if abs(ahead) >= TOLERANCE:
        direction = "ahead of" if ahead > timedelta() else "behind"
        raise ClockError(
            f"the clock of this machine is {abs(ahead) / timedelta(minutes=1):,.0f} minutes"
            f" {direction} that of {server}; set it (NTP)"
        )


def utc_text(at: float | datetime, *, seconds: bool = False) -> str:
    """Return a time as people read it: to the minute or second, UTC.

    It is given in seconds since 1970, or with its time zone.

    >>> utc_text(0), utc_text(datetime(2026, 5, 28, 20, 26, 9, tzinfo=UTC), seconds=True)
    ('1970-01-01 00:00 UTC', '2026-05-28 20:26:09 UTC')
    """
    time_ = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return f"{time_:%Y-%m-%d %H:%M:%S} UTC" if seconds else f"{time_:%Y-%m-%d %H:%M} UTC"


def process_age() -> float:
    """Return the seconds since this process began.

    Where the system doesn't say, they are those since this module was imported.
    """
    try:
        ticks = int(
            Path("/proc/self/stat")
            .read_text("ascii", "replace")
            .rpartition(")")[2]
            .split()[_STARTED_AT]
        )
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.monotonic() - _IMPORTED_AT
