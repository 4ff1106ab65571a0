"""Sends the request for an id that its site has given up to the title's current address."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.basics.outages import Outage
from moviecrawler.database.aliases import valid_aliases
from moviecrawler.sites.identity import ALIAS, Redirect, meta_of
from moviecrawler.sites.ids import current_id, title_url

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from moviecrawler.sites import Site

logger = logging.getLogger(__name__)

_RELOAD_SECONDS = 600.0
"""Time after which aliases are read again, as other processes may have added some."""


class AliasMiddleware:
    """Scrapy downloader middleware that follows aliases before a request is sent.

    All aliases of the site are read at once, in a thread, before the first request for a title and
    then every ten minutes. A title that a list names is requested by the id in the list, which may
    have a page of its own again.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._aliases: dict[str, str] = {}
        self._reload_at = 0.0
        self._reading = asyncio.Lock()
        self._outage = Outage()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware."""
        return cls(crawler)

    async def process_request(self, request: Request) -> Request | None:
        """Return the request for a title's current id; None where the requested one is that."""
        site_id = request.cb_kwargs.get("site_id")
        was_redirected = "redirect_urls" in request.meta
        if site_id is None or was_redirected or request.cb_kwargs.get("found") is not None:
            return None
        site: Site = request.meta["site"]
        await self._read_when_due(site)
        current = current_id(site_id, self._aliases)
        if current == site_id:
            return None
        home: str = self._crawler.spider.home  # type: ignore[union-attr]
        self._crawler.stats.inc_value("aliases/followed")
        return request.replace(
            url=title_url(site, current, home),
            meta={**request.meta, **meta_of([Redirect(request.url, ALIAS)])},
            dont_filter=True,
        )

    async def _read_when_due(self, site: Site) -> None:
        """Read the aliases, unless that was done lately. Those of before stay if it fails."""
        async with self._reading:
            if time.monotonic() < self._reload_at:
                return
            settings = self._crawler.settings
            try:
                self._aliases = await asyncio.to_thread(valid_aliases, settings, site, utc_now())
                self._outage.mark_up()
            except MovieCrawlerError as error:
                if self._outage.mark_down():
                    message = "Aliases can't be read (%s); old ids are requested as they are"
                    logger.warning(message, error, extra={"spider": self._crawler.spider})
            self._reload_at = time.monotonic() + _RELOAD_SECONDS
