"""What a crawl's figures say is judged now and then, and at its end; each alarm is told once.

Where something is wrong, Spidermon runs the monitors of `monitors/suite.py`, whose action tells it. It is imported then: it
brings jsonschema and more along, which a crawl without troubles does without. Suites of a user's own are run by Spidermon's own
extension, which `moviecrawler.addon` lists where its settings name some.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_now
from moviecrawler.errors import MovieCrawlerError
from moviecrawler.extensions.coverage import CoverageWatch
from moviecrawler.frontier.options import node_of
from moviecrawler.frontier.shared import shared_scheduler
from moviecrawler.monitors.books import Alarm, BookError, open_book
from moviecrawler.monitors.checks import Checks, Figures, Verdict, place_verdicts
from moviecrawler.monitors.messages import Message, Messenger
from moviecrawler.monitors.options import AlarmOptions
from moviecrawler.monitors.threads import BookThread
from moviecrawler.signals import coverage_changed

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.monitors.messages import Status

logger = logging.getLogger(__name__)

_FRESHNESS_EVERY = 600.0
_CATALOGUE_WITHIN = 60.0
_LONGEST_END = 60.0
"""Seconds that the last messages of a crawl may take."""
_QUIET_LOOKS = 2.5
"""Looks for which nobody must have seen an alarm before it counts as over, so that one node's good pages don't end what another
one sees."""
_OVERDUE = """
SELECT count(*) FILTER (WHERE next_due <= now()) AS overdue, count(*) AS titles FROM title_sites
WHERE site = %s AND last_success IS NOT NULL AND state <> 'absent'
"""


class Alarms:
    """Judges a crawl every ALARM_EVERY seconds, and tells what has changed.

    What stands is kept in a `Book`, by which nodes that share a Redis send one message, and none for what was told before.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.options = AlarmOptions.from_settings(crawler.settings)
        self.site: str = crawler.spidercls.site  # type: ignore[attr-defined]
        self.verdicts: list[Verdict] = []
        self.open: list[Alarm] = []
        """Those of all sites, as far as this process knows."""
        self._checks = Checks(
            self.site,
            extraction_errors=self.options.extraction_errors,
            blocks=self.options.blocks,
            stalled=self.options.stalled,
            freshness=self.options.freshness,
        )
        self._messenger = Messenger(self.options)
        self._book = BookThread(open_book(crawler.settings))
        self._told: set[asyncio.Task[None]] = set()
        self._telling = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._dead_letters: int | None = None
        self._overdue: tuple[int, int] | None = None
        self._complained = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read SPIDERMON_ENABLED, and what `AlarmOptions` and `open_book` read."""
        if not crawler.settings.getbool("SPIDERMON_ENABLED") or not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        alarms = cls(crawler)
        crawler.signals.connect(alarms.spider_opened, signals.spider_opened)
        crawler.signals.connect(alarms.spider_closed, signals.spider_closed)
        crawler.signals.connect(alarms.look, coverage_changed)
        return alarms

    # --- Looking ------------------------------------------------------------------------------------------------------

    def spider_opened(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._look_now_and_then()), loop.create_task(self._ask_now_and_then())]

    async def spider_closed(self) -> None:
        """Look once more, and finish telling."""
        for task in self._tasks:
            task.cancel()
        if self._overdue is None:  # the crawl was a short one
            await self._ask_catalogue()
        self.look()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_END):
                await asyncio.gather(*self._told, return_exceptions=True)
        await self._book.close()

    def look(self) -> None:
        """Judge the crawl, and tell what has changed since the last look."""
        self._judge()
        if any(verdict.stands for verdict in self.verdicts):
            self._run_monitors()
        else:
            self.begin_to_tell()  # what is over

    def _run_monitors(self) -> None:
        from spidermon import settings  # noqa: PLC0415 - takes longer to import than a small crawl takes
        from spidermon.runners import MonitorRunner  # noqa: PLC0415 - as above

        from moviecrawler.monitors.suite import AlarmSuite  # noqa: PLC0415 - as above

        # Its runner for spiders logs thirty lines each time; an alarm is told by the suite's action.
        result = MonitorRunner().run(
            AlarmSuite(), alarms=self, crawler=self.crawler, stats=self.crawler.stats.get_stats()
        )
        for item in (*result.monitors_failed_results, *result.monitors_finished_action_results):
            if item.status == settings.MONITOR.STATUS.ERROR:
                logger.error("%s failed: %s", item.item.name, item.error, extra={"spider": self.crawler.spider})

    def _judge(self) -> None:
        figures = Figures(
            now=time.monotonic(),
            stats=self.crawler.stats.get_stats(),
            is_due=self._is_due(),
            dead_letters=self._dead_letters,
            overdue=self._overdue,
        )
        self.verdicts = self._checks.look(figures)
        watch = self.crawler.get_extension(CoverageWatch)
        if watch is not None:
            self.verdicts += place_verdicts(self.site, watch.places)

    def _is_due(self) -> bool:
        """Return whether there is something to ask for that may be asked for now."""
        scheduler = shared_scheduler(self.crawler)
        if scheduler is not None:
            return not scheduler.shut and (scheduler.waiting > 0 or bool(scheduler.tracker.leases))
        try:
            is_idle = self.crawler.engine is None or self.crawler.engine.spider_is_idle()
        except RuntimeError:  # it has closed
            return False
        return not is_idle and not self.crawler.stats.get_value(f"blocks/{self.site}/stopped")

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self.options.every)
            try:
                self.look()
            except Exception:
                logger.exception("The crawl could not be judged", extra={"spider": self.crawler.spider})

    async def _ask_now_and_then(self) -> None:
        """Ask Redis for dead letters and the catalogue for what is overdue, where there are any."""
        asked_at = float("-inf")
        while True:
            scheduler = shared_scheduler(self.crawler)
            if scheduler is not None:
                import redis.exceptions  # noqa: PLC0415 - only a shared crawl needs its client

                with suppress(redis.exceptions.RedisError):
                    self._dead_letters = await scheduler.server.hlen(scheduler.keys.dead_letters)
            if time.monotonic() - asked_at >= _FRESHNESS_EVERY:
                asked_at = time.monotonic()
                await self._ask_catalogue()
            await asyncio.sleep(self.options.every)

    async def _ask_catalogue(self) -> None:
        if self.crawler.settings.get("DATABASE_URL") and self.options.freshness:
            with suppress(MovieCrawlerError, TimeoutError):
                async with asyncio.timeout(_CATALOGUE_WITHIN):
                    self._overdue = await asyncio.to_thread(self._count_overdue)

    def _count_overdue(self) -> tuple[int, int]:
        from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415 - imports Postgres' client

        catalogue = open_catalogue(self.crawler.settings)
        try:
            with catalogue.transaction() as cursor:
                cursor.execute("SET LOCAL statement_timeout = '60s'")
                cursor.execute(_OVERDUE, (self.site,))
                overdue, titles = cursor.fetchone()
                return overdue, titles
        finally:
            catalogue.close()

    # --- Telling ------------------------------------------------------------------------------------------------------

    def begin_to_tell(self) -> None:
        """Bring the book up to date with what was found, and tell what has changed, in a task."""
        if len(self._told) < 2:  # noqa: PLR2004 - one at work, and one that sees all that has come since
            self._begin(self._tell())

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._told.add(task)
        task.add_done_callback(self._told.discard)

    async def _tell(self) -> None:
        async with self._telling:
            verdicts, now = self.verdicts, utc_now().timestamp()
            try:
                known = {alarm.name for alarm in await self._book.call(lambda book: book.open_alarms())}
                for verdict in verdicts:
                    if verdict.stands:
                        await self._fire(verdict, now)
                    elif verdict.name in known:
                        await self._recover(verdict, now)
                self.open = await self._book.call(lambda book: book.open_alarms())
            except BookError as error:
                if not self._complained:
                    logger.warning("Alarms can't be told for now: %s", error)
                self._complained = True
            else:
                self._complained = False

    async def _fire(self, verdict: Verdict, now: float) -> None:
        alarm = Alarm(
            name=verdict.name,
            kind=verdict.kind,
            site=self.site,
            text=verdict.text,
            since=now,
            seen_at=now,
            told_at=now,
        )
        said = await self._book.call(lambda book: book.fire(alarm, self.options.reminder))
        if said is None:
            return
        self.crawler.stats.inc_value(f"alarms/{said}")
        if not await self._deliver(said, alarm):
            await self._book.call(lambda book: book.untell(alarm.name))

    async def _recover(self, verdict: Verdict, now: float) -> None:
        quiet = _QUIET_LOOKS * self.options.every
        ended = await self._book.call(lambda book: book.recover(verdict.name, now, quiet))
        if ended is not None:
            self.crawler.stats.inc_value("alarms/recovered")
            await self._deliver("recovered", ended)

    async def _deliver(self, status: Status, alarm: Alarm) -> bool:
        node = node_of(self.crawler.settings)
        return await self._messenger.deliver(Message(status=status, alarm=alarm, at=utc_now(), node=node))
