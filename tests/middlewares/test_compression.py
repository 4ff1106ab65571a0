import gzip
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from moviecrawler.middlewares.compression import PAGE_MAX_BYTES, GzipMiddleware, gunzip

PAGE = b"<html>" + bytes(range(256)) * 4000 + b"</html>"
PACKED = gzip.compress(PAGE, mtime=0)
FLIPPED = PACKED[:-6] + bytes([PACKED[-6] ^ 1]) + PACKED[-5:]
"""A bit of its checksum is another one."""
URL = "https://example.com/"


@pytest.fixture
def middleware() -> GzipMiddleware:
    """Return the middleware that unpacks."""
    crawler = get_crawler(Spider, {"DOWNLOAD_MAXSIZE": 2_000_000, "RETRY_TIMES": 1})
    crawler.spider = Spider.from_crawler(crawler, name="test")
    return GzipMiddleware.from_crawler(crawler)


def received(body: bytes, encoding: str, status: int = 200, **headers: str) -> Response:
    sent = {"Content-Encoding": encoding, "Content-Type": "text/html", **headers}
    return Response(URL, status=status, headers=sent, body=body)


def read(middleware: GzipMiddleware, body: bytes, encoding: str = "gzip") -> Any:
    """Return the response with its body decompressed, or the request for another try."""
    return middleware.process_response(Request(URL), received(body, encoding))


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", PACKED), ("x-gzip", PACKED), ("gzip", PACKED + bytes(512)), ("identity", PAGE)],
    ids=["gzip", "x-gzip", "padded", "identity"],
)
def test_body_is_what_was_compressed(
    middleware: GzipMiddleware, encoding: str, body: bytes
) -> None:
    response = read(middleware, body, encoding)
    assert isinstance(response, HtmlResponse)
    assert response.body == PAGE
    assert "Content-Encoding" not in response.headers


@pytest.mark.parametrize(
    "response",
    [
        Response(URL, body=PAGE),
        *(received(b"", "gzip", status, Location="/a") for status in (300, 302, 399)),
    ],
)
def test_uncompressed_body_and_empty_redirect_are_left_alone(
    middleware: GzipMiddleware, response: Response
) -> None:
    assert middleware.process_response(Request(URL), response) is response


DAMAGED: dict[str, tuple[Any, bytes]] = {
    "nothing": ("gzip", b""),
    "without its last byte": ("gzip", PACKED[:-1]),
    "another checksum": ("gzip", FLIPPED),
    "not gzip": ("gzip", b"not gzip at all"),
    "two members": ("gzip", PACKED + PACKED),
    "members without content": ("gzip", gzip.compress(b"") * 1_000_000),
    "br": ("br", PACKED),
    "gzip twice": ("gzip, gzip", gzip.compress(PACKED)),
    "300 encodings": (", ".join(["gzip"] * 300), PACKED),
    "no encoding": (b"\xff", PACKED),
}


@pytest.mark.parametrize(("encoding", "body"), DAMAGED.values(), ids=DAMAGED)
def test_body_that_is_damaged_is_fetched_again_and_then_given_up(
    middleware: GzipMiddleware, encoding: Any, body: bytes
) -> None:
    again = read(middleware, body, encoding)
    assert isinstance(again, Request)
    with pytest.raises(IgnoreRequest, match="body is damaged"):
        middleware.process_response(again, received(body, encoding))


def test_another_encoding_is_named_as_far_as_it_is_read(middleware: GzipMiddleware) -> None:
    with pytest.raises(OSError, match=f"encoded as '{'x' * 50}', where"):
        middleware.decode(b"", b"x" * 51, 0)


@pytest.mark.promise("A damaged or hostile page costs bounded time and memory, and no other title.")
def test_bombs_are_refused_and_a_size_at_the_limit_is_taken(middleware: GzipMiddleware) -> None:
    with pytest.raises(IgnoreRequest, match="DOWNLOAD_MAXSIZE"):
        read(middleware, gzip.compress(bytes(20_000_000)))
    assert read(middleware, gzip.compress(bytes(2_000_000))).body == bytes(2_000_000)
    assert gunzip(gzip.compress(bytes(1000)), 1000) == bytes(1000)
    with pytest.raises(ValueError, match="1000"):
        gunzip(gzip.compress(bytes(1000)), 999)


@pytest.mark.parametrize("status", [202, 204, 299, 400, 403, 404, 429, 503])
@pytest.mark.parametrize(
    "body", [b"not gzip at all", gzip.compress(bytes(50_000_000), 1)], ids=["no gzip", "bomb"]
)
def test_refusal_whose_body_is_damaged_is_a_refusal(
    middleware: GzipMiddleware, status: int, body: bytes
) -> None:
    told = received(body, "gzip", status, **{"x-amzn-waf-action": "challenge"})
    response = middleware.process_response(Request(URL), told)
    assert isinstance(response, Response)
    assert (response.status, response.body) == (status, b"")
    assert "Content-Encoding" not in response.headers
    assert response.headers["x-amzn-waf-action"] == b"challenge"


@pytest.mark.parametrize(
    ("expects", "limit"), [("page", PAGE_MAX_BYTES), ("json", PAGE_MAX_BYTES), ("other", None)]
)
def test_a_page_is_limited_and_asked_for_as_gzip(
    middleware: GzipMiddleware, expects: str, limit: int | None
) -> None:
    request = Request(URL, meta={"expects": expects})
    middleware.process_request(request)
    assert request.meta.get("download_maxsize") == limit
    assert request.headers["Accept-Encoding"] == b"gzip"
