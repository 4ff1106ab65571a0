"""Lines of progress of long work, each with what is left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVAL_SECONDS = 10.0
"""Seconds between two lines."""


class Progress:
    """Reports how far some work is, at most every ten seconds."""

    def __init__(self, report: Callable[[str], object], subject: str, total: int) -> None:
        """Take what gets the lines, and what is counted, such as `rows of credits.csv written`."""
        self._report = report
        self._subject = subject
        self._total = total
        self._began = time.monotonic()
        self._reported = self._began

    def note(self, done: int) -> None:
        """Report, if it is time, how much is done and how long the rest will take."""
        now = time.monotonic()
        if now - self._reported < INTERVAL_SECONDS:
            return
        self._reported = now
        done = min(done, self._total)
        minutes = (now - self._began) / 60 * (self._total - done) / max(done, 1)
        self._report(f"{done:,} of {self._total:,} {self._subject}, {minutes:.0f} min left")
