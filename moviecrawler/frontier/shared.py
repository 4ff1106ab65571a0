"""Tells whether a crawl is shared, without importing a Redis client when it is not, and names its run."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from moviecrawler.frontier.budget_middleware import BudgetMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.frontier.scheduler import FrontierScheduler

_SCHEDULER = "moviecrawler.frontier.scheduler.FrontierScheduler"
_MAX_NAME_CHARACTERS, _MAX_CHARACTERS = 50, 200
"""Characters of the arguments in the name of a run, and in what describes them."""


def describe_arguments(titles: list[str], others: Mapping[str, str]) -> str:
    """Return a text that is the same for all workers of a run, and another one for other arguments.

    >>> describe_arguments(["tt1", "tt2"], {"limit": "9"})
    'ids=tt1,tt2 limit=9 (d6082c2f)'
    """
    given = [f"ids={','.join(titles)}"] * bool(titles) + [f"{name}={value}" for name, value in sorted(others.items())]
    text = " ".join(given) or "no arguments"
    return f"{text[:_MAX_CHARACTERS]} ({blake2b(text.encode(), digest_size=4).hexdigest()})"


def run_name(settings: Mapping[str, Any], spider: Any) -> str:
    """Return the name of a crawl's run: FRONTIER_RUN, or a name made of the spider's arguments."""
    given = settings.get("FRONTIER_RUN")
    if given:
        return str(given)
    shown, _, digest = spider.seed_key.rpartition(" ")
    return re.sub(r"[^\w.-]+", "-", f"{shown[:_MAX_NAME_CHARACTERS]} {digest}", flags=re.ASCII).strip("-")


def share(settings: BaseSettings) -> None:
    """Have a crawl use the shared queue; call it before the crawl's settings are frozen."""
    settings.set("SCHEDULER", _SCHEDULER, priority="spider")
    if settings["SCHEDULER"] == _SCHEDULER:  # unless `-s SCHEDULER=…` names another one
        middlewares = settings.getdict("SPIDER_MIDDLEWARES") | {"moviecrawler.frontier.shared.NoStartMiddleware": 0}
        settings.set("SPIDER_MIDDLEWARES", middlewares, priority="spider")


def shared_scheduler(crawler: Crawler) -> FrontierScheduler | None:
    """Return the scheduler of a shared crawl; None for another one, and before the engine has opened it."""
    if not crawler.settings.get("REDIS_URL"):
        return None
    from moviecrawler.frontier.scheduler import FrontierScheduler  # noqa: PLC0415 - imports Redis' client

    scheduler = getattr(crawler.engine, "scheduler", None)
    return scheduler if isinstance(scheduler, FrontierScheduler) else None


def budget_middleware_of(crawler: Crawler) -> Any:
    """Return the middleware that keeps the budget of a crawl."""
    return crawler.get_downloader_middleware(BudgetMiddleware)


class NoStartMiddleware:
    """Spider middleware of shared crawls: the scheduler runs `start` on the one worker that queues what the arguments name."""

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield nothing."""
        del start
        return
        yield
