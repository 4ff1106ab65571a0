"""Reads from the stores what the pages show: all of a page at once, with one deadline.

A result is a value, or unknown with its cause.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, get_args

import redis
from scrapy.settings import Settings

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import ConfigurationError, FrontierError, UnavailableError
from moviecrawler.catalogue.figures import SiteFigures, figures
from moviecrawler.dashboard.sql import read_sql
from moviecrawler.database.short_transactions import ShortTransactions
from moviecrawler.frontier.contract import RunName
from moviecrawler.frontier.redis_client import state_error
from moviecrawler.frontier.runs import budgets_of, describe_crawl, run_name, with_queue
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import Snapshot
    from moviecrawler.frontier.contract import Backend, DeadLetter, FrontierReport, RunReport
    from moviecrawler.sites import Site

T = TypeVar("T")
Store = Literal["Redis", "The queue", "The database"]
"""`The queue` is the file of the runs on this machine, without REDIS_URL."""
_PAGE_SECONDS = 2.5
"""Seconds after which a value that has not come is unknown."""
_THREADS = 8
"""Reads from a store at a time; others wait."""
_TIMEOUTS = {"socket_connect_timeout": 1.0, "socket_timeout": 2.0}
"""Seconds. They are short, so that a page comes soon also when Redis can't be reached."""
_MIN_PAUSE_SECONDS = 5.0
_PAUSE_FACTOR = 20
"""The next count of the catalogue waits this many times as long as the last one took: 1 s with
3,000,000 rows."""
_MAX_COUNT_SECONDS = 20.0
_HOURS = 24
"""Hours for which titles are counted."""
_LETTERS_OF_RUN = 100
_RUNS_WITH_LETTERS = 20
"""Dead letters of a run, and runs of which some are read."""
_READ_BY_HOUR = read_sql("read_by_hour.sql")


class Cause(NamedTuple):
    """Why a store is unavailable."""

    sentence: str
    since: float
    """Unix time at which a page first saw it."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """The catalogue's figures at one moment."""

    at: float
    """Seconds since 1970."""
    titles: int
    sites: dict[Site, SiteFigures]
    hours: dict[Site, list[int]]
    """Titles read of each site in each of the last hours."""


@dataclass(slots=True, kw_only=True)
class Runs:
    """The sites and runs at one moment."""

    report: FrontierReport
    """Its runs: first those with workers, then those with open requests, then the latest."""
    letters: dict[RunName, list[DeadLetter]] = field(default_factory=dict)
    """Dead letters, the latest first; not all of them."""

    def find(self, name: RunName | None) -> RunReport | None:
        """Return a run; None when there is none of that name."""
        return next((run for run in self.report.runs if (run.site, run.run) == name), None)


class PageReads:
    """What one page reads. A function that begins to read returns what waits for the value."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._until = time.monotonic() + _PAGE_SECONDS
        self.causes: dict[Store, Cause] = {}
        """Why stores are unavailable."""

    def start(
        self, store: Store, read: Callable[..., T], *arguments: object
    ) -> Callable[[], T | None]:
        """Begin to read in a thread; the value is None when there is none by the deadline."""
        return partial(self._wait, store, self._sources.submit(store, read, *arguments))

    def start_cluster(self) -> Callable[[], Snapshot | None]:
        """Begin to read the jobs, versions and nodes."""
        return self.start("Redis", self._sources.node.state.snapshot)

    def start_runs(self) -> Callable[[], Runs | None]:
        """Begin to read the runs and their dead letters."""
        return self.start(self._sources.queue, self._sources.runs)

    def start_counts(self) -> Callable[[], Counts | None]:
        """Begin to read the catalogue's figures; there are none without a database."""
        if not self._sources.has_database:
            return lambda: None
        return self.start("The database", self._sources.counts)

    def require(self, value: T | None) -> T:
        """Return a value that the page needs. Raises UnavailableError when it is unknown."""
        if value is None:
            raise UnavailableError(next(iter(self.causes.values())).sentence)
        return value

    def _wait(self, store: Store, reading: Future[T]) -> T | None:
        try:
            value = reading.result(max(0.0, self._until - time.monotonic()))
        except (TimeoutError, CancelledError):
            reading.cancel()
            sentence = f"{store} has not replied within {_PAGE_SECONDS:g} s"
        except redis.exceptions.RedisError as error:
            sentence = state_error(error)
        except (UnavailableError, ConfigurationError) as error:
            sentence = str(error)
        else:
            self._sources.unavailable_since.pop(store, None)
            return value
        since = self._sources.unavailable_since.setdefault(store, time.time())
        self.causes.setdefault(store, Cause(sentence[:1].upper() + sentence[1:], since))
        return None


