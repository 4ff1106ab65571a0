"""Asking no host that is not the site's own, and none in the clear that is to be asked by https."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.httpobj import urlparse_cached

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.statscollectors import StatsCollector


class StrictOffsiteMiddleware(OffsiteMiddleware):
    """Scrapy's middleware, also for requests with `dont_filter`, and telling who asked.

    Scrapy lets these go anywhere, and a redirect inherits it: one of a title that is due, or of a dataset, would lead to any
    host that the answer names, such as one of the node's own network. And what it sorts out before it is queued is told
    nobody: a title that is redirected to another host would end neither as a Movie nor as a Miss.

    A redirect from https to http is not followed either: what comes in the clear, a proxy could have made up.
    """

    def __init__(self, stats: StatsCollector) -> None:
        super().__init__(stats)
        self._in_the_clear: set[str | None] | None = None

    def spider_opened(self, spider: Spider) -> None:
        """Learn which hosts the spider may ask, and which of them by http."""
        super().spider_opened(spider)
        settings = getattr(spider, "home_settings", None)
        if settings is not None:
            homes = [urlsplit(self.crawler.settings[name]) for name in settings()]
            self._in_the_clear = {home.hostname for home in homes if home.scheme == "http"}

    def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Raise IgnoreRequest for a host that is none of the spider's `allowed_domains`, or that is asked in the clear."""
        super().process_request(request.replace(dont_filter=False) if request.dont_filter else request)
        url = urlparse_cached(request)
        if url.scheme == "http" and self._in_the_clear is not None and url.hostname not in self._in_the_clear:
            raise IgnoreRequest(f"{url.hostname} is asked by https only")

    def request_scheduled(self, request: Request, spider: Spider) -> None:
        """Let every request be queued: it is sorted out when its turn comes, when its errback is called."""
