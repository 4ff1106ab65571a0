"""Asks a slow site more slowly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.extensions.throttle import AutoThrottle

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response


class SiteThrottle(AutoThrottle):
    """Scrapy's AutoThrottle, with each host's own delay in DOWNLOAD_SLOTS as its least.

    Scrapy has one least delay for all hosts, DOWNLOAD_DELAY. A host whose own delay is 0 is not
    slowed down.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        slots = crawler.settings.getdict("DOWNLOAD_SLOTS")
        self.least = {host: float(slot["delay"]) for host, slot in slots.items() if "delay" in slot}

    def _response_downloaded(self, response: Response, request: Request, spider: Spider) -> None:
        host, _ = self._get_slot(request, spider)
        # With proxies, each host and proxy have a slot of their own.
        least = self.least.get(host.partition(" via ")[0]) if host else None
        if least == 0:
            return
        self.mindelay = self._min_delay() if least is None else least
        super()._response_downloaded(response, request, spider)
