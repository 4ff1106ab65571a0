"""What is known of a shared crawl at one moment, how fast it goes, and how both are shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from moviecrawler.clock import utc_text
from moviecrawler.frontier.budgets import Budget
from moviecrawler.texts import printable

if TYPE_CHECKING:
    from moviecrawler.items import Site

State = Literal["running", "finished", "no worker", "stopped", "trying", "budget spent"]
"""`no worker`: there is something to do and nobody does it. `stopped`: the site has refused us. `trying`: that time is over,
and one request finds out whether it answers again. `budget spent`: that of the day."""

_SMOOTHED_OVER = 30.0
"""Seconds after which a rate is mostly the latest one."""
_RECENTLY = 3600.0
"""Seconds for which a run that is over still is one of the current ones."""


@dataclass(slots=True, kw_only=True)
class SiteState:
    """A site as the frontier sees it."""

    site: Site
    refusal: str | None = None
    """Why it was stopped, until it answers again."""
    stopped_until: float | None = None
    """Seconds since 1970."""
    used_today: int = 0
    budget: Budget = field(default_factory=Budget)
    seeds: int = 0
    """Titles that were pushed for its next crawl, which no worker has taken yet."""


@dataclass(slots=True, kw_only=True)
class RunReport:
    """A run at one moment. Times are in seconds since 1970, by Redis' clock."""

    site: Site
    run: str
    total: int
    """Requests queued so far."""
    done: int
    failed: int
    """Including dead letters."""
    dropped: int
    """Requests that were known already, or above the limit."""
    queued: int
    dead_letters: int
    workers: int
    started_at: float
    ended_at: float | None
    """When the latest request ended; None before the first."""
    now: float
    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    """`done` and `failed` by node."""
    refusal: str | None = None
    """What the site refused us with, until it answers again; None when it has not. The same for all runs, as is all below."""
    stopped_until: float | None = None
    """Until when nothing is handed out because of it."""
    used_today: int = 0
    """Requests sent in this UTC day."""
    budget: Budget = field(default_factory=Budget)
    """By the settings of the process that asks, which should be those of the workers."""

    @property
    def ended(self) -> int:
        """Requests that are over, in whatever way."""
        return self.done + self.failed

    @property
    def to_go(self) -> int:
        """Requests that are not."""
        return max(0, self.total - self.ended)

    @property
    def stopped(self) -> str | None:
        """Why the site may not be asked now; None when it may."""
        return self.refusal if (self.stopped_until or 0) > self.now else None

    @property
    def active_until(self) -> float:
        """When something was last done: now, while a worker is there."""
        return self.now if self.workers else self.ended_at or self.started_at

    @property
    def is_current(self) -> bool:
        """Whether it is not over, or has ended just now."""
        left = self.workers or self.to_go or self.queued or self.dead_letters
        return bool(left) or self.now - self.active_until <= _RECENTLY

    @property
    def state(self) -> State:
        """What holds it up, if anything does."""
        if not self.to_go:
            return "running" if self.workers else "finished"
        if self.refusal is not None:
            return "stopped" if self.stopped else "trying"
        if self.budget.per_day is not None and self.used_today >= self.budget.per_day:
            return "budget spent"
        return "running" if self.workers else "no worker"


@dataclass(slots=True)
class Rate:
    """How many requests end a second: the mean since the start at the first look, then smoothed over those that follow."""

    since: float
    per_second: float | None = None
    _before: int = 0

    def update(self, ended: int, now: float) -> None:
        """Look at how many have ended by `now`."""
        elapsed = now - self.since
        if elapsed <= 0:
            return
        latest = max(0, ended - self._before) / elapsed  # fewer than before when dead letters were queued again
        if self.per_second is None:
            self.per_second = latest
        else:
            self.per_second += (latest - self.per_second) * -math.expm1(-elapsed / _SMOOTHED_OVER)
        self.since, self._before = now, ended

    def seconds_left(self, to_go: int) -> float | None:
        """Return the seconds that so many take at this rate; None when nothing is being done."""
        return to_go / self.per_second if self.per_second else None


def line_of(report: RunReport, rate: Rate) -> str:
    """Return how far a run is, in a line: what `scrapy progress` and the log of each of its workers show."""
    return f"{name_of(report)} {report.done:,} of {report.total:,} requests done, {details_of(report, rate)}"


def name_of(report: RunReport) -> str:
    """Return whose figures these are, and how it goes."""
    return printable(f"{report.site} ({report.run}) {report.state}:")


def details_of(report: RunReport, rate: Rate) -> str:
    """Return the figures beside those of the requests done."""
    parts = [f"{report.failed:,} failed"]
    if report.dead_letters:
        parts.append(f"{report.dead_letters:,} dead letters")
    parts += [f"{report.to_go:,} to go", f"workers: {report.workers}", f"{per_minute(rate)} a minute"]
    left = rate.seconds_left(report.to_go)
    if report.state == "running" and report.to_go and left is not None:
        parts.append(f"{timedelta(seconds=round(left))} left")
    if report.budget.per_day is not None:
        parts.append(f"{report.used_today:,} of {report.budget.per_day:,} requests of the day")
    details = ", ".join(parts)
    if report.stopped is not None:
        details += f"; until {utc_text(report.stopped_until or 0)}: {printable(report.stopped)}"
    return details


def per_minute(rate: Rate) -> str:
    """Return a rate as a person reads it."""
    return f"{60 * (rate.per_second or 0):,.0f}"
