from __future__ import annotations

import asyncio

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler.middlewares.retry import Backoff, BackoffRetryMiddleware


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("moviecrawler.middlewares.retry.asyncio.sleep", sleep)
    return waited


@pytest.fixture
def middleware() -> BackoffRetryMiddleware:
    crawler = get_crawler(
        Spider, {"RETRY_TIMES": 3, "RETRY_BACKOFF": 2.0, "RETRY_BACKOFF_MAX": 60.0, "RETRY_HTTP_CODES": [500, 503]}
    )
    crawler.spider = Spider.from_crawler(crawler, name="test")
    return BackoffRetryMiddleware.from_crawler(crawler)


def test_waits_double_and_then_it_gives_up(middleware: BackoffRetryMiddleware, waits: list[float]) -> None:
    async def run() -> Request | Response:
        request, response = Request("https://example.com/"), Response("https://example.com/", status=503)
        result: Request | Response = request
        while isinstance(result, Request):
            result = await middleware.process_response(result, response)
        return result

    assert isinstance(asyncio.run(run()), Response)
    assert len(waits) == 3
    for waited, full in zip(waits, (2, 4, 8), strict=True):
        assert full / 2 <= waited <= full


def test_transient_exception_is_retried(middleware: BackoffRetryMiddleware, waits: list[float]) -> None:
    request = Request("https://example.com/")
    result = asyncio.run(middleware.process_exception(request, DownloadTimeoutError("slow")))
    assert isinstance(result, Request)
    assert len(waits) == 1


@pytest.mark.parametrize("status", [200, 403, 404, 429])
def test_what_does_not_pass_by_itself_is_not_retried(
    middleware: BackoffRetryMiddleware, waits: list[float], status: int
) -> None:
    response = Response("https://example.com/", status=status)
    assert asyncio.run(middleware.process_response(Request("https://example.com/"), response)) is response
    assert not waits


def test_wait_is_bounded() -> None:
    backoff = Backoff(first=2.0, longest=60.0)
    for retry in range(1, 2000):
        assert 0 < backoff.seconds(retry) <= 60


def test_wait_is_spread() -> None:
    backoff = Backoff(first=2.0, longest=60.0)
    assert len({backoff.seconds(3) for _ in range(20)}) > 10
