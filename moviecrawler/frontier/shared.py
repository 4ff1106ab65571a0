"""Whether a crawl is shared, asked without importing a Redis client where it is not; and queueing what its arguments name once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.frontier.scheduler import FrontierScheduler

_POLL_SECONDS = 1.0
"""Seconds between two looks at how far another worker is."""


def shared_scheduler(crawler: Crawler) -> FrontierScheduler | None:
    """Return the scheduler of a crawl that is shared; None for one that is not, and before the engine has opened it."""
    if not crawler.settings.get("REDIS_URL"):
        return None
    from moviecrawler.frontier.scheduler import FrontierScheduler  # noqa: PLC0415 - imports Redis' client

    scheduler = getattr(crawler.engine, "scheduler", None)
    return scheduler if isinstance(scheduler, FrontierScheduler) else None


class SeedOnceMiddleware:
    """Spider middleware that lets one worker of a run queue what the arguments name."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Take the crawler, whose scheduler exists only later."""
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield the spider's first requests when no other worker of the run has, or does."""
        scheduler = shared_scheduler(self.crawler)
        assert scheduler is not None  # noqa: S101 - both are switched on together
        while (answer := await scheduler.seeding()) == "wait":  # noqa: ASYNC110 - on another process
            await asyncio.sleep(_POLL_SECONDS)
        if answer == "seed":
            async for request in start:
                yield request
                await scheduler.room()
            await scheduler.seeded()
