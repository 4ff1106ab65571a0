"""What the pages are made of, and how each is asked: every call waits for an answer, so call it in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy.settings import Settings
from twisted.python.threadpool import ThreadPool

from moviecrawler.cluster.threads import reactor
from moviecrawler.dashboard.counts import Counts, read_counts
from moviecrawler.dashboard.keys import Keys
from moviecrawler.database.short_transactions import AwayError, ShortTransactions
from moviecrawler.errors import AlarmStoreError, ConfigurationError
from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.failed_pages import read_sample
from moviecrawler.extensions.store_stats import ENDED_KEPT, read_figures
from moviecrawler.frontier.keys import Keys as FrontierKeys
from moviecrawler.frontier.report import budgets, read_current_runs, read_earlier_runs, read_sites
from moviecrawler.frontier.runs import Rate
from moviecrawler.frontier.seeds import count_seeds
from moviecrawler.monitors.alarm_store import FILE, AlarmStore, open_alarm_store
from moviecrawler.redis_client import connect, redis_parameters
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from moviecrawler.cluster.node import Node
    from moviecrawler.extensions.failed_pages import Sample
    from moviecrawler.extensions.store_stats import ProcessFigures
    from moviecrawler.frontier.runs import RunReport, SiteState
    from moviecrawler.frontier.site_budgets import Budget
    from moviecrawler.items import Site
    from moviecrawler.monitors.alarm_store import Alarm

_THREADS = 8
"""Pages that are made at once; others wait. Scrapyd's own services have threads of their own."""
TIMEOUTS = {"socket_connect_timeout": 1.0, "socket_timeout": 2.0}
"""Seconds."""
_DAY = 86_400


@dataclass(slots=True, kw_only=True)
class Frontier:
    """The shared crawls at one moment."""

    now: float
    """Seconds since 1970, by Redis' clock."""
    sites: dict[Site, SiteState]
    runs: list[RunReport]
    """Those that are not over, or only just."""
    left_out: int
    """How many more there may be."""
    rates: dict[tuple[str, str], Rate]
    """By site and run."""


