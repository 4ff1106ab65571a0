"""A block is a stop signal: the site that refuses us is asked nothing more."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.httpobj import urlparse_cached

from moviecrawler.extract.blocks import classify
from moviecrawler.middlewares.retry import Backoff

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.extract.blocks import Refusal

logger = logging.getLogger(__name__)


class SiteStopped(IgnoreRequest):
    """The site has refused us, so this request was not sent, or its answer is the refusal itself."""


class SiteBlockMiddleware:
    """Recognises refusals, and from the first on lets no request to that site through for the rest of the run.

    A page that is too small or of the wrong kind is unexpected, and fetched again a little later; BLOCK_AFTER_UNEXPECTED
    such pages in a row are a refusal too. Requests say what they expect in `meta["expects"]` ("page", "json" or "other") and
    which site they belong to in `meta["site"]`; without one, a request belongs to its host.
    """

    def __init__(self, crawler: Crawler, most_unexpected: int, backoff: Backoff) -> None:
        self.crawler = crawler
        self.backoff = backoff
        self.most_unexpected = most_unexpected
        self.stopped: dict[str, str] = {}
        self.unexpected: defaultdict[str, set[str]] = defaultdict(set)  # URLs since the last page as it should be

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read BLOCK_AFTER_UNEXPECTED, and what `Backoff` reads."""
        return cls(crawler, crawler.settings.getint("BLOCK_AFTER_UNEXPECTED"), Backoff.from_settings(crawler.settings))

    def process_request(self, request: Request) -> None:
        """Raise SiteStopped when the request's site has refused us."""
        reason = self.stopped.get(_site(request))
        if reason is not None:
            self.crawler.stats.inc_value("blocks/not_sent")
            raise SiteStopped(reason)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return the response when it is no refusal, or the request again when it is an unexpected page.

        Raises SiteStopped when it is a refusal.
        """
        site = _site(request)
        refusal = classify(
            response.status,
            {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in _first_values(response)},
            response.body,
            expects=request.meta.get("expects", "other"),
            now=time.time(),
        )
        if refusal is None:
            # A missing page says nothing of whether the site's pages are as they should be.
            if response.status == 200:  # noqa: PLR2004 - HTTP's own number
                self.unexpected.pop(site, None)
            return response
        self.crawler.stats.inc_value(f"blocks/{site}/{refusal.kind}")
        if refusal.kind == "throttle":
            self.unexpected[site].add(response.url)
            if len(self.unexpected[site]) < self.most_unexpected:
                return await self._again(request, refusal)
        self._stop(site, request, refusal)
        raise SiteStopped(self.stopped[site])

    async def _again(self, request: Request, refusal: Refusal) -> Request:
        assert self.crawler.spider is not None  # noqa: S101 - set before the first request
        retry = get_retry_request(request, spider=self.crawler.spider, reason=f"unexpected page: {refusal.reason}")
        if retry is None:
            raise IgnoreRequest(f"unexpected page: {refusal.reason}")
        await self.backoff.wait(retry)
        return retry

    def _stop(self, site: str, request: Request, refusal: Refusal) -> None:
        if site not in self.stopped:
            hours = refusal.pause_seconds / 3600
            self.stopped[site] = f"{site} refused us ({refusal.reason}); ask again in {hours:.0f} h at the earliest"
            self.crawler.stats.set_value(f"blocks/{site}/stopped", self.stopped[site])
            logger.error("%s: %s", request.url, self.stopped[site], extra={"spider": self.crawler.spider})


def _site(request: Request) -> str:
    return request.meta.get("site") or urlparse_cached(request).netloc


def _first_values(response: Response) -> list[tuple[bytes, bytes]]:
    return [(name, values[0]) for name, values in response.headers.items() if values]
