"""Refuses to crawl on a machine whose clock is wrong."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import CloseSpider, NotConfigured

from moviecrawler.clock import TOLERANCE
from moviecrawler.errors import MovieCrawlerError

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0


class ClockCheck:
    """Compares this machine's clock with those of Redis and Postgres before the first request.

    Records with a wrong time would wrongly replace those of other machines, or be replaced by them.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._settings = crawler.settings

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read REDIS_URL and DATABASE_URL."""
        if not any(map(crawler.settings.get, ("REDIS_URL", "DATABASE_URL"))):
            raise NotConfigured
        check = cls(crawler)
        crawler.signals.connect(check.spider_opened, signals.spider_opened)
        return check

    async def spider_opened(self) -> None:
        """Raise CloseSpider when a server's clock differs by more than the tolerance."""
        for name, server, ask in (
            ("REDIS_URL", "Redis", _ask_redis),
            ("DATABASE_URL", "Postgres", _ask_postgres),
        ):
            if not self._settings.get(name):
                continue
            before = datetime.now(UTC)
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    theirs = await ask(self._settings)
            except (MovieCrawlerError, OSError, TimeoutError) as error:
                # The frontier or the store logs it as an error.
                logger.debug("%s can't be asked for the time: %s", server, error)
                continue
            ahead = before + (datetime.now(UTC) - before) / 2 - theirs
            if abs(ahead) >= TOLERANCE:
                direction = "ahead of" if ahead > timedelta() else "behind"
                minutes = abs(ahead) / timedelta(minutes=1)
                why = (
                    f"the clock of this machine is {minutes:,.0f} minutes {direction} that of"
                    f" {server}, so nothing is crawled: set it (NTP)"
                )
                logger.error("%s", why)
                self._crawler.stats.set_value("crawl/cause", why)
                raise CloseSpider("clock_wrong")


async def _ask_redis(settings: BaseSettings) -> datetime:
    # Imports Redis' client.
    from moviecrawler.redis_client import client_of  # noqa: PLC0415

    async with client_of(settings) as client:
        seconds, microseconds = await client.time()
    return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=microseconds)


async def _ask_postgres(settings: BaseSettings) -> datetime:
    return await asyncio.to_thread(_postgres_time, settings["DATABASE_URL"])


def _postgres_time(url: str) -> datetime:
    # Imports Postgres' client.
    from moviecrawler.database.short_transactions import ShortTransactions  # noqa: PLC0415

    with ShortTransactions(url).transaction() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchall()[0][0]
        return now
