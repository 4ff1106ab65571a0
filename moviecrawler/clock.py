"""The time, as finely as every store can keep it."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

_MILLISECOND = 1000  # microseconds
_IMPORTED_AT = time.monotonic()
_STARTED_AT = 19
"""Place of a process' start among the fields of /proc/…/stat that follow its name."""


def utc_now() -> datetime:
    """Return the time, UTC, to the millisecond.

    That is all that Mongo keeps. A finer time would come back another one, and the same reading of a page would pass for a
    newer one.
    """
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // _MILLISECOND * _MILLISECOND)


def process_age() -> float:
    """Return the seconds since this process began; where the system doesn't tell, since this module was imported."""
    try:
        ticks = int(Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()[_STARTED_AT])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.monotonic() - _IMPORTED_AT
