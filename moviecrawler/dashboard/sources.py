"""Reads the figures of the pages from Redis and Postgres. Every call blocks, so call it in a thread."""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy.settings import Settings

from moviecrawler.catalogue.figures import SiteFigures, figures
from moviecrawler.catalogue.lanes import FRESH_FOR
from moviecrawler.clock import utc_now
from moviecrawler.cluster.threads import Threads
from moviecrawler.frontier.keys import SiteKeys
from moviecrawler.frontier.report import Rate, budgets, count_seeds, read_runs, read_sites
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from moviecrawler.cluster.node import Node
    from moviecrawler.database.short_transactions import ShortTransactions
    from moviecrawler.frontier.report import RunReport, SiteState
    from moviecrawler.items import Site

_THREADS = 8
"""Pages that are rendered at once; others wait. Scrapyd's own services use other threads."""
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


@dataclass(slots=True, kw_only=True)
class Frontier:
    """The shared crawls at one moment."""

    now: float
    """Seconds since 1970, by Redis' clock."""
    sites: dict[Site, SiteState]
    runs: list[RunReport]
    """Runs that are not over, or ended lately."""
    earlier: list[RunReport]
    """The other runs that workers have joined last, the latest first."""
    rates: dict[tuple[str, str], Rate]
    """By site and run."""


COUNTS, COUNTING = "{dashboard}:counts", "{dashboard}:counting"
"""STRINGs: JSON of the `Counts` of the catalogue; the node that has counted last. Both expire."""


class Sources:
    """What the pages of one node read."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.threads = Threads("dashboard", _THREADS)
        self.settings = Settings()
        self.settings.setmodule("moviecrawler.settings")
        # Spiders get it from the environment, not from another settings file.
        self.settings.set("REDIS_URL", os.environ.get("REDIS_URL", ""), "cmdline")
        self._rates: dict[tuple[str, str], Rate] = {}
        self._rates_lock = threading.Lock()

    # --- The catalogue: counted in the background, as 3,000,000 rows take a second, too long for a page --------------------

    def count_if_due(self) -> bool:
        """Count the catalogue and store the figures, unless a node has done so lately; return whether it was done.

        Raises AwayError and redis.RedisError.
        """
        client, name = self.node.state.client, self.node.name
        if not client.set(COUNTING, name, nx=True, px=round(2 * _MAX_COUNT_SECONDS * 1000)):
            return False
        try:
            counts = count(self.node.database)
        except BaseException:
            client.set(COUNTING, name, px=round(_MIN_PAUSE_SECONDS * 1000))
            raise
        pause = min(_MAX_PAUSE_SECONDS, max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * counts.took))
        pipe = client.pipeline()
        pipe.set(COUNTS, msgspec.json.encode(counts), ex=_KEPT_SECONDS)
        pipe.set(COUNTING, name, px=math.ceil(pause * 1000))
        pipe.execute()
        return True

    def counts(self) -> Counts | None:
        """Return the last count; None when nothing was counted yet. Raises redis.RedisError."""
        state = self.node.state
        text = state.client.get(COUNTS) if self.node.has_database else None
        try:
            return None if text is None else msgspec.json.decode(text, type=Counts)
        except (msgspec.DecodeError, RecursionError):  # another version's
            return None

    # --- The frontier. Each method raises redis.RedisError and ConfigurationError -------------------------------------

    def frontier(self) -> Frontier | None:
        """Return how the shared crawls are; None when spiders share no frontier."""
        if not self.node.has_frontier:
            return None
        limits, start_urls = budgets(self.settings), self.start_urls()

        async def read(client: Any) -> Frontier:
            runs = await read_runs(client, budget=limits)
            now, sites = await read_sites(client, limits)
            for site, key in start_urls.items():
                sites[site].seeds = await count_seeds(client, key)
            current = [run for run in runs if run.is_current]
            earlier = sorted((run for run in runs if not run.is_current), key=lambda run: -run.started_at)
            return Frontier(now=now, sites=sites, runs=current, earlier=earlier, rates={})

        found = self.node.ask_frontier(read)
        with self._rates_lock:
            known = {(run.site, run.run): run for run in found.runs}
            self._rates = {key: rate for key, rate in self._rates.items() if key in known}
            for key, run in known.items():
                rate = self._rates.setdefault(key, Rate(run.started_at))
                rate.update(run)
                found.rates[key] = Rate(rate.since, rate.per_second)
        return found

    def start_urls(self) -> dict[Site, str]:
        """Return each site's key of the list to which titles are pushed."""
        form = self.settings.get("REDIS_START_URLS_KEY")
        return {site: (SiteKeys(site, form) if form else SiteKeys(site)).start_urls for site in SITES}
