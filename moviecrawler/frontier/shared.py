"""Whether a crawl is shared, asked without importing a Redis client where it is not; and the name of its run."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from moviecrawler.frontier.turns import TurnsMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.frontier.scheduler import FrontierScheduler

_SCHEDULER = "moviecrawler.frontier.scheduler.FrontierScheduler"
_MAX_NAME = 50
"""Characters of the arguments in the name of a run."""
_MAX_SHOWN = 3
"""Titles that are shown of those that the arguments name."""


def describe_arguments(titles: list[str], others: Mapping[str, str]) -> str:
    """Return what a spider's arguments are: the same for all workers of a run, and for no other arguments.

    >>> describe_arguments(["tt1", "tt2"], {"limit": "9"})
    'ids=tt1,tt2 limit=9 (6cb52991)'
    """
    shown = [f"ids={','.join(titles[:_MAX_SHOWN])}{',…' if len(titles) > _MAX_SHOWN else ''}"] if titles else []
    shown += [f"{name}={value}" for name, value in sorted(others.items())]
    digest = blake2b(repr((titles, sorted(others.items()))).encode(), digest_size=4).hexdigest()
    return f"{' '.join(shown)[:200] or 'no arguments'} ({digest})"


def run_name(settings: Mapping[str, Any], spider: Any) -> str:
    """Return the name of a crawl's run: FRONTIER_RUN, or made of the spider's arguments."""
    given = settings.get("FRONTIER_RUN")
    if given:
        return str(given)
    shown, _, digest = spider.seed_key.rpartition(" ")
    return re.sub(r"[^\w.-]+", "-", f"{shown[:_MAX_NAME]} {digest}", flags=re.ASCII).strip("-")


def share(settings: BaseSettings) -> None:
    """Have a crawl use the shared queue; call it before the crawl's settings are frozen."""
    settings.set("SCHEDULER", _SCHEDULER, priority="spider")
    if settings["SCHEDULER"] == _SCHEDULER:  # and not one that somebody has set for this crawl
        middlewares = settings.getdict("SPIDER_MIDDLEWARES") | {"moviecrawler.frontier.shared.NoStartMiddleware": 0}
        settings.set("SPIDER_MIDDLEWARES", middlewares, priority="spider")


def shared_scheduler(crawler: Crawler) -> FrontierScheduler | None:
    """Return the scheduler of a crawl that is shared; None for one that is not, and before the engine has opened it."""
    if not crawler.settings.get("REDIS_URL"):
        return None
    from moviecrawler.frontier.scheduler import FrontierScheduler  # noqa: PLC0415 - imports Redis' client

    scheduler = getattr(crawler.engine, "scheduler", None)
    return scheduler if isinstance(scheduler, FrontierScheduler) else None


def shared_turns(crawler: Crawler) -> Any:
    """Return what gives the requests of a crawl their turns."""
    return crawler.get_downloader_middleware(TurnsMiddleware)


class NoStartMiddleware:
    """Spider middleware of shared crawls: the scheduler runs `start` on the one worker that queues what the arguments name."""

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield nothing."""
        del start
        return
        yield
