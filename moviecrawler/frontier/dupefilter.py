"""The id of a request in the dedupe set. The set itself is in Redis; see `push.lua`."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from scrapy.utils.request import fingerprint
from scrapy_redis.dupefilter import RFPDupeFilter

if TYPE_CHECKING:
    from scrapy import Request

_DIGEST_BYTES = 10
"""The chance that two of 10 million pages share an id is 1 in 10¹⁰. Redis needs the same memory for 14 characters as for 9."""


class SharedDupeFilter(RFPDupeFilter):  # type: ignore[misc]  # scrapy-redis has no types
    """scrapy-redis' dupefilter with Scrapy's fingerprint. The script that queues a request looks it up."""

    def request_fingerprint(self, request: Request) -> str:
        """Return an id that is the same for all requests for a page: 14 letters, digits, dots and underscores."""
        return b64encode(fingerprint(request)[:_DIGEST_BYTES], b"._").decode().rstrip("=")
