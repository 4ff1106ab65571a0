"""Seeding a shared crawl once, whatever the number of workers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from moviecrawler.frontier.shared import shared_scheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from scrapy.crawler import Crawler

_POLL_SECONDS = 1.0
"""Seconds between two looks at how far another worker is."""


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