class Sources:
    """What the pages of one node read. Its reads block."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.settings = Settings()
        self.settings.setmodule("moviecrawler.settings")
        # Spiders take both from the environment, whatever a settings file has.
        redis_url = os.environ.get("REDIS_URL", "")
        database_url = os.environ.get("DATABASE_URL")
        self.settings.set("REDIS_URL", redis_url, "cmdline")
        params = {**self.settings.getdict("REDIS_PARAMS"), **_TIMEOUTS}
        self.settings.set("REDIS_PARAMS", params, "cmdline")
        self.queue: Store = "Redis" if redis_url else "The queue"
        """What keeps the runs."""
        self.has_database = bool(database_url)
        self.unavailable_since: dict[Store, float] = {}
        self._pools: dict[Store, ThreadPoolExecutor] = {
            store: ThreadPoolExecutor(_THREADS, "dashboard") for store in get_args(Store)
        }
        self._database = ShortTransactions(database_url) if database_url else None
        self._counting = threading.Lock()
        self._counts: Counts | UnavailableError | None = None
        """The last count, or why there is none."""
        self._count_again_at = 0.0
        self.run_named = lru_cache(1024)(partial(_run_named, self.settings))

    def submit(self, store: Store, read: Callable[..., T], *arguments: object) -> Future[T]:
        """Have something read in a thread."""
        return self._pools[store].submit(read, *arguments)

    def close(self) -> None:
        """Interrupt what is being read, and begin nothing more."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        if self._database is not None:
            self._database.interrupt()

    @property
    def database(self) -> ShortTransactions:
        """The database of the catalogue. Raises ConfigurationError when DATABASE_URL is not set."""
        if self._database is None:
            raise ConfigurationError(
                "DATABASE_URL is not set in the node's environment, "
                "so there are no titles and no catalogue"
            )
        return self._database

    # --- The catalogue ----------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Return the catalogue's figures, as they were counted last. Raises UnavailableError.

        When these are old, others are counted for the next page.
        """
        last = self._counts
        if isinstance(last, Counts):
            if time.monotonic() >= self._count_again_at:
                self.submit("The database", self._count_again)
            return last
        self._count_again()
        if isinstance(self._counts, Counts):
            return self._counts
        raise UnavailableError(str(self._counts))

    def _count_again(self) -> None:
        with self._counting:
            began = time.monotonic()
            if began < self._count_again_at:
                return
            try:
                self._counts = self._count()
            except UnavailableError as error:
                self._counts = error
            took = time.monotonic() - began
            pause = max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * took)
            self._count_again_at = time.monotonic() + pause

    def _count(self) -> Counts:
        now = utc_now()
        sites = {site.site: site for site in figures(self.database, now, _MAX_COUNT_SECONDS)}
        with self.database.transaction() as cursor:
            cursor.execute(_READ_BY_HOUR, {"now": now, "hours": _HOURS, "sites": list(sites)})
            hours = dict(cursor.fetchall())
            cursor.execute("SELECT count(*) FROM titles")
            [[titles]] = cursor.fetchall()
        return Counts(at=now.timestamp(), titles=titles, sites=sites, hours=hours)

    # --- The runs ---------------------------------------------------------------------------------

    def frontier(self) -> FrontierReport:
        """Return the state of sites and runs. Raises UnavailableError and ConfigurationError."""
        return self.with_queue(self._read_report)

    def runs(self) -> Runs:
        """Return the sites, the runs and their dead letters.

        Raises UnavailableError and ConfigurationError.
        """
        return self.with_queue(self._read_runs)

    def with_queue(self, use: Callable[[Backend], Coroutine[object, object, T]]) -> T:
        """Return what a coroutine of the queue returns.

        Raises UnavailableError and ConfigurationError.
        """
        try:
            return with_queue(self.settings, use)
        except FrontierError as error:
            raise UnavailableError(str(error)) from error

    async def _read_report(self, backend: Backend) -> FrontierReport:
        report = await backend.read(budgets_of(self.settings))
        report.runs.sort(
            key=lambda run: (
                not run.workers,
                not run.account.open,
                -(run.ended_at or run.started_at),
            )
        )
        return report

    async def _read_runs(self, backend: Backend) -> Runs:
        report = await self._read_report(backend)
        runs = Runs(report=report)
        for run in [run for run in report.runs if run.dead_letters][:_RUNS_WITH_LETTERS]:
            letters = [letter async for letter in backend.dead_letters(run.site, run.run)]
            letters.sort(key=lambda letter: -letter.at)
            runs.letters[RunName(run.site, run.run)] = letters[:_LETTERS_OF_RUN]
        return runs

    def run_of(self, job: Job) -> RunName | None:
        """Return the name of a job's run, as its spider makes it; None when it has none."""
        arguments = tuple(sorted(job.arguments.items()))
        return self.run_named(job.spider, arguments, job.settings.get("FRONTIER_RUN"))


def _run_named(
    settings: Settings, spider: str, arguments: Sequence[tuple[str, str]], run: str | None
) -> RunName | None:
    if spider not in SITES:
        return None
    if run:
        return RunName(spider, run)
    try:
        described = describe_crawl(spider, settings, dict(arguments))
    except ConfigurationError:  # such as of a wrong id: the spider ends at once
        return None
    return run_name(spider, settings, described)
