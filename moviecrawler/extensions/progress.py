"""Logs how far a crawl is, and what it waits for."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from moviecrawler.frontier.contract import TITLE_OUTCOMES
from moviecrawler.scrapy_internals import describe_requests

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_QUIET_INTERVALS = 2
"""LOGSTATS_INTERVALs without an answer and without the end of a title, after which a line says what
the crawl waits for."""


class Progress:
    """Logs every LOGSTATS_INTERVAL seconds how this process's titles ended, if that has changed.

    While requests are under way and nothing comes in, it logs what the crawl waits for, less and
    less often, and counts the time in the stat `crawl/stalled_seconds`. `scrapy progress` shows all
    workers of a shared crawl.
    """

    def __init__(self, crawler: Crawler, interval: float) -> None:
        self._crawler = crawler
        self._interval = interval
        self._started = time.monotonic()
        self._changed_at = self._started
        self._looked_at = self._started
        self._seen = 0
        """Answers, and titles that have ended, at the last look."""
        self._quiet = _QUIET_INTERVALS * interval
        """Seconds without a change after which the next line is due."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read LOGSTATS_INTERVAL (seconds)."""
        interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if interval <= 0:
            raise NotConfigured("LOGSTATS_INTERVAL is 0")
        progress = cls(crawler, interval)
        crawler.signals.connect(progress.spider_opened, signals.spider_opened)
        crawler.signals.connect(progress.spider_closed, signals.spider_closed)
        return progress

    def spider_opened(self) -> None:
        """Begin to log."""
        self._task = create_looping_call(self.look)
        self._task.start(self._interval, now=False)

    def spider_closed(self) -> None:
        """End the logging."""
        if self._task.running:
            self._task.stop()

    def look(self) -> None:
        """Log what has changed, or what the crawl waits for."""
        stats = self._crawler.stats
        now = time.monotonic()
        counts = {name: stats.get_value(f"titles/{name}", 0) for name in (*TITLE_OUTCOMES, "dead")}
        done = sum(counts.values())
        seen = done + stats.get_value("downloader/response_count", 0)
        if seen != self._seen:
            self._seen = seen
            self._changed_at = now
            self._quiet = _QUIET_INTERVALS * self._interval
            ended = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
            message = "%d of %d titles done (%.0f a minute): %s"
            per_minute = 60 * done / max(now - self._started, self._interval)
            asked = stats.get_value("titles/asked", 0)
            logger.info(
                message,
                done,
                asked,
                per_minute,
                ended or "none",
                extra={"spider": self._crawler.spider},
            )
        elif waits := describe_requests(self._crawler.engine):
            # Scrapy's type, not its code, asks for an int.
            stats.inc_value(
                "crawl/stalled_seconds",
                now - self._looked_at,  # type: ignore[arg-type]
            )
            if now - self._changed_at >= self._quiet:
                self._quiet *= 2
                message = "Nothing has come in and no title has ended for %.0f s; requests wait %s"
                logger.info(
                    message, now - self._changed_at, waits, extra={"spider": self._crawler.spider}
                )
        self._looked_at = now
