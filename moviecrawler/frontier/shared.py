"""Whether a crawl is shared, asked without importing a Redis client where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from moviecrawler.frontier.scheduler import FrontierScheduler


def shared_scheduler(crawler: Crawler) -> FrontierScheduler | None:
    """Return the scheduler of a crawl that is shared; None for one that is not, and before the engine has opened it."""
    if not crawler.settings.get("REDIS_URL"):
        return None
    from moviecrawler.frontier.scheduler import FrontierScheduler  # noqa: PLC0415 - imports Redis' client

    scheduler = getattr(crawler.engine, "scheduler", None)
    return scheduler if isinstance(scheduler, FrontierScheduler) else None
