"""The time, as finely as every store can keep it, and as right as it is known."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

TOLERANCE = timedelta(minutes=2)
"""By which this machine's clock may differ from others' before it is corrected."""
FUTURE = timedelta(minutes=10)
"""What claims to have been read later than this from now was read by a machine whose clock was wrong: it gives way."""
_MILLISECOND = 1000  # microseconds
_IMPORTED_AT = time.monotonic()
_STARTED_AT = 19
"""Place of a process' start among the fields of /proc/…/stat that follow its name."""

_corrected: tuple[datetime, float] | None = None
"""The right time, and what `time.monotonic()` was then: as that goes on steadily when the clock is set."""


def utc_now() -> datetime:
    """Return the time, UTC, to the millisecond: by this machine's clock, or as it was corrected.

    That is all that Mongo keeps. A finer time would come back another one, and the same reading of a page would pass for a
    newer one.
    """
    if _corrected is None:
        now = datetime.now(UTC)
    else:
        right, then = _corrected
        now = right + timedelta(seconds=time.monotonic() - then)
    return now.replace(microsecond=now.microsecond // _MILLISECOND * _MILLISECOND)


def correct(right: datetime) -> None:
    """Have `utc_now` go on from the right time, in this process, whatever this machine's clock says."""
    global _corrected  # noqa: PLW0603 - all of a process asks the same clock
    _corrected = right, time.monotonic()


def restore() -> None:
    """Have `utc_now` return this machine's time again."""
    global _corrected  # noqa: PLW0603 - as above
    _corrected = None


def latest() -> datetime:
    """Return the latest time that something stored can have been read at."""
    return utc_now() + FUTURE


def utc_text(at: float | datetime, *, seconds: bool = False) -> str:
    """Return a time, given in seconds since 1970 or with its time zone, as people read it: to the minute or second, UTC.

    >>> utc_text(0), utc_text(datetime(2026, 5, 28, 20, 26, 9, tzinfo=UTC), seconds=True)
    ('1970-01-01 00:00 UTC', '2026-05-28 20:26:09 UTC')
    """
    time_ = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return f"{time_:%Y-%m-%d %H:%M:%S} UTC" if seconds else f"{time_:%Y-%m-%d %H:%M} UTC"


def process_age() -> float:
    """Return the seconds since this process began; where the system doesn't tell, since this module was imported."""
    try:
        ticks = int(Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()[_STARTED_AT])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.monotonic() - _IMPORTED_AT
