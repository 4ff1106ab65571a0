"""The budget of a day, of a crawl that no other worker shares. Pure; `now` is passed in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date


def begin_of_day(now: datetime) -> datetime:
    """Return when the UTC day began, by which budgets are counted."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def until_next_day(now: datetime) -> timedelta:
    """Return how long it takes until there is a new budget."""
    return begin_of_day(now) + timedelta(days=1) - now


@dataclass(slots=True)
class DayBudget:
    """How many requests were made to a site today, of those that may be."""

    per_day: int
    day: date
    used: int = 0

    def spend(self, now: datetime) -> None:
        """Count a request."""
        self._turn(now)
        self.used += 1

    def left(self, now: datetime) -> int:
        """Return how many more may be made."""
        self._turn(now)
        return max(0, self.per_day - self.used)

    def _turn(self, now: datetime) -> None:
        today = begin_of_day(now).date()
        if today > self.day:  # a clock that is set back gives no second budget
            self.day, self.used = today, 0
