"""When two requests are for the same page. Which pages were asked for stands in Redis, see `exchange.lua`."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from scrapy_redis.dupefilter import RFPDupeFilter

from moviecrawler.urls import normalised

if TYPE_CHECKING:
    from scrapy import Request

FINGERPRINT_BYTES = 16
"""Two of 10 million pages share a fingerprint with a chance of 1 in 10²⁴."""


def fingerprint(request: Request) -> str:
    """Return 32 hex digits that are the same for all requests for a page."""
    return blake2b(
        normalised(request.url, request.meta.get("site")).encode(), digest_size=FINGERPRINT_BYTES
    ).hexdigest()


class SharedDupeFilter(RFPDupeFilter):  # type: ignore[misc]  # scrapy-redis has no types
    """scrapy-redis' dupefilter, of which `request_fingerprint` is kept as the place that says which pages are the same.

    Replaced is `request_seen`, which would remember a page before it is safely queued and take a round trip each, and all
    that deletes what is remembered.
    """

    def request_fingerprint(self, request: Request) -> str:
        """Return 32 hex digits that are the same for all requests for a page."""
        return fingerprint(request)

    def request_seen(self, request: Request) -> bool:
        """Refuse: whether a page is known is found out by the script that queues it."""
        raise NotImplementedError(f"{request} is compared with what is known when it is queued")

    def clear(self) -> None:
        """Refuse: it would be forgotten for all workers."""
        raise NotImplementedError("what is known is forgotten after FRONTIER_WINDOW; a new FRONTIER_RUN knows nothing")

    def close(self, reason: str = "") -> None:
        """Do nothing: other workers, and the next crawl, go by what is remembered."""
