from __future__ import annotations

import functools
import gzip
import zlib
from typing import Any

import brotli
import pytest
from backports import zstd
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

import moviecrawler.settings
from moviecrawler.middlewares.compression import FastCompressionMiddleware, gunzip
from tests.extract.limits import processor_time

PAGE = b"<html>" + bytes(range(256)) * 4000 + b"</html>"
COMPRESS: dict[str, Any] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": functools.partial(brotli.compress, quality=4),
    "zstd": zstd.compress,
}
FLIPPED = gzip.compress(PAGE)[:-6] + bytes([gzip.compress(PAGE)[-6] ^ 1]) + gzip.compress(PAGE)[-5:]
"""A bit of its checksum is another one."""
COMPRESSED = {name: compress(PAGE) for name, compress in COMPRESS.items()}


@pytest.fixture
def middleware() -> FastCompressionMiddleware:
    crawler = get_crawler(Spider, {"DOWNLOAD_MAXSIZE": 2_000_000, "RETRY_TIMES": 1})
    crawler.spider = Spider.from_crawler(crawler, name="test")
    return FastCompressionMiddleware.from_crawler(crawler)


def received(body: bytes, encoding: str, **headers: str) -> Response:
    return Response(
        "https://example.com/",
        headers={"Content-Encoding": encoding, "Content-Type": "text/html", **headers},
        body=body,
    )


def read(middleware: FastCompressionMiddleware, body: bytes, encoding: str) -> Any:
    """Return the response with its body decompressed, or the request for another try."""
    return middleware.process_response(Request("https://example.com/"), received(body, encoding))


def raw_deflate(body: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(body) + compressor.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(PAGE)),
        ("x-gzip", gzip.compress(PAGE)),
        ("gzip", gzip.compress(PAGE[:999]) + gzip.compress(PAGE[999:])),
        ("gzip", gzip.compress(PAGE) + b"\0" * 512),
        ("deflate", zlib.compress(PAGE)),
        ("deflate", raw_deflate(PAGE)),
        ("br", brotli.compress(PAGE)),
        ("zstd", zstd.compress(PAGE)),
        ("zstd", zstd.compress(PAGE[:999]) + zstd.compress(PAGE[999:])),
        ("gzip, br", brotli.compress(gzip.compress(PAGE))),
    ],
)
def test_body_is_what_was_compressed(middleware: FastCompressionMiddleware, encoding: str, body: bytes) -> None:
    response = read(middleware, body, encoding)
    assert isinstance(response, HtmlResponse)
    assert response.body == PAGE
    assert "Content-Encoding" not in response.headers


def test_uncompressed_body_is_left_alone(middleware: FastCompressionMiddleware) -> None:
    response = Response("https://example.com/", body=PAGE)
    assert middleware.process_response(Request("https://example.com/"), response) is response


def test_size_exactly_at_the_limit_is_taken() -> None:
    body = gzip.compress(bytes(1000))
    assert gunzip(body, 1000) == bytes(1000)
    with pytest.raises(ValueError, match="1000"):
        gunzip(body, 999)


def test_redirect_that_says_gzip_and_is_empty_is_followed(middleware: FastCompressionMiddleware) -> None:
    redirect = Response("https://example.com/", status=302, headers={"Content-Encoding": "gzip", "Location": "/a"})
    assert middleware.process_response(Request("https://example.com/"), redirect) is redirect


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        *(pytest.param(name, body[:-1], id=f"{name}, its last byte") for name, body in COMPRESSED.items()),
        *(pytest.param(name, body[:99], id=f"{name}, most of it") for name, body in COMPRESSED.items()),
        *(("gzip", body) for body in (b"", b"\x1f\x8b", FLIPPED, b"not gzip at all", bytes(1000))),
        ("deflate", b"\xff no deflate"),
        ("br", b"not brotli at all"),
        ("zstd", b"not zstd"),
        pytest.param(b"\xff", PAGE, id="an encoding that can't be read"),
    ],
)
def test_body_that_is_damaged_is_fetched_again_and_then_given_up(
    middleware: FastCompressionMiddleware, encoding: Any, body: bytes
) -> None:
    again = read(middleware, body, encoding)
    assert isinstance(again, Request)
    with pytest.raises(IgnoreRequest, match="body is damaged"):
        middleware.process_response(again, received(body, encoding))


@pytest.mark.parametrize("encoding", COMPRESS)
def test_bombs_of_all_encodings_are_refused(middleware: FastCompressionMiddleware, encoding: str) -> None:
    compress = COMPRESS[encoding]
    with pytest.raises(IgnoreRequest, match="DOWNLOAD_MAXSIZE"):
        read(middleware, compress(bytes(20_000_000)), encoding)
    body = compress(bytes(2_000_000))
    taken = read(middleware, body, encoding)
    assert isinstance(taken, Response)
    assert taken.body == bytes(2_000_000)


