"""Obeying robots.txt, also when it can't be had."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.misc import build_from_crawler
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

logger = logging.getLogger(__name__)

_NOTHING_ALLOWED = b"User-agent: *\nDisallow: /\n"
_SERVER_ERROR = 500


class CautiousRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's middleware, but a site whose robots.txt is out of order is not crawled.

    RFC 9309, 2.3.1.4: a crawler must then assume complete disallow; Scrapy assumes that all is allowed. A site that has
    none (a 404) allows everything, as ever.
    """

    # Both methods are private to Scrapy, which offers no other place for this.

    async def _parse_robots(self, response: Response, netloc: str, request: Request) -> None:
        if response.status >= _SERVER_ERROR:
            self._tell(netloc, f"HTTP status {response.status}")
            response = response.replace(body=_NOTHING_ALLOWED)
        await super()._parse_robots(response, netloc, request)

    def _robots_error(self, exc: Exception, netloc: str) -> None:
        self._tell(netloc, f"{type(exc).__name__}: {exc}")
        parser = build_from_crawler(self._parserimpl, self.crawler, _NOTHING_ALLOWED)
        waiting, self._parsers[netloc] = self._parsers[netloc], parser
        assert isinstance(waiting, Deferred)  # noqa: S101 - of the requests that wait for the file
        waiting.callback(parser)

    def _tell(self, netloc: str, reason: str) -> None:
        logger.warning(
            "robots.txt of %s can't be had (%s), so nothing is fetched there",
            netloc,
            reason,
            extra={"spider": self.crawler.spider},
        )
