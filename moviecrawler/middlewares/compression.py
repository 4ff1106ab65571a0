"""Decompressing responses in one step, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from isal import isal_zlib
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from moviecrawler.politeness.meta import DAMAGED, PROXY_META
from moviecrawler.scrapy_internals import DecodingMiddleware, too_large

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

PAGE_MAX_BYTES = 16 * 1024 * 1024
"""Bytes of a page, compressed and decompressed, at most; the largest seen has 3.4 MB."""
# 31: zlib expects a gzip header and trailer
_GZIP_WINDOW = 31
_GZIP_MAGIC = b"\x1f\x8b"
_NO_LIMIT = 2**40
_REDIRECTS = range(300, 400)
_WITH_CONTENT = frozenset({200, 206})
"""Statuses of responses whose body is used; of others, status and headers are enough."""


class _Sent(NamedTuple):
    """The body of a response as it was sent."""

    size: int
    body: bytes | None
    """None without S3_BUCKET."""


_sent: WeakKeyDictionary[Response, _Sent] = WeakKeyDictionary()
"""What was sent of each decompressed response."""


def sent_body(response: Response) -> tuple[bytes, bytes | None]:
    """Return the body and its Content-Encoding as they were sent.

    Without S3_BUCKET, these are the decompressed body and None.
    """
    sent = _sent.get(response)
    if sent is None or sent.body is None:
        return response.body, None
    return sent.body, b"gzip"


def sent_size(response: Response) -> int:
    """Return the size of the body as it was sent."""
    return _sent[response].size if response in _sent else len(response.body)


class GzipMiddleware(DecodingMiddleware):
    """Scrapy's middleware for gzip only, with the faster ISA-L.

    It refuses bodies that are cut or too large. Scrapy accepts the readable part of a damaged body
    as the whole. Sitemaps and datasets, whose requests expect something `other`, may be larger than
    a page.
    """

    crawler: Crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Keep the crawler, for retries."""
        middleware = super().from_crawler(crawler)
        middleware.crawler = crawler
        return middleware

    def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Limit the size of what is downloaded, and request gzip."""
        if request.meta.get("expects") != "other":
            request.meta["download_maxsize"] = PAGE_MAX_BYTES
        request.headers.setdefault("Accept-Encoding", "gzip")

    # Scrapy passes `spider` only to a method that still has that parameter.
    def process_response(  # type: ignore[override]
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return the response with its body decompressed.

        When the body is damaged, returns the request again. Raises IgnoreRequest when the body is
        too large, or when no retry is left. With proxies a damaged response gets the flag DAMAGED,
        for ProxyMiddleware. With another status than 200 and 206, it gets an empty body.
        """
        if response.status in _REDIRECTS:
            return response  # its body is not used, and may be empty despite Content-Encoding
        try:
            result = super().process_response(request, response)
        # ISA-L's stub takes its error for an instance. IgnoreRequest: the body is too large.
        except (isal_zlib.error, OSError, IgnoreRequest) as error:  # type: ignore[misc]
            if response.status not in _WITH_CONTENT:
                emptied = response.replace(body=b"")
                del emptied.headers["Content-Encoding"]
                return emptied
            if PROXY_META in request.meta:
                return response.replace(flags=[*response.flags, DAMAGED])
            if isinstance(error, IgnoreRequest):
                raise
            assert self.crawler.spider is not None  # noqa: S101 - set before the first request
            retry = get_retry_request(request, spider=self.crawler.spider, reason="damaged body")
            if retry is None:
                raise IgnoreRequest(f"{response.url}: its body is damaged: {error}") from error
            return retry
        if isinstance(result, Response) and result is not response:
            body = response.body if self.crawler.settings.get("S3_BUCKET") else None
            _sent[result] = _Sent(len(response.body), body)
        return result

    def decode(self, body: bytes, encoding: bytes, max_size: int) -> bytes:
        """Return a body decompressed. Raises OSError for another encoding than gzip."""
        if encoding == b"identity":
            return body
        if encoding not in {b"gzip", b"x-gzip"}:
            raise OSError(
                f"it is encoded as {encoding[:50].decode('latin-1')!r}, where gzip was requested"
            )
        return gunzip(body, max_size or _NO_LIMIT)


def gunzip(body: bytes, max_size: int) -> bytes:
    """Return the contents of a gzip body of one member, up to `max_size` bytes.

    Raises OSError when it ends early, isal_zlib.error when it is damaged, and Scrapy's own error
    when it is too large.
    """
    member = isal_zlib.decompressobj(_GZIP_WINDOW)
    contents = member.decompress(body, max_size + 1)
    if len(contents) > max_size:
        raise too_large(len(contents), max_size)
    if not member.eof:
        raise OSError("the gzip body ends early")
    if member.unused_data.startswith(_GZIP_MAGIC):
        raise OSError("the gzip body has more than one member")
    return contents
