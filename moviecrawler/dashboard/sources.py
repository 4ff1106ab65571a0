"""Reads the figures of the pages from the frontier and Postgres.

Every call blocks, so call it in a thread.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy.settings import Settings

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import AwayError, ConfigurationError, FrontierError
from moviecrawler.catalogue.figures import SiteFigures, figures
from moviecrawler.dashboard.sql import read_sql
from moviecrawler.database.short_transactions import ShortTransactions
from moviecrawler.frontier.runs import budgets_of, frontier

if TYPE_CHECKING:
    from moviecrawler.cluster.node import Node
    from moviecrawler.frontier.contract import FrontierReport
    from moviecrawler.sites import Site

_TIMEOUTS = {"socket_connect_timeout": 1.0, "socket_timeout": 2.0}
"""Seconds. They are short, so that a request is answered soon also when Redis can't be reached."""
_MIN_PAUSE_SECONDS = 5.0
_PAUSE_FACTOR = 20
"""The next count of the catalogue waits this many times as long as the last one took: 1 s with
3,000,000 rows."""
_MAX_COUNT_SECONDS = 20.0
HOURS = 24
"""Hours for which titles are counted."""
_READ_BY_HOUR = read_sql("read_by_hour.sql")


@dataclass(slots=True, kw_only=True)
class Counts:
    """The catalogue's figures at one moment."""

    at: float
    """Seconds since 1970."""
    sites: dict[Site, SiteFigures]
    hours: dict[Site, list[int]]
    """Titles read of each site in each of the last hours."""


class Sources:
    """What the pages of one node read."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.settings = Settings()
        self.settings.setmodule("moviecrawler.settings")
        # Spiders take both from the environment, whatever a settings file says.
        redis_url = os.environ.get("REDIS_URL", "")
        database_url = os.environ.get("DATABASE_URL")
        self.settings.set("REDIS_URL", redis_url, "cmdline")
        given = self.settings.getdict("REDIS_PARAMS")
        self.settings.set("REDIS_PARAMS", {**given, **_TIMEOUTS}, "cmdline")
        self.has_redis = bool(redis_url)
        """Whether the runs are those of all machines, and not of this one alone."""
        self.has_database = bool(database_url)
        self._database = ShortTransactions(database_url) if database_url else None
        self._counting = threading.Lock()
        self._counts: Counts | AwayError | None = None
        """The last count, or why there is none."""
        self._count_again_at = 0.0

    @property
    def database(self) -> ShortTransactions:
        """The database of the catalogue. Raises ConfigurationError when DATABASE_URL is not set."""
        if self._database is None:
            raise ConfigurationError(
                "DATABASE_URL is not set in the node's environment, "
                "so there are no titles and no catalogue"
            )
        return self._database

    def counts(self) -> Counts | None:
        """Return the catalogue's figures of some seconds ago at most; None without a database.

        Raises AwayError.
        """
        if not self.has_database:
            return None
        with self._counting:
            began = time.monotonic()
            if began >= self._count_again_at:
                try:
                    self._counts = self._count()
                except AwayError as error:
                    self._counts = error
                took = time.monotonic() - began
                self._count_again_at = time.monotonic() + max(
                    _MIN_PAUSE_SECONDS, _PAUSE_FACTOR * took
                )
            if isinstance(self._counts, AwayError):
                raise AwayError(str(self._counts))
            return self._counts

    def _count(self) -> Counts:
        now = utc_now()
        sites = {site.site: site for site in figures(self.database, now, _MAX_COUNT_SECONDS)}
        hours = {site: [0] * HOURS for site in sites}
        with self.database.transaction() as cursor:
            cursor.execute(_READ_BY_HOUR, {"now": now, "hours": HOURS})
            for site, ago, count in cursor.fetchall():
                hours[site][HOURS - 1 - ago] = count
        return Counts(at=now.timestamp(), sites=sites, hours=hours)

    def frontier(self) -> FrontierReport:
        """Return the state of the sites and the runs: first those with workers, then the latest.

        Raises AwayError and ConfigurationError.
        """
        try:
            report = asyncio.run(self._read_frontier())
        except FrontierError as error:
            raise AwayError(str(error)) from error
        report.runs.sort(
            key=lambda run: (
                not run.workers,
                not run.account.open,
                -(run.ended_at or run.started_at),
            )
        )
        return report

    async def _read_frontier(self) -> FrontierReport:
        async with frontier(self.settings) as backend:
            return await backend.read(budgets_of(self.settings))
