"""Publishing what a crawl has to show, in the Redis that crawls share; the dashboard reads it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import redis.exceptions
from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.frontier.shared import shared_scheduler

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

PUBLISH_SECONDS = 4.0
"""Between two publications of one process."""
_LAST_PUBLISH_SECONDS = 3.0
"""That a crawl which ends waits for the last one."""


class Publisher(ABC):
    """Publishes every few seconds while something is pending, and once at the end.

    It never holds the crawl up: what Redis does not take stays pending, or is dropped at the end.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read REDIS_URL."""
        if not crawler.settings.get("REDIS_URL") or not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        publisher = cls(crawler)
        crawler.signals.connect(publisher.spider_closed, signals.spider_closed)
        return publisher

    @property
    @abstractmethod
    def is_pending(self) -> bool:
        """Whether there is something to publish."""

    @abstractmethod
    async def publish(self) -> None:
        """Publish what is pending; what could not be sent stays pending."""

    def publish_soon(self) -> None:
        """Begin to publish, unless that has begun."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._publish_while_pending())

    async def _publish_while_pending(self) -> None:
        while self.is_pending:
            await self.publish()
            await asyncio.sleep(PUBLISH_SECONDS)

    async def spider_closed(self) -> None:
        """Publish the rest; stores have settled every item by now."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_PUBLISH_SECONDS):
                await self.publish()

    async def send(self, fill: Callable[[Any], object]) -> bool:
        """Send the commands with which `fill` fills a Redis pipeline; return whether Redis took them."""
        scheduler = shared_scheduler(self.crawler)
        if scheduler is None:
            return False
        pipe = scheduler.server.pipeline(transaction=False)
        fill(pipe)
        try:
            await pipe.execute()
        except redis.exceptions.RedisError as error:
            logger.debug("%s could not publish: %s", type(self).__name__, error)
            return False
        return True
