"""When two requests are for the same page. Which pages a run has asked for stands in Redis, see `push.lua`."""

from __future__ import annotations

from base64 import b64encode
from hashlib import blake2b
from typing import TYPE_CHECKING

from scrapy_redis.dupefilter import RFPDupeFilter

from moviecrawler.urls import normalised

if TYPE_CHECKING:
    from scrapy import Request

_DIGEST_BYTES = 10
"""Two of 10 million pages share an id with a chance of 1 in 10¹⁰. Redis takes no more memory for its 14 characters than for 9."""


def fingerprint(request: Request) -> str:
    """Return an id that is the same for all requests for a page: 14 letters, digits, dots and underscores."""
    url = normalised(request.url, request.meta.get("site")).encode()
    return b64encode(blake2b(url, digest_size=_DIGEST_BYTES).digest(), b"._").decode().rstrip("=")


class SharedDupeFilter(RFPDupeFilter):  # type: ignore[misc]  # scrapy-redis has no types
    """scrapy-redis' dupefilter, whose fingerprint is that of the page, and whose comparison the script makes that queues a request."""

    def request_fingerprint(self, request: Request) -> str:
        """Return the id of a page."""
        return fingerprint(request)
