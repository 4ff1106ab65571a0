"""Drops requests for other hosts than the site's own, and for http where the site uses https."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.httpobj import urlparse_cached

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector


class StrictOffsiteMiddleware(OffsiteMiddleware):
    """Scrapy's middleware, but it also checks requests with `dont_filter`.

    It calls the errback of each request that it drops: without that, its title would end neither as
    a Movie nor as a Miss. A redirect inherits `dont_filter`, so it could lead to any host, such as
    one of the node's own network. A redirect from https to http is dropped, as a proxy could change
    the response.
    """

    def __init__(self, stats: StatsCollector) -> None:
        super().__init__(stats)
        self._http_hosts: set[str | None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Let Scrapy queue every request.

        `process_request` drops it later, so that its errback is called.
        """
        middleware: Self = super().from_crawler(crawler)
        crawler.signals.disconnect(middleware.request_scheduled, signals.request_scheduled)
        return middleware

    def spider_opened(self, spider: Spider) -> None:
        """Read to which hosts the spider may send requests, and to which of them by http."""
        super().spider_opened(spider)
        hosts: dict[str, str] | None = getattr(spider, "hosts", None)
        if hosts is not None:
            urls = map(urlsplit, hosts.values())
            self._http_hosts = {url.hostname for url in urls if url.scheme == "http"}

    def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Raise IgnoreRequest for a request that may not be sent.

        That is one for a host outside `allowed_domains`, or for http where the site uses https.
        """
        super().process_request(
            request.replace(dont_filter=False) if request.dont_filter else request
        )
        url = urlparse_cached(request)
        if url.scheme != "http":
            return
        led_by_https = any(
            before.startswith("https:") for before in request.meta.get("redirect_urls", ())
        )
        if led_by_https or (self._http_hosts is not None and url.hostname not in self._http_hosts):
            raise IgnoreRequest(f"{url.hostname} is requested by https only")