class Sources:
    """Everything that pages ask, of one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.state = node.state
        self.eggs = node.eggs
        self.options = node.options
        self.node_name = node.name
        self.reactor = reactor
        self.threads = ThreadPool(0, _THREADS, "dashboard")
        self.keys = Keys(node.options.redis_prefix)
        self.settings = Settings()
        self.settings.setmodule("moviecrawler.settings")
        # What spiders are given, and not what this process may have beside.
        self.settings.set("REDIS_URL", os.environ.get("REDIS_URL", ""), "cmdline")
        url = self.settings.get("DATABASE_URL")
        self._database = ShortTransactions(url) if url else None
        self._alarm_store: AlarmStore | None = None
        self._rates: dict[tuple[str, str], Rate] = {}
        self._rates_lock = threading.Lock()

    # --- The catalogue's database -------------------------------------------------------------------------------------

    @property
    def has_database(self) -> bool:
        """Whether there is one."""
        return self._database is not None

    @property
    def database(self) -> ShortTransactions:
        """The one that DATABASE_URL names. Raises AwayError when none is named."""
        if self._database is None:
            raise AwayError(
                "DATABASE_URL is not set in the node's environment, so there are no titles and no catalogue to show"
            )
        return self._database

    def counts(self) -> Counts | None:
        """Return the catalogue's figures; None when nothing was counted yet. Raises redis.RedisError."""
        return read_counts(self.state.client, self.keys) if self.has_database else None

    # --- The frontier -------------------------------------------------------------------------------------------------

    @property
    def has_frontier(self) -> bool:
        """Whether spiders share one."""
        return bool(self.settings.get("REDIS_URL"))

    def ask_frontier(self, ask: Callable[[Any], Awaitable[Any]]) -> Any:
        """Return what a coroutine gets of a client of the frontier's Redis. Raises redis.RedisError and AwayError."""
        url = self.settings.get("REDIS_URL")
        if not url:
            raise AwayError("REDIS_URL is not set in the node's environment, so crawls share no frontier to show")

        async def asked() -> Any:
            async with aclosing(connect(url, **{**redis_parameters(self.settings), **TIMEOUTS})) as client:
                return await ask(client)

        return asyncio.run(asked())

    def frontier(self) -> Frontier:
        """Return how the shared crawls are. Raises redis.RedisError and AwayError."""
        limits, start_urls = self._budgets(), self.start_urls()

        async def read(client: Any) -> Frontier:
            runs, left_out = await read_current_runs(client, limits)
            now, sites = await read_sites(client, limits)
            for site, key in start_urls.items():
                sites[site].seeds = await count_seeds(client, key)
            return Frontier(now=now, sites=sites, runs=runs, left_out=left_out, rates={})

        found: Frontier = self.ask_frontier(read)
        with self._rates_lock:
            known = {(run.site, run.run): run for run in found.runs}
            self._rates = {key: rate for key, rate in self._rates.items() if key in known}
            for key, run in known.items():
                rate = self._rates.setdefault(key, Rate(run.started_at))
                rate.update(run.ended, run.active_until)
                found.rates[key] = Rate(rate.since, rate.per_second)
        return found

    def earlier_runs(self, before: float | None, size: int) -> tuple[list[RunReport], float | None]:
        """Return runs that are over, and where the next ones begin. Raises redis.RedisError and AwayError."""
        found: tuple[list[RunReport], float | None] = self.ask_frontier(
            lambda client: read_earlier_runs(client, before, size, self._budgets())
        )
        return found

    def start_urls(self) -> dict[Site, str]:
        """Return the list of each site to which titles are pushed. Raises AwayError."""
        self._budgets()  # complains of wrong settings
        form = self.settings.get("REDIS_START_URLS_KEY")
        return {site: (FrontierKeys(site, "", form) if form else FrontierKeys(site, "")).start_urls for site in HOMES}

    def store_figures(self) -> list[ProcessFigures]:
        """Return what processes tell of their stores: those that run, and some that have ended.

        Raises redis.RedisError and AwayError.
        """

        async def read(client: Any) -> list[bytes]:
            pipe = client.pipeline(transaction=False)
            pipe.hvals(CrawlKeys.STORES)
            pipe.lrange(CrawlKeys.ENDED, 0, ENDED_KEPT - 1)
            running, ended = await pipe.execute()
            return [*running, *ended]

        return [figures for text in self.ask_frontier(read) if (figures := read_figures(text)) is not None]

    def unreadable(self, days: Sequence[str]) -> Counter[str]:
        """Return how many pages could not be read on days (ISO 8601, UTC), by `<site>/<field>`.

        Raises redis.RedisError and AwayError.
        """

        async def read(client: Any) -> list[dict[bytes, bytes]]:
            pipe = client.pipeline(transaction=False)
            for day in days:
                pipe.hgetall(CrawlKeys.unreadable(day))
            found: list[dict[bytes, bytes]] = await pipe.execute()
            return found

        total: Counter[str] = Counter()
        for counted in self.ask_frontier(read):
            total.update({name.decode(errors="replace"): int(number) for name, number in counted.items()})
        return total

    def samples(self) -> set[str]:
        """Return of which fields there are samples, as `<site>/<field>`. Raises redis.RedisError and AwayError."""
        return {
            name.decode(errors="replace") for name in self.ask_frontier(lambda client: client.hkeys(CrawlKeys.SAMPLES))
        }

    def sample(self, name: str) -> tuple[Sample, bytes] | None:
        """Return one of them and its page. Raises redis.RedisError and AwayError."""
        text = self.ask_frontier(lambda client: client.hget(CrawlKeys.SAMPLES, name))
        try:
            return None if text is None else read_sample(text)
        except (msgspec.DecodeError, OSError):
            return None

    def _budgets(self) -> dict[Site, Budget]:
        try:
            return budgets(self.settings)
        except ConfigurationError as error:
            raise AwayError(f"the node's settings are wrong: {error}") from None

    # --- Alarms -------------------------------------------------------------------------------------------------------

    @property
    def has_alarm_store(self) -> bool:
        """Whether there is one: in the Redis that crawls share, or in a file that a crawl on this machine has made."""
        return self.has_frontier or (Path(self.settings["DATA_DIR"]) / FILE).exists()

    def ask_alarms(self, ask: Callable[[AlarmStore], Any]) -> Any:
        """Return what a function gets of the store of alarms. Raises AwayError."""
        try:
            if self._alarm_store is None:
                self._alarm_store = open_alarm_store(self.settings)
            return ask(self._alarm_store)
        except (AlarmStoreError, ConfigurationError) as error:
            raise AwayError(str(error)) from None

    def alarms(self) -> list[Alarm]:
        """Return the alarms that stand; none where there is no store of them. Raises AwayError."""
        if not self.has_alarm_store:
            return []
        found: list[Alarm] = self.ask_alarms(lambda store: store.open_alarms())
        return found
