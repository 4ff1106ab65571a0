import asyncio

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from moviecrawler.middlewares.retry import BackoffRetryMiddleware
from moviecrawler.politeness.backoff import backoff_seconds
from moviecrawler.spiders.components import set_up

URL = "https://example.com/"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds that were waited, instead of waiting."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("moviecrawler.politeness.backoff.asyncio.sleep", sleep)
    return waited


@pytest.fixture
def retrying() -> BackoffRetryMiddleware:
    """Return the middleware that retries."""
    ours = Settings()
    set_up(ours)
    retries = {name: ours[name] for name in ("RETRY_TIMES", "RETRY_HTTP_CODES")}
    crawler = get_crawler(Spider, {**retries, "RETRY_BACKOFF": 2.0})
    crawler.spider = Spider.from_crawler(crawler, name="test")
    return BackoffRetryMiddleware.from_crawler(crawler)


@pytest.mark.promise("Faults that pass, such as a broken connection or a 500, cost no title.")
def test_waits_double_and_then_it_gives_up(
    retrying: BackoffRetryMiddleware, waits: list[float]
) -> None:
    result: Request | Response | None = asyncio.run(
        retrying.process_exception(Request(URL), DownloadTimeoutError("slow"))
    )
    statuses = iter((503, 522, 524))
    while isinstance(result, Request):
        result = asyncio.run(
            retrying.process_response(result, Response(URL, status=next(statuses)))
        )
    assert isinstance(result, Response)
    for waited, full in zip(waits, (2, 4, 8), strict=True):
        assert full / 2 <= waited <= full


@pytest.mark.parametrize("status", [200, 403, 404, 429])
def test_what_does_not_pass_by_itself_is_not_retried(
    retrying: BackoffRetryMiddleware, waits: list[float], status: int
) -> None:
    response = Response(URL, status=status)
    assert asyncio.run(retrying.process_response(Request(URL), response)) is response
    assert not waits


def test_wait_is_bounded_and_spread() -> None:
    assert all(0 < backoff_seconds(2.0, retry) <= 60 for retry in range(1, 2000))
    assert len({backoff_seconds(2.0, 3) for _ in range(20)}) > 10
