"""Decompressing responses in one step."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import brotli
from isal import isal_zlib
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils._compression import (  # type: ignore[attr-defined]  # zstd stands elsewhere from Python 3.14 on
    _DecompressionMaxSizeExceeded,
    zstd,
)

from moviecrawler.meta import PROXY_META

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

_GZIP = 31  # zlib's window size with a gzip header and trailer expected
_GZIP_MAGIC = b"\x1f\x8b"
_RAW = -15  # zlib's window size with nothing around it
_READ_BYTES = 128 * 1024
"""Of a body of members that are read at a time. With more, the decompressor's buffer grows beyond what memory keeps at hand: a page took 1.5 times
as long when read at once."""
_MADE_BYTES = 1024 * 1024
"""Of a br body's contents that are made at a time."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}
"""8 MB, as RFC 9659 has it: a frame of a few bytes could ask for 2 GB."""
_MAX_MEMBERS = 1000
"""Members of one gzip body, or frames of one zstd body. Servers send one, `bgzip` one for each 64 KB."""
_MAX_ENCODINGS = 2
"""Encodings of one body. Each can make a thousand bytes of one."""
_MEMORY_PER_PAGE = 16
"""The memory that the process may have is at least so many times the largest page: a page's tree is several times its size."""

_REDIRECTS = range(300, 400)
_WITH_CONTENT = frozenset({200, 206})
"""Statuses of answers whose body matters; of others, status and headers say it all."""
_DECODING_ERRORS: Any = (
    *(isal_zlib.error, zlib.error, brotli.error, zstd.ZstdError, OSError),
    UnicodeDecodeError,  # of the name of an encoding
    IgnoreRequest,
)
"""What is raised for a body that is not in its Content-Encoding, the last for one that is too large."""
DAMAGED = "damaged"
"""The flag of a response whose body can't be decompressed, on sites that rotate, where it may be the proxy's fault."""

_wires: WeakKeyDictionary[Response, tuple[int, bytes | None, bytes]] = WeakKeyDictionary()
"""Of a response that was decompressed, how many bytes were sent; these, while pages are archived; and their encoding."""


def wire_body(response: Response) -> tuple[bytes, bytes | None]:
    """Return the body as it was sent, and its Content-Encoding, None when it was not compressed.

    A compressed body is only kept while pages are archived; otherwise the decompressed one is returned.
    """
    _, body, encoding = _wires.get(response, (0, None, b""))
    return (response.body, None) if body is None else (body, encoding)


def wire_size(response: Response) -> int:
    """Return how many bytes the body had as it was sent."""
    return _wires[response][0] if response in _wires else len(response.body)


