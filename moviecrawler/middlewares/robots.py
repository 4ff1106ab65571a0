"""Obeys robots.txt, also when it can't be fetched."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler

from moviecrawler.middlewares.blocks import ROBOTS_OF, SiteStopped
from moviecrawler.politeness.robots import read_rules

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

logger = logging.getLogger(__name__)

_NOTHING_ALLOWED = b"User-agent: *\nDisallow: /\n"
_CLIENT_ERRORS = range(400, 500)
_SERVER_ERROR = 500
_VALID_SECONDS = 24 * 3600.0
"""Seconds after which a robots.txt is fetched again, by RFC 9309, 2.4."""
_RETRY_SECONDS = 3600.0
"""Seconds after which a robots.txt that could not be fetched is tried again."""


class RobotsRefusal(IgnoreRequest):
    """robots.txt forbids a request, or could not be fetched, which `is_known` tells apart."""

    def __init__(self, unknown: str) -> None:
        super().__init__(f"robots.txt can't be fetched: {unknown}" if unknown else "by robots.txt")
        self.is_known = not unknown


@dataclass(frozen=True, slots=True)
class _Rules:
    parser: RobotParser
    until: float
    unknown: str = ""
    """Why the file can't be fetched; empty when its rules are known."""


class CautiousRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's middleware, but a site whose robots.txt can't be fetched is not crawled.

    RFC 9309, 2.3.1.4 says so. A 404 allows everything. A refusal of robots.txt stops the site, as
    any refusal does. All requests to a host wait for its robots.txt; in Scrapy 2.19 only the first
    one does.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        # Only the product's name: Scrapy would match groups with any word of the header, such as
        # those of CONTACT.
        self._robotstxt_useragent = (
            self._robotstxt_useragent or self._default_useragent.partition(" ")[0]
        )
        self._rules: dict[str, _Rules] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def process_request(
        self,
        request: Request,
        spider: object = None,  # noqa: ARG002 - Scrapy's signature
    ) -> None:
        """Raise RobotsRefusal when robots.txt forbids a request or can't be fetched.

        Raises SiteStopped when robots.txt is refused.
        """
        try:
            await super().process_request(request)
        except SiteStopped:
            raise
        except IgnoreRequest as error:
            raise RobotsRefusal(self._rules[urlparse_cached(request).netloc].unknown) from error

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """Return the rules of a request's host; fetch its robots.txt if needed.

        Raises SiteStopped.
        """
        netloc = urlparse_cached(request).netloc
        rules = self._rules.get(netloc)
        if rules is None or rules.until <= monotonic():
            async with self._locks[netloc]:
                rules = self._rules.get(netloc)
                if rules is None or rules.until <= monotonic():
                    rules = await self._ask(request)
                    self._rules[netloc] = rules
        return rules.parser

    async def _ask(self, request: Request) -> _Rules:
        url = urlparse_cached(request)
        address = f"{url.scheme}://{url.netloc}/robots.txt"
        meta = {"dont_obey_robotstxt": True, ROBOTS_OF: request.meta.get("site")}
        asking = Request(address, priority=self.DOWNLOAD_PRIORITY, meta=meta, callback=NO_CALLBACK)
        self._stats.inc_value("robotstxt/request_count")
        assert self.crawler.engine is not None  # noqa: S101 - it sends the requests that come here
        try:
            response = await self.crawler.engine.download_async(asking)
        except SiteStopped:
            raise
        except Exception as error:  # noqa: BLE001 - after any error the file counts as not fetched
            return self._unknown(url.netloc, f"{type(error).__name__}: {error}")
        self._stats.inc_value("robotstxt/response_count")
        self._stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        if response.status >= _SERVER_ERROR:
            return self._unknown(url.netloc, f"HTTP status {response.status}")
        return _Rules(self._parsed(_read(response)), monotonic() + _VALID_SECONDS)

    def _unknown(self, netloc: str, reason: str) -> _Rules:
        message = "robots.txt of %s can't be fetched (%s), so nothing is fetched there"
        logger.warning(message, netloc, reason, extra={"spider": self.crawler.spider})
        return _Rules(self._parsed(_NOTHING_ALLOWED), monotonic() + _RETRY_SECONDS, reason)

    def _parsed(self, body: bytes) -> RobotParser:
        parser: RobotParser = build_from_crawler(self._parserimpl, self.crawler, body)
        return parser


def _read(response: Response) -> bytes:
    """Return the text of a robots.txt.

    It is empty for a 404 and the like, whose body is an error page.
    """
    if response.status in _CLIENT_ERRORS:
        return b""
    return read_rules(response.body).encode()
