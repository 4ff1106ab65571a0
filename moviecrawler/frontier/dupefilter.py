"""When two requests are for the same page. Which pages a run has asked for stands in Redis, see `push.lua`."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from scrapy.utils.request import fingerprint
from scrapy_redis.dupefilter import RFPDupeFilter

if TYPE_CHECKING:
    from scrapy import Request

_DIGEST_BYTES = 10
"""Two of 10 million pages share an id with a chance of 1 in 10¹⁰. Redis takes no more memory for its 14 characters than for 9."""


class SharedDupeFilter(RFPDupeFilter):  # type: ignore[misc]  # scrapy-redis has no types
    """scrapy-redis' dupefilter, with Scrapy's fingerprint, and the comparison in the script that queues a request."""

    def request_fingerprint(self, request: Request) -> str:
        """Return an id that is the same for all requests for a page: 14 letters, digits, dots and underscores."""
        return b64encode(fingerprint(request)[:_DIGEST_BYTES], b"._").decode().rstrip("=")