class FastCompressionMiddleware(HttpCompressionMiddleware):
    """Scrapy's middleware, with gzip bodies decompressed by ISA-L, and bodies refused that are cut or too large.

    Scrapy decompresses in small steps through a buffer, which is a third of the cost of a 1.8 MB page, and takes what it
    could read of a damaged body for the whole of it.

    A page has up to PAGE_MAXSIZE bytes, sent or decompressed, and up to a sixteenth of MEMUSAGE_LIMIT_MB. Sitemaps and
    datasets, whose requests expect something `other`, have up to DOWNLOAD_MAXSIZE.
    """

    crawler: Crawler
    keeps_wire_bodies: bool
    largest_page: int

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read PAGE_MAXSIZE, MEMUSAGE_LIMIT_MB, and S3_BUCKET: pages are archived as they were sent.

        The crawler is needed to make retries.
        """
        middleware = super().from_crawler(crawler)
        middleware.crawler = crawler
        middleware.keeps_wire_bodies = bool(crawler.settings.get("S3_BUCKET"))
        sizes = [crawler.settings.getint("DOWNLOAD_MAXSIZE"), crawler.settings.getint("PAGE_MAXSIZE")]
        sizes.append(crawler.settings.getint("MEMUSAGE_LIMIT_MB") * 1024 * 1024 // _MEMORY_PER_PAGE)
        middleware.largest_page = min((size for size in sizes if size), default=0)
        return middleware

    def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Limit the size of what is downloaded, and say which encodings are read."""
        self._limit(request)
        super().process_request(request)

    def _limit(self, request: Request) -> None:
        if request.meta.get("expects") != "other":
            request.meta["download_maxsize"] = self.largest_page

    # Scrapy passes `spider` only to a method that still asks for it.
    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Return the response with its body decompressed, or the request again when the body is damaged.

        Raises IgnoreRequest when it is damaged and the retries are used up, or when it is too large. Where the site rotates,
        ProxyMiddleware decides, by the flag DAMAGED. An answer that is a refusal or an error by its status stays one, with an
        empty body when that is damaged.
        """
        if response.status in _REDIRECTS:
            return response  # nobody reads its body, and some are empty and say gzip all the same
        self._limit(request)
        encodings = response.headers.getlist("Content-Encoding")
        try:
            result = super().process_response(request, response)
        except _DECODING_ERRORS as error:
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
            kept = response.body if self.keeps_wire_bodies else None
            _wires[result] = len(response.body), kept, b", ".join(encodings)
        return result

    def _handle_encoding(self, body: bytes, content_encoding: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        """Return the body decompressed, and the encodings that are not known. All that is made of it has one limit."""
        to_decode, to_keep = self._split_encodings(content_encoding)
        if len(to_decode) > _MAX_ENCODINGS:
            raise OSError(f"it has {len(to_decode)} encodings, of which {_MAX_ENCODINGS} are read")
        left = max_size
        for encoding in to_decode:
            body = self._decode(body, encoding, left)
            left = max(left - len(body), 1) if max_size else 0
        return body, to_keep

    @staticmethod
    def _decode(body: bytes, encoding: bytes, max_size: int) -> bytes:
        return _DECODERS[encoding](body, max_size)


def gunzip(body: bytes, max_size: int) -> bytes:
    """Return the contents of a gzip body of one or more members, up to `max_size` bytes (0: no limit).

    Raises OSError when it is empty or ends early, and isal_zlib.error when it is not gzip or is damaged.
    """
    return _members(body, max_size, "gzip", _GZIP_MAGIC, lambda: isal_zlib.decompressobj(_GZIP), unlimited=0)


def _members(body: bytes, max_size: int, name: str, magic: bytes, begin: Callable[[], Any], *, unlimited: int) -> bytes:
    """Return the contents of the members, or frames, of which each begins with `magic`; `unlimited` is no limit of theirs.

    A member returns a copy of the bytes that were not its own: so it is given few at a time.
    """
    whole = memoryview(body)
    parts: list[bytes] = []
    size = at = members = 0
    # Bytes after the last member that don't begin another are padding, as gzip itself takes them.
    while not members or body.startswith(magic, at):
        members += 1
        if members > _MAX_MEMBERS:
            raise OSError(f"the {name} body has more than {_MAX_MEMBERS} members")
        member = begin()
        while not member.eof:
            step = whole[at : at + _READ_BYTES]
            if not step:
                raise OSError(f"the {name} body ends early")
            part = member.decompress(step, max_size + 1 - size if max_size else unlimited)
            at += len(step)
            size += len(part)
            if max_size and size > max_size:
                raise _DecompressionMaxSizeExceeded(size, max_size)
            parts.append(part)
        at -= len(member.unused_data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflate(body: bytes, max_size: int) -> bytes:
    """Return the contents of a deflate body, with zlib's header or, as some servers send it, without. Raises as `gunzip`."""
    limit = max_size + 1 if max_size else 0
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(body, limit)
    except zlib.error:
        stream = zlib.decompressobj(_RAW)
        content = stream.decompress(body, limit)
    if max_size and len(content) > max_size:
        raise _DecompressionMaxSizeExceeded(len(content), max_size)
    if not stream.eof:
        raise OSError("the deflate body ends early")
    return content


def _unbrotli(body: bytes, max_size: int) -> bytes:
    """Return the contents of a br body. Raises brotli.error, and otherwise as `gunzip`."""
    stream = brotli.Decompressor()
    parts = [stream.process(body, output_buffer_limit=_MADE_BYTES)]
    size = len(parts[0])
    while not stream.is_finished():
        parts.append(stream.process(b"", output_buffer_limit=_MADE_BYTES))
        if not parts[-1]:
            raise OSError("the br body ends early")
        size += len(parts[-1])
        if max_size and size > max_size:
            break
    if max_size and size > max_size:
        raise _DecompressionMaxSizeExceeded(size, max_size)
    return b"".join(parts)


def _unzstd(body: bytes, max_size: int) -> bytes:
    """Return the contents of a zstd body of one or more frames. Raises ZstdError, and otherwise as `gunzip`."""
    return _members(body, max_size, "zstd", _ZSTD_MAGIC, _zstd_frame, unlimited=-1)


def _zstd_frame() -> Any:
    return zstd.ZstdDecompressor(options=_ZSTD_WINDOW)


_DECODERS = {b"gzip": gunzip, b"x-gzip": gunzip, b"deflate": _inflate, b"br": _unbrotli, b"zstd": _unzstd}
