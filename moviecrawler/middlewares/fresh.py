"""Sends no request for a title whose record is younger than `skip_newer_than`."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest, NotConfigured

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.database.fresh import fresh_ids
from moviecrawler.signals import titles_fresh

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.sites import Site

logger = logging.getLogger(__name__)


class Fresh(IgnoreRequest):
    """A title's record is so young that its page is not fetched."""


async def find_fresh(
    settings: BaseSettings, site: Site, ids: list[str], age: timedelta
) -> set[str]:
    """Return those of the ids whose title's page was stored lately. Raises MovieCrawlerError."""
    return await asyncio.to_thread(fresh_ids, settings, site, ids, utc_now() - age)


class FreshMiddleware:
    """Scrapy downloader middleware that sends `titles_fresh` in place of a request."""

    def __init__(self, crawler: Crawler, age: timedelta) -> None:
        self._crawler = crawler
        self._age = age

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read the spider's plan. Raises NotConfigured where all titles are fetched."""
        plan = getattr(crawler.spider, "plan", None)
        if plan is None or plan.skip_newer_than is None:
            raise NotConfigured
        return cls(crawler, plan.skip_newer_than)

    async def process_request(self, request: Request) -> None:
        """Look for the record of a title before its first attempt. Raises Fresh."""
        site_id = request.cb_kwargs.get("site_id")
        if site_id is None or not request.meta.keys().isdisjoint({"redirect_urls", "retry_times"}):
            return
        site = request.meta["site"]
        try:
            fresh = await find_fresh(self._crawler.settings, site, [site_id], self._age)
        except MovieCrawlerError as error:
            logger.warning("%s is fetched, as its record can't be read: %s", site_id, error)
            return
        if fresh:
            self._crawler.signals.send_catch_log(titles_fresh, request=request, count=1)
            raise Fresh(f"{site_id} was stored in the last {self._age}")
