"""Stops a site that refuses us: it gets no more requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from functools import cached_property, partial
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.httpobj import urlparse_cached

from moviecrawler.clock import utc_now
from moviecrawler.extract.blocks import block_sign, classify
from moviecrawler.frontier.budget_middleware import budget_middleware_of
from moviecrawler.middlewares.kept_pages import folder_of, keep_page
from moviecrawler.middlewares.retry import wait_before
from moviecrawler.signals import site_refused

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.extract.blocks import Refusal
    from moviecrawler.frontier.budget_middleware import BudgetMiddleware

logger = logging.getLogger(__name__)

DIRECT = "direct"
"""The name of the pool that is always there: this machine's own address."""
PROXY_META = "proxy_name"
"""Key in the `meta` of a request for the proxy that it was last sent through, on sites with
proxies."""
POOL_META = "pool"
"""Key in the `meta` of a request for the name of that proxy's pool. Without it, the request is sent
directly."""
ROBOTS_OF = "robots_of"
"""Key in the `meta` of a request for a robots.txt, for the site of the request that waits for
it."""
_OK = 200
_FORBIDDEN = 403
_MAX_UNEXPECTED = 3
"""Unexpected pages in a row that stop a site."""


class SiteStopped(IgnoreRequest):
    """The site has refused us: this request was not sent, or its answer is the refusal itself."""


class SiteBlockMiddleware:
    """Recognises refusals.

    After the first one no request to that site is sent for the rest of the run. A page that is too
    small or of the wrong kind is unexpected, and is fetched again a little later; three such pages
    in a row are a refusal too. A request has `meta["expects"]` ("page", "json" or "other") and
    `meta["site"]`, by default its host.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.kept_pages = folder_of(crawler.settings)
        # By site, the URLs of unexpected pages since the last proper page.
        self.unexpected: defaultdict[str, set[str]] = defaultdict(set)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read DATA_DIR."""
        return cls(crawler)

    @cached_property
    def budgets(self) -> BudgetMiddleware:
        """What knows which sites have refused us, or any worker where there is a Redis."""
        return budget_middleware_of(self.crawler)

    def process_request(self, request: Request) -> None:
        """Raise SiteStopped when the request's site has refused us."""
        reason = self.budgets.refusal(_site(request))
        if reason is not None:
            self.crawler.stats.inc_value("blocks/not_sent")
            raise SiteStopped(reason)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return the response, or the request again after an unexpected page.

        Raises SiteStopped for a refusal. On sites with proxies ProxyMiddleware has done this
        already.
        """
        if PROXY_META in request.meta:
            return response
        site = _site(request)
        refusal = refusal_of(request, response)
        if refusal is None or _is_missing_robots_txt(request, response):
            # A 404 or a robots.txt does not show that the site sends proper pages.
            if response.status == _OK and ROBOTS_OF not in request.meta:
                self.answered(site)
            return response
        self.crawler.stats.inc_value(f"blocks/{site}/{refusal.kind}")
        if refusal.kind == "throttle" and not self.is_unexpected_again(site, response.url):
            await self.keep_page(site, refusal, DIRECT, response)
            return await self._retry(request, refusal)
        reason = self.stop(site, request, refusal.reason, refusal.pause_seconds)
        await self.keep_page(site, refusal, DIRECT, response)
        raise SiteStopped(reason)

    async def keep_page(self, site: str, refusal: Refusal, via: str, response: Response) -> None:
        """Write a refusal to disk, so that somebody can look at it."""
        keep = partial(keep_page, why=refusal.reason, via=via)
        await asyncio.to_thread(keep, self.kept_pages, site, refusal.kind, response, utc_now())

    def answered(self, site: str) -> None:
        """Note a proper page, which ends the count of unexpected ones."""
        self.unexpected.pop(site, None)
        self.budgets.answered(site)

    def is_unexpected_again(self, site: str, url: str) -> bool:
        """Count an unexpected page; return whether so many in a row are a refusal."""
        self.unexpected[site].add(url)
        return len(self.unexpected[site]) >= _MAX_UNEXPECTED

    async def _retry(self, request: Request, refusal: Refusal) -> Request:
        assert self.crawler.spider is not None  # noqa: S101 - set before the first request
        # The reason names a stat, so it has to be the same for all pages.
        retry = get_retry_request(request, spider=self.crawler.spider, reason="unexpected page")
        if retry is None:
            raise IgnoreRequest(f"unexpected page: {refusal.reason}")
        await wait_before(retry, self.crawler.settings)
        return retry

    def stop(self, site: str, request: Request, why: str, pause: float) -> str:
        """Stop a site for `pause` seconds; return the reason that its requests are refused with."""
        reason = self.budgets.refusal(site)
        if reason is None:
            reason = f"{site} refused us ({why}); ask again in {pause / 3600:.3g} h at the earliest"
            self.budgets.refused(site, reason, pause)
            self.crawler.signals.send_catch_log(site_refused, site=site, reason=reason, pause=pause)
            self.crawler.stats.set_value(f"blocks/{site}/stopped", reason)
            logger.error("%s: %s", request.url, reason, extra={"spider": self.crawler.spider})
        return reason


def refusal_of(request: Request, response: Response) -> Refusal | None:
    """Return the kind of a refusal and how long to pause; None for a proper answer."""
    headers = {
        name.decode("latin-1").lower(): values[0].decode("latin-1")
        # Scrapy's `items` copies each name and value.
        for name, values in dict.items(response.headers)
        if values
    }
    expects = request.meta.get("expects", "other")
    return classify(response.status, headers, response.body, expects=expects, now=time.time())


def _site(request: Request) -> str:
    return (
        request.meta.get("site") or request.meta.get(ROBOTS_OF) or urlparse_cached(request).netloc
    )


def _is_missing_robots_txt(request: Request, response: Response) -> bool:
    """Return whether the host of IMDb's datasets has no robots.txt.

    A bucket answers 403 for a missing file.
    """
    is_forbidden = request.meta.get(ROBOTS_OF) == "imdb-datasets" and response.status == _FORBIDDEN
    return is_forbidden and block_sign(response.body) is None
