"""Judges a crawl now and then, and at its end, and notifies people of each alarm once.

Spidermon is imported when there is something to say: it brings jsonschema and more along, which a crawl without troubles does
without. Suites of a user's own are run by Spidermon's own extension, which `moviecrawler.addon` lists where its settings name some.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_now
from moviecrawler.errors import AlarmStoreError, MovieCrawlerError
from moviecrawler.extensions.coverage import CoverageWatch
from moviecrawler.frontier.shared import shared_scheduler
from moviecrawler.monitors.alarm_store import Alarm, open_alarm_store
from moviecrawler.monitors.checks import Checks, Figures, Verdict, place_verdicts
from moviecrawler.monitors.notifications import Notification
from moviecrawler.monitors.receivers import read_receivers
from moviecrawler.options import AlarmOptions, node_of
from moviecrawler.outages import Outages
from moviecrawler.signals import coverage_changed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_CATALOGUE_SECONDS = 600.0
"""Between two questions to the catalogue."""
_CATALOGUE_TIMEOUT_SECONDS = 60
_CLOSE_TIMEOUT_SECONDS = 60.0
"""That the last messages of a crawl may take."""
_QUIET_LOOKS = 2.5
"""Looks for which no node must have seen an alarm before it counts as over."""
_LOG_LEVELS = {"opened": logging.ERROR, "reminder": logging.ERROR, "recovered": logging.INFO}
_OVERDUE = """
SELECT count(*) FILTER (WHERE next_due <= now()) AS overdue, count(*) AS titles FROM title_sites
WHERE site = %s AND last_success IS NOT NULL AND state <> 'absent'
"""


class Alarms:
    """Judges a crawl every ALARM_EVERY seconds, and says what has changed.

    What stands is kept in an `AlarmStore`, by which nodes that share a Redis send one message, and none that was sent before.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.options = AlarmOptions.read(crawler.settings)
        self._receivers = read_receivers(crawler.settings)
        self.site: str = crawler.spidercls.site  # type: ignore[attr-defined]
        self.verdicts: list[Verdict] = []
        self.open: list[Alarm] = []
        """Those of all sites, as far as this process knows."""
        self._checks = Checks(self.site, self.options)
        self._store = open_alarm_store(crawler.settings)
        self._publishing: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._dead_letters: int | None = None
        self._overdue: tuple[int, int] | None = None
        self._outages = Outages()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read SPIDERMON_ENABLED, and what `AlarmOptions`, `read_receivers` and `open_alarm_store` read."""
        if not crawler.settings.getbool("SPIDERMON_ENABLED") or not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        alarms = cls(crawler)
        crawler.signals.connect(alarms.spider_opened, signals.spider_opened)
        crawler.signals.connect(alarms.spider_closed, signals.spider_closed)
        crawler.signals.connect(alarms.look, coverage_changed)
        return alarms

    # --- Judging ------------------------------------------------------------------------------------------------------

    def spider_opened(self) -> None:
        """Begin to look."""
        self._looking = asyncio.get_running_loop().create_task(self._look_periodically())

    async def spider_closed(self) -> None:
        """Look once more, and finish the messages."""
        if self._looking is not None:
            self._looking.cancel()
        if self._overdue is None:  # the crawl was a short one
            await self._ask_catalogue()
        self.look()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT_SECONDS):
                await asyncio.gather(*self._publishing, return_exceptions=True)
        self._store.close()

    def look(self) -> None:
        """Judge the crawl, and publish what has changed since the last look."""
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
        if len(self._publishing) < 2:  # noqa: PLR2004 - one at work, and one that sees all that has come since
            task = asyncio.get_running_loop().create_task(self._publish())
            self._publishing.add(task)
            task.add_done_callback(self._publishing.discard)

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

    async def _look_periodically(self) -> None:
        await self._count_dead_letters()  # those of before are no news
        asked_at = float("-inf")
        while True:
            try:
                if time.monotonic() - asked_at >= _CATALOGUE_SECONDS:
                    asked_at = time.monotonic()
                    await self._ask_catalogue()
                await asyncio.sleep(self.options.every)
                await self._count_dead_letters()
                self.look()
            except Exception:
                logger.exception("The crawl could not be judged", extra={"spider": self.crawler.spider})

    async def _count_dead_letters(self) -> None:
        scheduler = shared_scheduler(self.crawler)
        if scheduler is not None:
            import redis.exceptions  # noqa: PLC0415 - only a shared crawl needs its client

            with suppress(redis.exceptions.RedisError):
                self._dead_letters = await scheduler.server.hlen(scheduler.keys.dead_letters)

    async def _ask_catalogue(self) -> None:
        if self.crawler.settings.get("DATABASE_URL") and self.options.freshness:
            from moviecrawler.extensions.catalogue_writer import ask  # noqa: PLC0415 - imports Postgres' client

            with suppress(MovieCrawlerError, TimeoutError):
                async with asyncio.timeout(_CATALOGUE_TIMEOUT_SECONDS):
                    self._overdue = await asyncio.to_thread(
                        ask, self.crawler.settings, _OVERDUE, self.site, seconds=_CATALOGUE_TIMEOUT_SECONDS
                    )

    # --- Publishing ---------------------------------------------------------------------------------------------------

    async def _publish(self) -> None:
        """Bring the store up to date with what was found, and notify people of what has changed."""
        async with self._lock:
            verdicts, changed = self.verdicts, list[Notification]()
            try:
                await asyncio.to_thread(self._record, verdicts, changed)
            except AlarmStoreError as error:
                if self._outages.begins():
                    logger.warning("Not all alarms are recorded and sent for now: %s", error)
            else:
                self._outages.ends()
            for one in changed:
                logger.log(_LOG_LEVELS[one.status], "%s", one.text)
                self.crawler.stats.inc_value(f"alarms/{one.status}")
            if changed and self._receivers:
                await asyncio.to_thread(self._notify, verdicts, changed)

    def _record(self, verdicts: Sequence[Verdict], changed: list[Notification]) -> None:
        """Record in the store what stands and what doesn't; add to `changed` what this process is to notify people of."""
        now, node = utc_now(), node_of(self.crawler.settings)
        at = now.timestamp()
        known = {alarm.name: alarm for alarm in self._store.open_alarms()}
        for name, kind, text in verdicts:
            if text:
                since = known[name].since if name in known else at
                alarm = Alarm(name=name, kind=kind, site=self.site, text=text, since=since, seen_at=at, told_at=at)
                status = self._store.fire(alarm, self.options.reminder)
                if status is not None:
                    changed.append(Notification(status=status, alarm=alarm, at=now, node=node))
            elif name in known:
                ended = self._store.recover(name, at, _QUIET_LOOKS * self.options.every)
                if ended is not None:
                    changed.append(Notification(status="recovered", alarm=ended, at=now, node=node))
        self.open = self._store.open_alarms()

    def _notify(self, verdicts: Sequence[Verdict], changed: Sequence[Notification]) -> None:
        from moviecrawler.monitors.suite import notify  # noqa: PLC0415 - takes longer to import than a small crawl takes

        try:
            undelivered = notify(self.crawler, self._receivers, verdicts, changed)
        except Exception as error:  # noqa: BLE001 - Spidermon raises many, when an action is made; its text may hold a secret
            logger.error("People could not be notified of alarms: %s", type(error).__name__)  # noqa: TRY400 - as above
            undelivered = changed
        with suppress(AlarmStoreError):
            for one in undelivered:
                if one.status != "recovered":
                    self._store.notification_failed(one.alarm.name)
