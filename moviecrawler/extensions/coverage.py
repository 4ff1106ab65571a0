"""Watching whether pages still have the place of each field, and stopping a crawl that can't read a site any more."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_now
from moviecrawler.errors import AlarmStoreError
from moviecrawler.frontier.engine import drop_unsent
from moviecrawler.monitors.alarm_store import open_alarm_store
from moviecrawler.monitors.places import ALL_SCORES, GONE_AFTER_PAGES, Places
from moviecrawler.options import AlarmOptions
from moviecrawler.signals import coverage_changed, title_unread

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.errors import ExtractionError
    from moviecrawler.items import Movie

logger = logging.getLogger(__name__)

_STOPS = (
    "%s: %s, so the site has probably changed its pages, and the crawl stops. Nothing that is stored is lost. Save such a page and see what "
    "scrapy extract reads of it. COVERAGE_STOP=0 goes on all the same%s (more in the runbook, scrapyd/README.md)"
)


class CoverageWatch:
    """Watches the title pages of the spider's site, and compares their places with those of earlier pages.

    What is known of earlier pages is kept between crawls. Counts `coverage/pages`, `coverage/partial` (pages that are silent of a
    field whose place pages alike have) and `coverage/silent/<field>`; at the end `coverage/fields/<field>`, the pages with a value.
    """

    def __init__(self, crawler: Crawler, options: AlarmOptions) -> None:
        self.crawler = crawler
        self.options = options
        self.places = Places()
        self._store = open_alarm_store(crawler.settings)
        self._site: str = crawler.spidercls.site  # type: ignore[attr-defined]
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._found: AbstractSet[str] = frozenset()
        self._is_loaded = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read what `AlarmOptions` and `open_alarm_store` read."""
        if not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        watch = cls(crawler, AlarmOptions.read(crawler.settings))
        crawler.signals.connect(watch.spider_opened, signals.spider_opened)
        crawler.signals.connect(watch.spider_closed, signals.spider_closed)
        crawler.signals.connect(watch.take_unread, title_unread)
        return watch

    # --- Pages --------------------------------------------------------------------------------------------------------

    def take(self, movie: Movie) -> None:
        """Count what was read from a page; rows of lists and of datasets are none."""
        if movie.source != "page":
            return
        partial = self.places.partial
        self.places.take(movie)
        stats = self.crawler.stats
        assert stats is not None  # noqa: S101 - Scrapy sets it before it creates components
        stats.inc_value("coverage/pages")
        if self.places.partial > partial:
            stats.inc_value("coverage/partial")
        for name in movie.silent:
            stats.inc_value(f"coverage/silent/{name}")
        findings = self.places.findings()
        if findings.keys() != self._found:
            self._found = findings.keys()
            self.crawler.signals.send_catch_log(coverage_changed)
        gone = findings.get(ALL_SCORES)
        if gone is not None:
            why = f"{gone.pages} title pages in a row are silent of every score, such as {gone.example.site_id} ({gone.example.url})"
            self._stop(
                why,
                f"; scrapy alarms --accept coverage/{self._site}/{ALL_SCORES} says that the site shows no scores any more",
            )

    def take_unread(self, site_id: str, error: ExtractionError) -> None:
        """Count a title's page that could not be read."""
        self.places.take_unread()
        if self.places.unread >= GONE_AFTER_PAGES:
            self._stop(f"{self.places.unread} title pages in a row can't be read, such as {site_id}: {error}", "")

    def _stop(self, why: str, or_else: str) -> None:
        if self.options.stops and self._stopping is None:
            logger.error(_STOPS, self._site, why, or_else, extra={"spider": self.crawler.spider})
            engine = self.crawler.engine
            assert engine is not None  # noqa: S101 - pages come from it
            engine.pause()  # asks the scheduler for no more
            self._drop_unsent()
            self.crawler.signals.connect(self._drop_soon, signals.request_reached_downloader)
            closing = engine.close_spider_async(reason="pages_changed")
            self._stopping = asyncio.get_running_loop().create_task(closing)

    def _drop_unsent(self) -> None:
        drop_unsent(self.crawler.engine)

    def _drop_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._drop_unsent)  # once the request is in the downloader's queue

    # --- What is kept -------------------------------------------------------------------------------------------------

    async def spider_opened(self) -> None:
        """Learn what is known of earlier pages."""
        await self._load()
        self._saving = asyncio.get_running_loop().create_task(self._save_periodically())

    async def spider_closed(self) -> None:
        """Keep what was seen."""
        self._closing.set()
        if self._saving is not None:
            await self._saving
        for name, number in self.places.having.items():
            self.crawler.stats.set_value(f"coverage/fields/{name}", number)
        await self._save()
        self._store.close()

    async def _load(self) -> None:
        try:
            baselines = await asyncio.to_thread(self._store.baselines, self._site)
            latest = await asyncio.to_thread(self._store.latest, self._site)
        except AlarmStoreError as error:
            logger.warning("What is known of the pages of %s can't be read for now: %s", self._site, error)
            return
        before, self.places = self.places, Places(baselines, latest)
        self.places.continue_from(before)
        self._is_loaded = True

    async def _save_periodically(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self.options.every)
                return
            if not self._is_loaded:
                await self._load()
            await self._save()

    async def _save(self) -> None:
        seen, day = self.places.learnt(), utc_now().date().isoformat()
        if not seen.pages:
            return
        try:
            await asyncio.to_thread(self._store.learn, self._site, day, seen)
        except AlarmStoreError as error:
            self.places.return_unsaved(seen)
            logger.warning("What %d pages had could not be stored, and is tried again: %s", seen.pages, error)
