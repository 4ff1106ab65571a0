"""The time, as finely as every store can keep it."""

from __future__ import annotations

from datetime import UTC, datetime

_MILLISECOND = 1000  # microseconds


def utc_now() -> datetime:
    """Return the time, UTC, to the millisecond.

    That is all that Mongo keeps. A finer time would come back another one, and the same reading of a page would pass for a
    newer one.
    """
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // _MILLISECOND * _MILLISECOND)