@pytest.mark.parametrize("status", [202, 204, 403, 404, 429, 503])
@pytest.mark.parametrize(
    "body", [b"", b"not gzip at all", gzip.compress(bytes(50_000_000))], ids=["", "no gzip", "bomb"]
)
def test_refusal_whose_body_is_damaged_is_a_refusal(
    middleware: FastCompressionMiddleware, status: int, body: bytes
) -> None:
    headers = {"Content-Encoding": "gzip", "x-amzn-waf-action": "challenge"}
    told = Response("https://example.com/", status=status, headers=headers, body=body)
    response = middleware.process_response(Request("https://example.com/"), told)
    assert isinstance(response, Response)
    assert (response.status, response.body) == (status, b"")
    assert "Content-Encoding" not in response.headers
    assert response.headers["x-amzn-waf-action"] == b"challenge"


NO_CONTENT = {"gzip": gzip.compress(b"", mtime=0), "zstd": zstd.compress(b"")}


@pytest.mark.parametrize("encoding", NO_CONTENT)
@pytest.mark.parametrize("size", [1_000_000, 64_000_000])
def test_members_without_content_are_given_up_in_linear_time(
    middleware: FastCompressionMiddleware, encoding: str, size: int
) -> None:
    body = NO_CONTENT[encoding] * (size // len(NO_CONTENT[encoding]))
    with processor_time():
        again = read(middleware, body, encoding)
    assert isinstance(again, Request)


@pytest.mark.parametrize("encoding", NO_CONTENT)
def test_large_body_of_as_many_members_as_there_may_be_is_read_in_linear_time(
    middleware: FastCompressionMiddleware, encoding: str
) -> None:
    member = gzip.compress(PAGE[:1000]) if encoding == "gzip" else zstd.compress(PAGE[:1000])
    many = NO_CONTENT[encoding] * 999 + member
    with processor_time():
        response = read(middleware, many, encoding)
    assert isinstance(response, Response)
    assert response.body == PAGE[:1000]


@pytest.mark.parametrize(("encodings", "is_read"), [(1, True), (2, True), (3, False), (300, False)])
def test_body_has_up_to_two_encodings(middleware: FastCompressionMiddleware, encodings: int, is_read: bool) -> None:
    body = PAGE
    for _ in range(encodings):
        body = gzip.compress(body, compresslevel=1)
    assert isinstance(read(middleware, body, ", ".join(["gzip"] * encodings)), Response) == is_read


@pytest.mark.parametrize(("outer", "inner"), [("gzip", "gzip"), ("zstd", "gzip"), ("br", "deflate")])
def test_all_that_is_made_of_a_body_has_one_limit(
    middleware: FastCompressionMiddleware, outer: str, inner: str
) -> None:
    # What is inside of the outer encoding stays below the limit of 2,000,000, and so does what is inside of that.
    inside = COMPRESS[inner](PAGE) + bytes(1_100_000)
    body = COMPRESS[outer](inside)
    with pytest.raises(IgnoreRequest, match="DOWNLOAD_MAXSIZE"):
        read(middleware, body, f"{inner}, {outer}")


def test_zstd_frame_that_asks_for_more_than_8_mb_of_memory_is_refused(middleware: FastCompressionMiddleware) -> None:
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.content_size_flag: 0}
    stream = zstd.ZstdCompressor(options=options)  # type: ignore[arg-type]
    body = stream.compress(PAGE) + stream.flush()
    assert isinstance(read(middleware, body, "zstd"), Request)


@pytest.mark.parametrize(
    ("settings", "expects", "limit"),
    [
        ({}, "page", 16 * 2**20),
        ({}, "json", 16 * 2**20),
        ({}, None, 16 * 2**20),
        ({"PAGE_MAXSIZE": 5000}, "page", 5000),
        ({"MEMUSAGE_LIMIT_MB": 64}, "page", 4 * 2**20),
        ({"MEMUSAGE_LIMIT_MB": 1000}, "page", 16 * 2**20),
        ({"MEMUSAGE_LIMIT_MB": 64}, "other", None),
    ],
)
def test_page_is_limited_by_its_own_setting_and_by_the_memory(
    settings: dict[str, int], expects: str | None, limit: int | None
) -> None:
    own = {name: value for name, value in vars(moviecrawler.settings).items() if name.isupper()}
    limited = FastCompressionMiddleware.from_crawler(get_crawler(Spider, {**own, **settings}))
    request = Request("https://example.com/", meta={"expects": expects} if expects else {})
    limited.process_request(request)
    assert request.meta.get("download_maxsize") == limit
    assert b"zstd" in (request.headers["Accept-Encoding"] or b"")
