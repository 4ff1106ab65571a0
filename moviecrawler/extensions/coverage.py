"""Watching how often pages have each field, and stopping a crawl before it stores holes."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_now
from moviecrawler.monitors.books import BookError, open_book
from moviecrawler.monitors.coverage import Coverage, gone
from moviecrawler.monitors.likeness import groups_of_today
from moviecrawler.monitors.options import AlarmOptions
from moviecrawler.monitors.threads import BookThread
from moviecrawler.signals import coverage_changed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.items import Movie
    from moviecrawler.monitors.coverage import Levels

logger = logging.getLogger(__name__)

_LATELY = timedelta(days=1)


class CoverageWatch:
    """Counts the pages that were read of the spider's site, and compares them with what was usual until now.

    What is usual is kept between crawls. Counts `coverage/pages`, and at the end `coverage/fields/<field>`, the pages that had it.
    """

    def __init__(self, crawler: Crawler, options: AlarmOptions) -> None:
        self.crawler = crawler
        self.options = options
        self.coverage = Coverage({})
        self._book = BookThread(open_book(crawler.settings))
        self._site: str = crawler.spidercls.site  # type: ignore[attr-defined]
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._low: Mapping[str, str] = {}
        self._saved = dict.fromkeys(self.coverage.counted, 0)
        self._saved_pages = 0
        self._unsaved: Levels = {}
        self._is_loaded = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read what `AlarmOptions` and `open_book` read."""
        if not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        watch = cls(crawler, AlarmOptions.from_settings(crawler.settings))
        crawler.signals.connect(watch.spider_opened, signals.spider_opened)
        crawler.signals.connect(watch.spider_closed, signals.spider_closed)
        return watch

    # --- Pages --------------------------------------------------------------------------------------------------------

    def take(self, movie: Movie) -> dict[str, str]:
        """Count a page, and return what it lacks although pages like it have it; rows of lists and of datasets are none."""
        if movie.source != "page":
            return {}
        unsure = self.coverage.take(movie)
        self.crawler.stats.inc_value("coverage/pages")
        low = {name: finding.standing for name, finding in self.coverage.findings().items()}
        if low != self._low:
            self._low = low
            self._tell(low)
        return unsure

    def _tell(self, low: Mapping[str, str]) -> None:
        self.crawler.signals.send_catch_log(coverage_changed)
        collapsed = sorted(name for name, standing in low.items() if standing == "collapsed")
        if collapsed and self.options.stops and self._stopping is None:
            told = (
                "%s: %s suddenly missing, so the pages have probably changed, and the crawl stops before it stores holes. "
                "If it is only that these titles are others than before: scrapy alarms --accept coverage/%s/%s, or COVERAGE_STOP=0 "
                "to go on all the same (more in the runbook, scrapyd/README.md)"
            )
            names = ", ".join(collapsed)
            logger.error(told, self._site, names, self._site, collapsed[0], extra={"spider": self.crawler.spider})
            self._stopping = asyncio.get_running_loop().create_task(self._stop())

    async def _stop(self) -> None:
        assert self.crawler.engine is not None  # noqa: S101 - pages come from it
        await self.crawler.engine.close_spider_async(reason="coverage_collapsed")

    # --- What is kept -------------------------------------------------------------------------------------------------

    async def spider_opened(self) -> None:
        """Learn what was usual until now."""
        await self._load()
        self._saving = asyncio.get_running_loop().create_task(self._save_now_and_then())

    async def spider_closed(self) -> None:
        """Keep what was seen."""
        self._closing.set()
        if self._saving is not None:
            await self._saving
        for name, number in self.coverage.counted.items():
            if number:
                self.crawler.stats.set_value(f"coverage/fields/{name}", number)
        await self._save(at_end=True)
        await self._book.close()

    async def _load(self) -> None:
        try:
            levels = groups_of_today(await self._book.call(lambda book: book.levels(self._site)))
            alarms = await self._book.call(lambda book: book.open_alarms())
            since = (utc_now() - _LATELY).date().isoformat()
            days = await self._book.call(lambda book: book.coverage(self._site, since))
        except BookError as error:
            logger.warning("What is usual of %s is not known for now: %s", self._site, error)
            return
        prefix = f"coverage/{self._site}/"
        before = self.coverage
        counted: dict[str, tuple[int, int]] = {}
        for day in days:
            pages, having = counted.get(day.field, (0, 0))
            counted[day.field] = pages + day.pages, having + day.present
        alarmed = {alarm.name.removeprefix(prefix) for alarm in alarms if alarm.name.startswith(prefix)}
        self.coverage = Coverage(levels, alarmed | gone(levels, counted))
        self.coverage.continue_from(before)
        self._is_loaded = True

    async def _save_now_and_then(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self.options.every)
                return
            if not self._is_loaded:
                await self._load()
            await self._save()

    async def _save(self, *, at_end: bool = False) -> None:
        learnt = _added(self._unsaved, self.coverage.learnt(at_end=at_end))
        self._unsaved = {}
        counted, pages = dict(self.coverage.counted), self.coverage.pages
        new = {name: number - self._saved[name] for name, number in counted.items()}
        new_pages = pages - self._saved_pages
        day = utc_now().date().isoformat()
        known = set(self.coverage.usual())
        of_day = {name: number for name, number in new.items() if counted[name] or name in known}
        try:
            await self._book.call(lambda book: book.learn(self._site, learnt, day, of_day, new_pages))
        except BookError as error:
            self._unsaved = learnt
            logger.warning("What %d pages had could not be kept, and will be tried again: %s", new_pages, error)
        else:
            self._saved, self._saved_pages = counted, pages


def _added(first: Levels, second: Levels) -> Levels:
    """Return the sum of two increments of levels."""
    total = {group: dict(fields) for group, fields in first.items()}
    for group, fields in second.items():
        known = total.setdefault(group, {})
        for name, (pages, having) in fields.items():
            before = known.get(name, (0.0, 0.0))
            known[name] = before[0] + pages, before[1] + having
    return total
