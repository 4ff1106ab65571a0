"""Has a crawl share its queue, and names its run, without importing a Redis client."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from moviecrawler.frontier.budget_middleware import BudgetMiddleware

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_MAX_NAME_CHARACTERS = 50
_MAX_CHARACTERS = 200
"""Characters of the arguments in the name of a run, and in what describes them."""


def describe_arguments(titles: list[str], others: Mapping[str, str]) -> str:
    """Return a text that is the same for all workers of a run, and another one for other arguments.

    >>> describe_arguments(["tt1", "tt2"], {"limit": "9"})
    'ids=tt1,tt2 limit=9 (d6082c2f)'
    """
    given = [f"ids={','.join(titles)}"] * bool(titles) + [
        f"{name}={value}" for name, value in sorted(others.items())
    ]
    text = " ".join(given) or "no arguments"
    return f"{text[:_MAX_CHARACTERS]} ({blake2b(text.encode(), digest_size=4).hexdigest()})"


def run_name(settings: Mapping[str, Any], spider: Any) -> str:
    """Return the name of a crawl's run: FRONTIER_RUN, or a name made of the spider's arguments."""
    given = settings.get("FRONTIER_RUN")
    if given:
        return str(given)
    shown, _, digest = spider.seed_key.rpartition(" ")
    return re.sub(
        r"[^\w.-]+", "-", f"{shown[:_MAX_NAME_CHARACTERS]} {digest}", flags=re.ASCII
    ).strip("-")


def share(settings: BaseSettings) -> None:
    """Have a crawl use the shared queue, unless `-s SCHEDULER=…` names another one; call it before the settings are frozen."""
    settings.set(
        "SCHEDULER", "moviecrawler.frontier.scheduler.FrontierScheduler", priority="spider"
    )


def budget_middleware_of(crawler: Crawler) -> Any:
    """Return the middleware that keeps the budget of a crawl."""
    return crawler.get_downloader_middleware(BudgetMiddleware)
